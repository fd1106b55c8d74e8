-- The session whose conversation this one began with. Null: it began a new one.
ALTER TABLE sessions ADD COLUMN forked_from TEXT;
