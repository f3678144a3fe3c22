-- One row: what holds for the whole database.
CREATE TABLE meta (
    epoch INTEGER NOT NULL,
    era   INTEGER NOT NULL
) STRICT;
INSERT INTO meta (epoch, era) VALUES (0, random());

CREATE TABLE services (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    address TEXT NOT NULL,
    headers TEXT NOT NULL,
    auth    BLOB,
    policy  TEXT NOT NULL,
    paused  INTEGER NOT NULL,
    changed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rules (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    events   TEXT NOT NULL,
    filter   TEXT,
    service  TEXT NOT NULL,
    method   TEXT NOT NULL,
    path     TEXT NOT NULL,
    headers  TEXT NOT NULL,
    body     TEXT,
    schedule TEXT NOT NULL,
    enabled  INTEGER NOT NULL,
    changed  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The event is its own idempotency record: its id is unique. Rows are in the order of arrival, so that no payload lies under
-- a random key.
CREATE TABLE events (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    source      TEXT NOT NULL,
    payload     BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    accepted    INTEGER NOT NULL,
    trace       TEXT
) STRICT;

-- Narrow, because it changes with each try. Numbers are never given out twice.
CREATE TABLE deliveries (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    event        INTEGER NOT NULL,
    rule         TEXT NOT NULL,
    rule_version INTEGER NOT NULL,
    service      TEXT NOT NULL,
    state        INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    accepted     INTEGER NOT NULL,
    counted      INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    reason       INTEGER
) STRICT;
CREATE INDEX deliveries_of_event ON deliveries (event);
-- 0 is leased, 1 is waiting; what has ended is not in it.
CREATE INDEX deliveries_open ON deliveries (state, service, due) WHERE state < 2;

CREATE TABLE requests (
    delivery INTEGER PRIMARY KEY,
    request  BLOB NOT NULL
) STRICT;

CREATE TABLE attempts (
    delivery INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    took     INTEGER NOT NULL,
    status   INTEGER,
    error    TEXT,
    answer   BLOB NOT NULL,
    PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;
