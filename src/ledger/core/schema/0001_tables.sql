-- The tables that other programs may read and write while the gateway runs.
-- Times are unix seconds, `meta`, `ip_cidrs` and `mcp_servers` are JSON text, and what a
-- writer may leave out has a default. AUTO_ID is each database's own word for a key that
-- counts by itself.

CREATE TABLE instances (
  instance_id TEXT NOT NULL PRIMARY KEY,
  version TEXT NOT NULL DEFAULT '',
  pid BIGINT NOT NULL DEFAULT 0,
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  beats BIGINT NOT NULL DEFAULT 0,
  ended_at BIGINT
);

CREATE TABLE tokens (
  name TEXT NOT NULL PRIMARY KEY,
  token_sha256 TEXT NOT NULL UNIQUE,
  ip_cidrs TEXT,
  event_format TEXT,
  max_sessions BIGINT,
  max_runs BIGINT,
  created_at BIGINT NOT NULL DEFAULT 0,
  last_used_at BIGINT
);

-- From agent_session_id to mcp_servers: what has to be applied when the agent is
-- started again; cwd is not used. The process mark (pid, start time, boot id) tells a leftover agent from a
-- stranger with the same pid.
CREATE TABLE sessions (
  session_id TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  agent TEXT NOT NULL,
  model TEXT,
  meta TEXT DEFAULT '{}',
  created_at BIGINT NOT NULL,
  last_turn_at BIGINT,
  closed_at BIGINT,
  close_reason TEXT,
  turn_count BIGINT NOT NULL DEFAULT 0,
  instance_id TEXT,
  agent_session_id TEXT,
  system TEXT,
  effort TEXT,
  permission_mode TEXT,
  mcp_servers TEXT,
  cwd TEXT,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cache_read_tokens BIGINT NOT NULL DEFAULT 0,
  cache_write_tokens BIGINT NOT NULL DEFAULT 0,
  cost_usd DOUBLE PRECISION,
  process_pid BIGINT,
  process_start BIGINT,
  process_boot_id TEXT,
  last_event_id BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_app ON sessions (app_name, created_at);
CREATE INDEX sessions_open ON sessions (app_name) WHERE closed_at IS NULL;
CREATE INDEX sessions_closed ON sessions (closed_at) WHERE closed_at IS NOT NULL;

-- The audit. Its rows outlive the session's own row, so nothing refers to it by key.
CREATE TABLE session_events (
  event_id AUTO_ID,
  session_id TEXT NOT NULL,
  app_name TEXT,
  event TEXT NOT NULL,
  at BIGINT NOT NULL,
  meta TEXT DEFAULT '{}'
);
CREATE INDEX session_events_by_app ON session_events (app_name, event_id);

CREATE TABLE turns (
  session_id TEXT NOT NULL,
  turn_index BIGINT NOT NULL,
  state TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at BIGINT,
  stop_reason TEXT,
  code TEXT,
  input_tokens BIGINT,
  output_tokens BIGINT,
  cache_read_tokens BIGINT,
  cache_write_tokens BIGINT,
  cost_usd DOUBLE PRECISION,
  instance_id TEXT,
  PRIMARY KEY (session_id, turn_index)
);
CREATE INDEX turns_unfinished ON turns (instance_id) WHERE ended_at IS NULL;

CREATE TABLE runs (
  run_id TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  agent TEXT NOT NULL,
  model TEXT,
  state TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at BIGINT,
  prompt_bytes BIGINT NOT NULL DEFAULT 0,
  result_bytes BIGINT,
  duration_ms BIGINT,
  outcome TEXT,
  stop_reason TEXT,
  exit_code BIGINT,
  exit_signal BIGINT,
  input_tokens BIGINT,
  output_tokens BIGINT,
  cache_read_tokens BIGINT,
  cache_write_tokens BIGINT,
  cost_usd DOUBLE PRECISION,
  instance_id TEXT,
  process_pid BIGINT,
  process_start BIGINT,
  process_boot_id TEXT
);
CREATE INDEX runs_by_app ON runs (app_name, started_at);
CREATE INDEX runs_by_time ON runs (started_at);
CREATE INDEX runs_unfinished ON runs (instance_id) WHERE ended_at IS NULL;

CREATE TABLE uploads (
  file_token_sha256 TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  size BIGINT NOT NULL,
  extension TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  instance_id TEXT
);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

-- One row holds a block of consecutive events of one session.
CREATE TABLE journal (
  session_id TEXT NOT NULL,
  first_event_id BIGINT NOT NULL,
  last_event_id BIGINT NOT NULL,
  turn_index BIGINT NOT NULL,
  at BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  events TEXT NOT NULL,
  PRIMARY KEY (session_id, first_event_id)
);
CREATE INDEX journal_by_time ON journal (at);
