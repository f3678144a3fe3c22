-- Locks with leases and fencing tokens.
CREATE TABLE IF NOT EXISTS seawall_locks (
    -- lock:transaction:user:123
    key        TEXT PRIMARY KEY,
    -- The attempt that holds the lock; NULL when it was given back.
    owner      TEXT,
    -- The token of the last grant.
    fence      INTEGER NOT NULL,
    -- When the lease ends, in milliseconds since 1970 by the clock of the machine.
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The last token of all locks: one that was deleted with its row is still smaller than the next.
CREATE TABLE IF NOT EXISTS seawall_lock_fence (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL
);
INSERT OR IGNORE INTO seawall_lock_fence (id, last) VALUES (1, 0);
