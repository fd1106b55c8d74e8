-- What an app may use, beside its policy, as JSON text of an object; null: its owner has said nothing.
ALTER TABLE tokens ADD COLUMN limits TEXT;

-- What an app has used in a window of the calendar that one of its budgets has; of all apps together
-- where the scope is empty. Made by the first ask that needs it, from the usage until then; from then on
-- counted together with the usage. Amounts as in model/limits/budget.h.
CREATE TABLE budget_windows (
  scope TEXT NOT NULL,
  begins_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  nano_usd BIGINT NOT NULL DEFAULT 0,
  tokens BIGINT NOT NULL DEFAULT 0,
  asks BIGINT NOT NULL DEFAULT 0,
  agent_ms BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, begins_at, ends_at)
);

-- What asks that are under way may come to use. A row goes in the transaction that settles its ask.
CREATE TABLE reservations (
  ask_id TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  nano_usd BIGINT NOT NULL DEFAULT 0,
  tokens BIGINT NOT NULL DEFAULT 0,
  asks BIGINT NOT NULL DEFAULT 0,
  agent_ms BIGINT NOT NULL DEFAULT 0,
  at BIGINT NOT NULL,
  instance_id TEXT
);
CREATE INDEX reservations_by_app ON reservations (app_name);
