-- Sagas: one row per instance, its journal, and marks of steps.

CREATE TABLE IF NOT EXISTS seawall_sagas (
    -- The id that the caller gave it; a second start with the same id does not run it twice.
    id           TEXT PRIMARY KEY,
    -- The definition that it was started with, and that drives it to its end.
    name         TEXT NOT NULL,
    definition_version BIGINT NOT NULL,
    -- running, compensating, completed, compensated, needs_attention
    state        TEXT NOT NULL DEFAULT 'running',
    -- Why it is compensated or needs attention.
    reason       TEXT,
    -- The entity that it works on, as it was given.
    entity       TEXT,
    -- The same while no other saga may work on it, and NULL after the end.
    active_entity TEXT,
    input        BYTEA NOT NULL,
    -- Grows with every entry of the journal; every transition compares it.
    version      BIGINT NOT NULL DEFAULT 0,
    -- The process that drives it, its fencing token (how many processes drove it), and when its lease ends.
    owner        TEXT NOT NULL,
    fence        BIGINT NOT NULL,
    lease_until  TIMESTAMPTZ NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    -- When it is compensated if it still goes forward.
    deadline_at  TIMESTAMPTZ NOT NULL,
    -- The note of the operator who declared it settled.
    resolution   TEXT
);

-- One active saga per entity.
CREATE UNIQUE INDEX IF NOT EXISTS seawall_sagas_entity ON seawall_sagas (active_entity) WHERE active_entity IS NOT NULL;
-- What the monitor looks for.
CREATE INDEX IF NOT EXISTS seawall_sagas_due ON seawall_sagas (lease_until) WHERE state IN ('running', 'compensating');
-- What operators look for.
CREATE INDEX IF NOT EXISTS seawall_sagas_attention ON seawall_sagas (id) WHERE state = 'needs_attention' AND resolution IS NULL;
-- What is deleted after a while.
CREATE INDEX IF NOT EXISTS seawall_sagas_ended ON seawall_sagas (updated_at) WHERE state IN ('completed', 'compensated') OR resolution IS NOT NULL;

CREATE TABLE IF NOT EXISTS seawall_saga_journal (
    saga_id TEXT NOT NULL REFERENCES seawall_sagas (id) ON DELETE CASCADE,
    -- The version of the saga after this entry.
    seq     BIGINT NOT NULL,
    -- step_intent, step_done, …
    kind    TEXT NOT NULL,
    step    TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    -- The result of a step.
    payload BYTEA NOT NULL,
    -- The error, the reason or the operator's note.
    text    TEXT,
    at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (saga_id, seq)
);

-- Marks that steps write in their own transactions: a step takes effect once, and never after its compensation. Create this
-- table in every database in which a step works.
CREATE TABLE IF NOT EXISTS seawall_saga_step_marks (
    -- saga_id:step_name
    step_key   TEXT PRIMARY KEY,
    -- done: the step took effect. undone: it was compensated, and a late call is refused.
    state      TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS seawall_saga_step_marks_age ON seawall_saga_step_marks (updated_at);
