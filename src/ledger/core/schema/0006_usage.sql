-- What asks used, counted in the transaction that settles each of them: by minute, and after two days
-- by hour. `at` is the beginning of the minute or the hour. Money is in billionths of a dollar. t00 to
-- t19 count answers by how long they took (model/limits/ask_usage.h).
CREATE TABLE usage_minutes (
  at BIGINT NOT NULL,
  app_name TEXT NOT NULL,
  agent TEXT NOT NULL,
  model TEXT NOT NULL,
  kind TEXT NOT NULL,
  asks BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cache_read_tokens BIGINT NOT NULL DEFAULT 0,
  cache_write_tokens BIGINT NOT NULL DEFAULT 0,
  nano_usd BIGINT NOT NULL DEFAULT 0,
  agent_ms BIGINT NOT NULL DEFAULT 0,
  t00 BIGINT NOT NULL DEFAULT 0,
  t01 BIGINT NOT NULL DEFAULT 0,
  t02 BIGINT NOT NULL DEFAULT 0,
  t03 BIGINT NOT NULL DEFAULT 0,
  t04 BIGINT NOT NULL DEFAULT 0,
  t05 BIGINT NOT NULL DEFAULT 0,
  t06 BIGINT NOT NULL DEFAULT 0,
  t07 BIGINT NOT NULL DEFAULT 0,
  t08 BIGINT NOT NULL DEFAULT 0,
  t09 BIGINT NOT NULL DEFAULT 0,
  t10 BIGINT NOT NULL DEFAULT 0,
  t11 BIGINT NOT NULL DEFAULT 0,
  t12 BIGINT NOT NULL DEFAULT 0,
  t13 BIGINT NOT NULL DEFAULT 0,
  t14 BIGINT NOT NULL DEFAULT 0,
  t15 BIGINT NOT NULL DEFAULT 0,
  t16 BIGINT NOT NULL DEFAULT 0,
  t17 BIGINT NOT NULL DEFAULT 0,
  t18 BIGINT NOT NULL DEFAULT 0,
  t19 BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (at, app_name, agent, model, kind)
);
CREATE INDEX usage_minutes_by_app ON usage_minutes (app_name, at);

CREATE TABLE usage_hours (
  at BIGINT NOT NULL,
  app_name TEXT NOT NULL,
  agent TEXT NOT NULL,
  model TEXT NOT NULL,
  kind TEXT NOT NULL,
  asks BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cache_read_tokens BIGINT NOT NULL DEFAULT 0,
  cache_write_tokens BIGINT NOT NULL DEFAULT 0,
  nano_usd BIGINT NOT NULL DEFAULT 0,
  agent_ms BIGINT NOT NULL DEFAULT 0,
  t00 BIGINT NOT NULL DEFAULT 0,
  t01 BIGINT NOT NULL DEFAULT 0,
  t02 BIGINT NOT NULL DEFAULT 0,
  t03 BIGINT NOT NULL DEFAULT 0,
  t04 BIGINT NOT NULL DEFAULT 0,
  t05 BIGINT NOT NULL DEFAULT 0,
  t06 BIGINT NOT NULL DEFAULT 0,
  t07 BIGINT NOT NULL DEFAULT 0,
  t08 BIGINT NOT NULL DEFAULT 0,
  t09 BIGINT NOT NULL DEFAULT 0,
  t10 BIGINT NOT NULL DEFAULT 0,
  t11 BIGINT NOT NULL DEFAULT 0,
  t12 BIGINT NOT NULL DEFAULT 0,
  t13 BIGINT NOT NULL DEFAULT 0,
  t14 BIGINT NOT NULL DEFAULT 0,
  t15 BIGINT NOT NULL DEFAULT 0,
  t16 BIGINT NOT NULL DEFAULT 0,
  t17 BIGINT NOT NULL DEFAULT 0,
  t18 BIGINT NOT NULL DEFAULT 0,
  t19 BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (at, app_name, agent, model, kind)
);
CREATE INDEX usage_hours_by_app ON usage_hours (app_name, at);

-- For how long the agent worked. Null: the ask is not in the usage, because it was never asked of an
-- agent, or ended before there was a usage.
ALTER TABLE runs ADD COLUMN agent_ms BIGINT;
ALTER TABLE turns ADD COLUMN agent_ms BIGINT;
