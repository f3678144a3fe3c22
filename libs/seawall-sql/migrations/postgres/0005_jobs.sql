-- Scheduled jobs: one row per job, and the history of its runs. Ticks are milliseconds since 1970, so that all processes and
-- stores mean the same one.

CREATE TABLE IF NOT EXISTS seawall_jobs (
    job         TEXT PRIMARY KEY,
    -- Every tick up to this one is handled: claimed, or passed over.
    last_tick   BIGINT NOT NULL,
    -- The fencing token: grows with every run.
    fence       BIGINT NOT NULL DEFAULT 0,
    -- The tick of the run in progress, and when its lease ends; NULL between runs.
    running_tick BIGINT,
    lease_until TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS seawall_job_runs (
    job        TEXT NOT NULL REFERENCES seawall_jobs (job) ON DELETE CASCADE,
    -- Together with the job the proof that a tick is claimed once.
    tick       BIGINT NOT NULL,
    -- running, succeeded, failed, abandoned, missed
    state      TEXT NOT NULL,
    -- The process that ran it; empty for missed ticks.
    owner      TEXT NOT NULL,
    -- How many ticks were missed before it, or with it if it was missed itself.
    missed     BIGINT NOT NULL DEFAULT 0,
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    ended_at   TIMESTAMPTZ,
    error      TEXT,
    PRIMARY KEY (job, tick)
);
