-- A run names its process until the whole process tree is gone, also after its end. At a start the
-- few that still name one are found without reading all runs.
CREATE INDEX runs_with_process ON runs (started_at) WHERE process_pid IS NOT NULL;
