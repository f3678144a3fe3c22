-- Dead letters: what was given up, with every attempt, and what was done about it since.
-- All times are milliseconds since 1970.
CREATE TABLE IF NOT EXISTS seawall_dead_letters (
    id TEXT NOT NULL PRIMARY KEY,
    -- The origin: `amqp`, `orders`, the sender's own id and time of the message.
    kind TEXT NOT NULL,
    place TEXT NOT NULL,
    original_id TEXT NOT NULL,
    original_at INTEGER,
    payload BLOB NOT NULL,
    -- JSON: [["content-type", "application/json"]]
    headers TEXT NOT NULL,
    -- The reason in one word, and what the last attempt said.
    reason TEXT NOT NULL,
    message TEXT,
    -- When it was given up.
    at INTEGER NOT NULL,
    -- JSON: every attempt, the first one first. Bytes of an answer are in hex.
    attempts TEXT NOT NULL,
    trace TEXT,
    -- waiting, parked, superseded or replayed. A deleted letter keeps it.
    status TEXT NOT NULL,
    deleted_at INTEGER,
    -- JSON: the replays that succeeded, with generation, idempotency key and time.
    replays TEXT NOT NULL,
    replayed_at INTEGER,
    -- The replay that runs: its number is `claims`, and nobody else replays the letter until `claim_until`.
    claims INTEGER NOT NULL,
    claim_key TEXT,
    claim_until INTEGER,
    -- An edited copy and its original.
    copy_of TEXT,
    superseded_by TEXT,
    -- Message, headers and the beginning of the payload in small letters: what a search looks through.
    searched TEXT NOT NULL
);

-- Lists: the newest one first.
CREATE INDEX IF NOT EXISTS seawall_dead_letters_at ON seawall_dead_letters (at DESC, id DESC);
-- Replays of many: in the order in which the messages were created.
CREATE INDEX IF NOT EXISTS seawall_dead_letters_happened ON seawall_dead_letters ((COALESCE(original_at, at)), id);
-- Lists and counts of a group, without reading the letters.
CREATE INDEX IF NOT EXISTS seawall_dead_letters_group ON seawall_dead_letters (kind, place, reason, status, deleted_at, at DESC, id DESC);
-- Purges.
CREATE INDEX IF NOT EXISTS seawall_dead_letters_deleted ON seawall_dead_letters (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS seawall_dead_letters_replayed ON seawall_dead_letters (replayed_at) WHERE status = 'replayed';
