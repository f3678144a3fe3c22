-- 0003_outbox: messages that wait to be published. Times are milliseconds since 1970.
CREATE TABLE IF NOT EXISTS seawall_outbox (
    -- The order of the rows of one aggregate. Numbers are not used again.
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    -- By which consumers recognise a repeated message.
    event_id      TEXT NOT NULL,
    event_type    TEXT NOT NULL,
    -- Topic, subject, exchange or address; empty where the publisher decides.
    topic         TEXT NOT NULL DEFAULT '',
    aggregate_id  TEXT NOT NULL,
    payload       BLOB NOT NULL,
    -- One `name: value` per line; backslash, line feed, NUL and colon in a name are written as \\, \n, \0 and \c.
    headers       TEXT NOT NULL DEFAULT '',
    -- `ready`: waits to be published. `published`: kept for a while. `dead`: set aside.
    status        TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'published', 'dead')),
    -- How often a relay claimed the row, how often that ended with a recorded failure, and how many of these failures were the
    -- broker's and not the row's own.
    retry_count   INTEGER NOT NULL DEFAULT 0,
    failure_count INTEGER NOT NULL DEFAULT 0,
    outage_count  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT,
    created_at    INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    -- Not claimed before.
    due_at        INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    -- When it was published or set aside.
    finished_at   INTEGER,
    -- Rows of the same aggregate may wait for this one: they are woken when it is finished.
    wakes         INTEGER NOT NULL DEFAULT 0,
    -- The unit that a relay leases: 16 lanes per topic, and an aggregate is always in the same one. SQLite has no hash
    -- function, so the writer computes it (`seawall_dist::outbox::lane_of`).
    lane          INTEGER NOT NULL
);

-- What claims read: the due rows of a lane.
CREATE INDEX IF NOT EXISTS seawall_outbox_ready ON seawall_outbox (lane, due_at, id) WHERE status = 'ready';
-- What claims look up: whether an earlier row of the aggregate waits.
CREATE INDEX IF NOT EXISTS seawall_outbox_order ON seawall_outbox (aggregate_id, topic, id) WHERE status = 'ready';
-- What is listed, and what is cleaned up.
CREATE INDEX IF NOT EXISTS seawall_outbox_dead ON seawall_outbox (id) WHERE status = 'dead';
CREATE INDEX IF NOT EXISTS seawall_outbox_published ON seawall_outbox (finished_at) WHERE status = 'published';

-- The leases of lanes. A row is made when its lane is first used.
CREATE TABLE IF NOT EXISTS seawall_outbox_lanes (
    lane          INTEGER PRIMARY KEY,
    -- Of the latest lease; 0 when it has been given back. Outcomes are recorded under this number only.
    token         INTEGER NOT NULL,
    leased_until  INTEGER NOT NULL,
    -- The lane that was served longest ago is next.
    served_at     INTEGER NOT NULL,
    -- Which relay, for people.
    owner         TEXT NOT NULL
);

-- The last token that was given.
CREATE TABLE IF NOT EXISTS seawall_outbox_tokens (last INTEGER NOT NULL);
INSERT INTO seawall_outbox_tokens (last) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM seawall_outbox_tokens);
