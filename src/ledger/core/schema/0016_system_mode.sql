-- Whether the system prompt of a session takes the place of its agent's own. Null: it comes after that.
ALTER TABLE sessions ADD COLUMN system_mode TEXT;
