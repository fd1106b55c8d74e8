-- What an app may ask for, as JSON text of an object; null: its owner has said nothing.
ALTER TABLE tokens ADD COLUMN policy TEXT;
