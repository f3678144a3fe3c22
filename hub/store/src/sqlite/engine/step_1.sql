-- One row: what holds for the whole database. `stopped` is the last epoch that ended in order.
CREATE TABLE meta (
    epoch   INTEGER NOT NULL,
    stopped INTEGER NOT NULL,
    era     INTEGER NOT NULL
) STRICT;
INSERT INTO meta (epoch, stopped, era) VALUES (0, 0, random());

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

-- Every version of every rule. A rule that was deleted has its versions still; a new one of the same name goes on counting.
CREATE TABLE rules (
    name     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    current  INTEGER NOT NULL,
    events   TEXT NOT NULL,
    filter   TEXT,
    service  TEXT NOT NULL,
    method   TEXT NOT NULL,
    path     TEXT NOT NULL,
    headers  TEXT NOT NULL,
    body     TEXT,
    schedule TEXT NOT NULL,
    ordering TEXT,
    hold     INTEGER NOT NULL,
    enabled  INTEGER NOT NULL,
    note     TEXT,
    changed  INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rules_current ON rules (name) WHERE current = 1;

CREATE TABLE sources (
    name       TEXT PRIMARY KEY,
    version    INTEGER NOT NULL,
    proof      BLOB NOT NULL,
    event_type TEXT NOT NULL,
    event_id   TEXT,
    enabled    INTEGER NOT NULL,
    changed    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Never a key itself, only its hash.
CREATE TABLE keys (
    name         TEXT PRIMARY KEY,
    hash         BLOB NOT NULL,
    former       BLOB,
    former_until INTEGER,
    scopes       TEXT NOT NULL,
    services     TEXT,
    sources      TEXT,
    made         INTEGER NOT NULL,
    expires      INTEGER,
    revoked      INTEGER
) STRICT, WITHOUT ROWID;

-- Who has changed what.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    who    TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    reason TEXT,
    trace  TEXT
) STRICT;

CREATE TABLE circuits (
    number  INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    state   TEXT NOT NULL,
    until   INTEGER,
    trips   INTEGER NOT NULL,
    reason  TEXT,
    changed INTEGER NOT NULL
) STRICT;
CREATE INDEX circuits_of_service ON circuits (service, number);

-- Work that happens once under a key.
CREATE TABLE once (
    scope       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    note        TEXT NOT NULL,
    deliveries  TEXT NOT NULL,
    until       INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX once_by_age ON once (until);

-- The event is its own idempotency record: its id is unique for its source. Rows are in the order of arrival, so that no payload lies under
-- a random key.
CREATE TABLE events (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL,
    source      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    accepted    INTEGER NOT NULL,
    considered  INTEGER NOT NULL,
    filtered    INTEGER NOT NULL,
    trace       TEXT,
    payload     BLOB NOT NULL,
    UNIQUE (id, source)
) STRICT;

-- Narrow, because it changes with each try. Numbers are never given out twice: a new one is one more than the largest, so
-- whoever deletes old rows leaves the newest. What the last try brought is in the row if it went well, and in `attempts` if not:
-- most deliveries succeed at once, and then have nothing there.
-- `crashes` is how often the process ended while it was in hand, `starts` which epochs these were, `together` in how large a company it
-- is tried: see `crash.rs`. All are 0 for most, and cost a byte each.
-- state: -1 suspect, 0 leased, 1 queued, 2 waiting, 3 stalled, 4 blocked, 5 held, 6 a dead letter that holds up others, 7 delivered, 8 dead.
CREATE TABLE deliveries (
    number       INTEGER PRIMARY KEY,
    event        INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    touched      INTEGER NOT NULL,
    accepted     INTEGER NOT NULL,
    counted      INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    panics       INTEGER NOT NULL DEFAULT 0,
    crashes      INTEGER NOT NULL DEFAULT 0,
    together     INTEGER NOT NULL DEFAULT 0,
    starts       TEXT,
    reason       INTEGER,
    replay_of    INTEGER,
    rule_version INTEGER NOT NULL,
    rule         TEXT NOT NULL,
    service      TEXT NOT NULL,
    ordering     TEXT,
    took         INTEGER,
    status       INTEGER,
    answer       BLOB
) STRICT;
CREATE INDEX deliveries_of_event ON deliveries (event);
-- What has ended is in none of these. Most deliveries are only ever in the first, which is the smallest.
CREATE INDEX deliveries_leased ON deliveries (state) WHERE state = 0;
CREATE INDEX deliveries_waiting ON deliveries (state, service, due) WHERE state > 0 AND state < 6;
CREATE INDEX deliveries_suspect ON deliveries (service, together) WHERE state = -1;
CREATE INDEX deliveries_held ON deliveries (rule) WHERE state = 5;
CREATE INDEX deliveries_ordered ON deliveries (rule, ordering, number) WHERE ordering IS NOT NULL AND state < 7;

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
    sent     TEXT,
    headers  TEXT,
    answer   BLOB,
    PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;

-- A dead letter is its delivery, and what is known of it besides.
-- standing: 0 open, 1 replaying, 2 delivered, 3 failed again, 4 parked, 5 deleted. Whoever changes it changes the counts of its
-- group in the same unit.
CREATE TABLE dead_letters (
    delivery    INTEGER PRIMARY KEY,
    grouping    INTEGER NOT NULL,
    standing    INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    status      INTEGER,
    replayed    INTEGER,
    replayed_at INTEGER,
    operation   INTEGER,
    discarded   INTEGER,
    indexed     INTEGER NOT NULL,
    edited      INTEGER NOT NULL,
    note        TEXT,
    error       TEXT
) STRICT;
CREATE INDEX dead_letters_of_group ON dead_letters (grouping, standing, delivery);
CREATE INDEX dead_letters_unindexed ON dead_letters (delivery) WHERE indexed = 0;
CREATE INDEX dead_letters_by_age ON dead_letters (at);
CREATE INDEX dead_letters_discarded ON dead_letters (discarded) WHERE discarded IS NOT NULL;

-- Dead letters that have failed alike. state: 0 open, 1 acknowledged, 2 resolved.
CREATE TABLE letter_groups (
    number       INTEGER PRIMARY KEY,
    fingerprint  INTEGER NOT NULL UNIQUE,
    service      TEXT NOT NULL,
    rule         TEXT NOT NULL,
    reason       INTEGER NOT NULL,
    status       INTEGER,
    message      TEXT NOT NULL,
    state        INTEGER NOT NULL,
    note         TEXT,
    first        INTEGER NOT NULL,
    last         INTEGER NOT NULL,
    reopened     INTEGER NOT NULL,
    open         INTEGER NOT NULL,
    replaying    INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    failed_again INTEGER NOT NULL,
    parked       INTEGER NOT NULL,
    deleted      INTEGER NOT NULL
) STRICT;
CREATE INDEX letter_groups_of_service ON letter_groups (service, rule, reason, status);

-- The words of dead letters. It keeps where they are, and not the words themselves.
CREATE VIRTUAL TABLE letter_words USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'unicode61');

-- Work on many dead letters. task: 0 replay, 1 delete, 2 restore, 3 park, 4 unpark, 5 purge; run: 0 running, 1 paused, 2 done,
-- 3 cancelled, 4 stopped.
CREATE TABLE operations (
    number    INTEGER PRIMARY KEY,
    task      INTEGER NOT NULL,
    plan      TEXT,
    filter    TEXT NOT NULL,
    most      INTEGER,
    total     INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    why       TEXT,
    begun     INTEGER NOT NULL,
    skipped   INTEGER NOT NULL,
    tried     INTEGER NOT NULL,
    faltered  INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    cursor    INTEGER NOT NULL,
    looked    INTEGER NOT NULL,
    who       TEXT NOT NULL,
    reason    TEXT,
    began     INTEGER NOT NULL,
    changed   INTEGER NOT NULL,
    ended     INTEGER
) STRICT;
CREATE INDEX operations_running ON operations (number) WHERE run = 0;

-- Rules of alerts that somebody has written or changed; what came with the hub is not here.
CREATE TABLE alert_rules (
    name         TEXT PRIMARY KEY,
    version      INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    more_than    INTEGER,
    time         INTEGER,
    free_below   INTEGER,
    enabled      INTEGER NOT NULL,
    severity     TEXT NOT NULL,
    services     TEXT,
    channels     TEXT,
    holds        INTEGER NOT NULL,
    clears       INTEGER NOT NULL,
    muted_until  INTEGER,
    muted_reason TEXT,
    changed      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE alert_channels (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    settings BLOB NOT NULL,
    changed  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is wrong, or was. `live`: it is open, or somebody has still to be told.
CREATE TABLE incidents (
    number         INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    live           INTEGER NOT NULL,
    rule           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    severity       TEXT NOT NULL,
    service        TEXT,
    opened         INTEGER NOT NULL,
    updated        INTEGER NOT NULL,
    resolved       INTEGER,
    because        TEXT,
    value          REAL NOT NULL,
    summary        TEXT NOT NULL,
    seen_by        TEXT,
    seen_at        INTEGER,
    seen_reason    TEXT,
    muted_until    INTEGER,
    muted_reason   TEXT,
    told           INTEGER NOT NULL,
    notices        TEXT NOT NULL
) STRICT;
CREATE INDEX incidents_live ON incidents (live) WHERE live = 1;
