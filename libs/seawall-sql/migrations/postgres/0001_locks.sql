-- Locks with leases and fencing tokens.
CREATE TABLE seawall_locks (
    -- lock:transaction:user:123
    key        TEXT PRIMARY KEY,
    -- The attempt that holds the lock; NULL when it was given back.
    owner      TEXT,
    -- The token of the last grant. The row stays when the lock is given back, so that the next token is larger.
    fence      BIGINT NOT NULL,
    -- When the lease ends, by the clock of the database.
    expires_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50); -- Rows change often: room on the page keeps the updates off the index.

-- Finds the rows of locks that nobody has used for long, for their deletion.
CREATE INDEX seawall_locks_expires_at ON seawall_locks (expires_at);

-- Where tokens come from: one that was deleted with its row is still smaller than the next.
CREATE SEQUENCE seawall_lock_fence AS BIGINT;
