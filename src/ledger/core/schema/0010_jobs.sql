-- Runs and turns that the gateway has promised to do. The body goes when the job has ended; the answer
-- stays until it is swept, and is in a file where it is large. `ready_at`: it does not start earlier.
CREATE TABLE jobs (
  job_id TEXT NOT NULL PRIMARY KEY,
  app_name TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  session_id TEXT,
  meta TEXT,
  webhook TEXT,
  request_id TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  ready_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT,
  attempts BIGINT NOT NULL DEFAULT 0,
  attempts_max BIGINT NOT NULL DEFAULT 1,
  turn_index BIGINT,
  after_event BIGINT NOT NULL DEFAULT 0,
  status BIGINT,
  answer_bytes BIGINT NOT NULL DEFAULT 0,
  is_in_file BIGINT NOT NULL DEFAULT 0,
  body_bytes BIGINT NOT NULL DEFAULT 0,
  instance_id TEXT,
  body TEXT,
  answer TEXT
);
CREATE INDEX jobs_by_app ON jobs (app_name, created_at, job_id);
CREATE INDEX jobs_queued ON jobs (app_name, job_id) WHERE state = 'queued';
CREATE INDEX jobs_running ON jobs (job_id) WHERE state = 'running';
CREATE INDEX jobs_of_session ON jobs (session_id, job_id) WHERE ended_at IS NULL AND session_id IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
