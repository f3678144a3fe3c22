-- Locks with leases and fencing tokens.
CREATE TABLE IF NOT EXISTS seawall_locks (
    -- lock:transaction:user:123
    key        TEXT PRIMARY KEY,
    -- The attempt that holds the lock; NULL when it was given back.
    owner      TEXT,
    -- The token of the last grant. The row stays when the lock is given back, so that the next token is larger.
    fence      BIGINT NOT NULL,
    -- When the lease ends, by the clock of the database.
    expires_at TIMESTAMPTZ NOT NULL
) WITH (
    -- Rows change often: room on the page, and no index on what changes, keep the updates off the index.
    fillfactor = 50,
    -- A few rows with many old versions: vacuum by number, not by share, and without pauses.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- Where tokens come from: one that was deleted with its row is still smaller than the next.
CREATE SEQUENCE IF NOT EXISTS seawall_lock_fence AS BIGINT;
