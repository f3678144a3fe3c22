-- Scheduled jobs: one row per job, and the history of its runs. Times are milliseconds since 1970.

CREATE TABLE IF NOT EXISTS seawall_jobs (
    job         TEXT PRIMARY KEY NOT NULL,
    -- Every tick up to this one is handled: claimed, or passed over.
    last_tick   INTEGER NOT NULL,
    -- The fencing token: grows with every run.
    fence       INTEGER NOT NULL DEFAULT 0,
    -- The tick of the run in progress, and when its lease ends; NULL between runs.
    running_tick INTEGER,
    lease_until INTEGER
);

CREATE TABLE IF NOT EXISTS seawall_job_runs (
    job        TEXT NOT NULL REFERENCES seawall_jobs (job) ON DELETE CASCADE,
    -- Together with the job the proof that a tick is claimed once.
    tick       INTEGER NOT NULL,
    -- running, succeeded, failed, abandoned, missed
    state      TEXT NOT NULL,
    -- The process that ran it; empty for missed ticks.
    owner      TEXT NOT NULL,
    -- How many ticks were missed before it, or with it if it was missed itself.
    missed     INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    error      TEXT,
    PRIMARY KEY (job, tick)
) WITHOUT ROWID;
