-- For the admin's list of the jobs of all apps.
CREATE INDEX jobs_by_time ON jobs (created_at, job_id);
