-- What the app has called the file, made safe. Null: nothing of it is left, or the upload is older than this.
ALTER TABLE uploads ADD COLUMN name TEXT;
