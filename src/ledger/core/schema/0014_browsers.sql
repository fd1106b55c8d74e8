-- Browsers that are signed in to the dashboard. Of a browser's token only the SHA-256 is kept, and of the token
-- that it was signed in with (the owner's or an app's), whose end is its own. Without an app it is the owner's.
CREATE TABLE browsers (
  browser_id TEXT NOT NULL PRIMARY KEY,
  token_sha256 TEXT NOT NULL UNIQUE,
  parent_sha256 TEXT NOT NULL,
  name TEXT NOT NULL,
  app_name TEXT,
  address TEXT NOT NULL,
  stays BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  proved_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
