-- 0003_outbox: messages that wait to be published.
--
-- A user's transaction inserts (event_id, event_type, topic, aggregate_id, payload, headers); all else has a default, so that
-- any program in any language can write to it.
CREATE TABLE IF NOT EXISTS seawall_outbox (
    -- The order of the rows of one aggregate.
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- By which consumers recognise a repeated message.
    event_id      TEXT NOT NULL,
    event_type    TEXT NOT NULL,
    -- Topic, subject, exchange or address; empty where the publisher decides. Compared as bytes, which is several times faster.
    topic         TEXT COLLATE "C" NOT NULL DEFAULT '',
    aggregate_id  TEXT COLLATE "C" NOT NULL,
    payload       BYTEA NOT NULL,
    -- One `name: value` per line; backslash, line feed, NUL and colon in a name are written as \\, \n, \0 and \c.
    headers       TEXT NOT NULL DEFAULT '',
    -- `ready`: waits to be published. `published`: kept for a while. `dead`: set aside.
    status        TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'published', 'dead')),
    -- How often a relay claimed the row, how often that ended with a recorded failure, and how many of these failures were the
    -- broker's and not the row's own.
    retry_count   INT NOT NULL DEFAULT 0,
    failure_count INT NOT NULL DEFAULT 0,
    outage_count  INT NOT NULL DEFAULT 0,
    last_error    TEXT,
    -- By the clock of the database, and of the statement: rows of a long transaction are not old when it commits.
    created_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- Not claimed before.
    due_at        TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- When it was published or set aside.
    finished_at   TIMESTAMPTZ,
    -- Rows of the same aggregate may wait for this one: they are woken when it is finished.
    wakes         BOOLEAN NOT NULL DEFAULT false,
    -- The unit that a relay leases: 16 lanes per topic, and an aggregate is always in the same one.
    lane          INT NOT NULL GENERATED ALWAYS AS
                  ((hashtext(topic) & 65535) * 16 + (hashtext(aggregate_id) & 15)) STORED
) WITH (
    -- Room on each page for the claim's update, which then touches no index.
    fillfactor = 70,
    -- A queue is mostly dead rows: vacuum by number, not by share, and without pauses.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0
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
    lane          INT PRIMARY KEY,
    -- Of the latest lease; 0 when it has been given back. Outcomes are recorded under this number only.
    token         BIGINT NOT NULL,
    leased_until  TIMESTAMPTZ NOT NULL,
    -- The lane that was served longest ago is next.
    served_at     TIMESTAMPTZ NOT NULL,
    -- Which relay, for people.
    owner         TEXT NOT NULL,
    -- No ready row of the lane was due before this time, when somebody last looked; late transactions may have added some.
    clear_before  TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

CREATE SEQUENCE IF NOT EXISTS seawall_outbox_tokens;
