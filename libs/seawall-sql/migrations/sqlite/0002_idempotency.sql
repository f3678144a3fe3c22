-- Work that happens once. Times are milliseconds since 1970.

-- Events that a consumer has processed. The row is inserted in the transaction of the work.
CREATE TABLE IF NOT EXISTS processed_events (
    event_id     TEXT    NOT NULL,
    -- Which handler has processed it, if there are several in this database.
    consumer     TEXT    NOT NULL DEFAULT '',
    -- When the event was processed. Rows may be deleted when no producer repeats an event that old.
    processed_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    PRIMARY KEY (event_id, consumer)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS processed_events_processed_at ON processed_events (processed_at);

-- Every execution gets the next number, so that a target can refuse an executor that comes too late.
CREATE TABLE IF NOT EXISTS seawall_idempotency_fencing (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    token INTEGER NOT NULL
);
INSERT OR IGNORE INTO seawall_idempotency_fencing (id, token) VALUES (1, 0);

-- Keys under which work runs once, with the result of the work.
CREATE TABLE IF NOT EXISTS seawall_idempotency_keys (
    -- The tenant, or the consumer of messages. Keys of two scopes never meet.
    scope         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    -- SHA-256 of the request. The same key with another request is refused.
    fingerprint   BLOB    NOT NULL,
    -- 0 in flight, 1 success, 2 failure that would happen again, 3 outcome unknown.
    state         INTEGER NOT NULL,
    -- A random number that identifies the executor.
    holder        INTEGER NOT NULL,
    fencing_token INTEGER NOT NULL,
    -- What the work returned, byte for byte.
    result        BLOB,
    -- In flight: another executor may take the key over after this time.
    lease_until   INTEGER NOT NULL,
    -- After this time the row counts as deleted.
    expires_at    INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX IF NOT EXISTS seawall_idempotency_keys_expires_at ON seawall_idempotency_keys (expires_at);
