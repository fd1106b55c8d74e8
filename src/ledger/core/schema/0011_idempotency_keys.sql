-- What became of requests with an idempotency key. `key_sha256` is of the app, the method, the path and
-- the key, `body_sha256` of what was asked. A row without `ended_at` is of work that is under way; with
-- it and without `status`, of work that a crash has interrupted. `is_whole` is 0 where the answer was
-- too large to be kept.
CREATE TABLE idempotency_keys (
  key_sha256 TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  body_sha256 TEXT NOT NULL,
  request_id TEXT NOT NULL,
  begun_at BIGINT NOT NULL,
  ended_at BIGINT,
  status BIGINT,
  headers TEXT,
  body TEXT,
  is_whole BIGINT NOT NULL DEFAULT 1,
  bytes BIGINT NOT NULL DEFAULT 0,
  instance_id TEXT
);
CREATE INDEX idempotency_keys_by_app ON idempotency_keys (app_name, bytes);
CREATE INDEX idempotency_keys_by_end ON idempotency_keys (ended_at);
