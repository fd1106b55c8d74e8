-- The key that signs an app's webhooks; null: it was never given any webhook_urls.
ALTER TABLE tokens ADD COLUMN webhook_secret TEXT;

-- Where a session's app is told of questions; null: nowhere.
ALTER TABLE sessions ADD COLUMN webhook TEXT;

-- Events on their way to webhooks. A row is made in the transaction that makes what it tells of, so an
-- event is told if and only if it happened. due_ms is unix milliseconds; begun_at is from when on it is
-- tried. The body goes when it is delivered.
CREATE TABLE deliveries (
  delivery_id TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  url TEXT NOT NULL,
  type TEXT NOT NULL,
  body TEXT,
  state TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  begun_at BIGINT NOT NULL,
  due_ms BIGINT NOT NULL,
  ended_at BIGINT,
  last_status BIGINT,
  last_error TEXT
);
CREATE INDEX deliveries_by_app ON deliveries (app_name, state, due_ms);
CREATE INDEX deliveries_by_state ON deliveries (state, created_at);
CREATE INDEX deliveries_by_time ON deliveries (created_at, delivery_id);
