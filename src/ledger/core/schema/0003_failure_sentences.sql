-- What the caller was told of a failed run or turn: one sentence, masked, at most 500 characters.
ALTER TABLE runs ADD COLUMN error TEXT;
ALTER TABLE turns ADD COLUMN error TEXT;
