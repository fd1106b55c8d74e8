-- A block that is too large for one row: its row in the journal has no events, and these rows, in
-- the order of their parts, hold its lines. They are written before the block's row, each in a
-- commit of its own; without that row they count for nothing.
CREATE TABLE journal_parts (
  session_id TEXT NOT NULL,
  first_event_id BIGINT NOT NULL,
  part BIGINT NOT NULL,
  lines TEXT NOT NULL,
  PRIMARY KEY (session_id, first_event_id, part)
);
