-- What a turn's first event and its closing event are, and how long the turn took. Null: the turn is older than
-- this, or has not ended. The title of a session is the first line of its first prompt that is kept.
ALTER TABLE turns ADD COLUMN first_event_id BIGINT;
ALTER TABLE turns ADD COLUMN last_event_id BIGINT;
ALTER TABLE turns ADD COLUMN duration_ms BIGINT;
ALTER TABLE sessions ADD COLUMN title TEXT;

-- The beginning of what a run was asked; null unless the owner keeps the prompts of runs.
ALTER TABLE runs ADD COLUMN prompt TEXT;
