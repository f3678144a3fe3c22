-- Registry rows keep as columns what statements compare. The rest is one document (see `record/`), so that a new field needs no step.
-- A truth value has to be JSON before it gets into a document: SQLite itself has only numbers.
ALTER TABLE services RENAME TO services_before;
CREATE TABLE services (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO services SELECT name, version, json_object(
    'address', address,
    'headers', json(headers),
    'auth', iif(auth IS NULL, NULL, lower(hex(auth))),
    'policy', policy,
    'paused', json(iif(paused, 'true', 'false')),
    'changed_ms', changed
) FROM services_before;
DROP TABLE services_before;

-- Every version of every rule. A rule that was deleted has its versions still; a new one of the same name goes on counting.
ALTER TABLE rules RENAME TO rules_before;
DROP INDEX rules_current;
CREATE TABLE rules (
    name     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    current  INTEGER NOT NULL,
    service  TEXT NOT NULL,
    enabled  INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;
INSERT INTO rules SELECT name, version, current, service, enabled, json_object(
    'events', events,
    'filter', filter,
    'method', method,
    'path', path,
    'headers', json(headers),
    'body', body,
    'schedule', json_object(
        'attempts', json(schedule -> '$.attempts'),
        'age_max_ms', json(schedule -> '$.age'),
        'base_ms', json(schedule -> '$.base'),
        'cap_ms', json(schedule -> '$.cap'),
        'count', iif(schedule ->> '$.all', 'all', 'answered')
    ),
    'ordering', json(iif(ordering IS NULL, NULL, json_object('key', ordering, 'hold', json(iif(hold, 'true', 'false'))))),
    'note', note,
    'changed_ms', changed
) FROM rules_before;
DROP TABLE rules_before;
CREATE UNIQUE INDEX rules_current ON rules (name) WHERE current = 1;

ALTER TABLE sources RENAME TO sources_before;
CREATE TABLE sources (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    enabled  INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO sources SELECT name, version, enabled, json_object(
    'proof', lower(hex(proof)),
    'event_type', event_type,
    'event_id', event_id,
    'changed_ms', changed
) FROM sources_before;
DROP TABLE sources_before;

-- Never a key itself, only its hash.
ALTER TABLE keys RENAME TO keys_before;
CREATE TABLE keys (
    name     TEXT PRIMARY KEY,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO keys SELECT name, json_object(
    'hash', lower(hex(hash)),
    'former', json(iif(former IS NULL, NULL, json_object('hash', lower(hex(former)), 'until_ms', former_until))),
    'scopes', json(iif(scopes = '', '[]', '["' || replace(scopes, ' ', '","') || '"]')),
    'services', json(services),
    'sources', json(sources),
    'made_ms', made,
    'expires_ms', expires,
    'revoked_ms', revoked
) FROM keys_before;
DROP TABLE keys_before;

-- Rules of alerts that somebody has written or changed; what came with the hub is not here.
ALTER TABLE alert_rules RENAME TO alert_rules_before;
CREATE TABLE alert_rules (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    enabled  INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO alert_rules SELECT name, version, enabled, json_object(
    'condition', json(CASE kind
        WHEN 'circuitOpen' THEN json_object('kind', kind)
        WHEN 'oldestDue' THEN json_object('kind', kind, 'older_than_ms', time)
        WHEN 'dataLossRisk' THEN json_object('kind', kind, 'free_below', free_below)
        ELSE json_object('kind', kind, 'more_than', more_than, 'window_ms', time)
    END),
    'severity', severity,
    'services', json(services),
    'channels', json(channels),
    'holds_ms', holds,
    'clears_ms', clears,
    'muted', json(iif(muted_until IS NULL, NULL, json_object('until_ms', muted_until, 'reason', muted_reason))),
    'changed_ms', changed
) FROM alert_rules_before;
DROP TABLE alert_rules_before;

ALTER TABLE alert_channels RENAME TO alert_channels_before;
CREATE TABLE alert_channels (
    name     TEXT PRIMARY KEY,
    version  INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO alert_channels SELECT name, version, json_object('settings', lower(hex(settings)), 'changed_ms', changed)
FROM alert_channels_before;
DROP TABLE alert_channels_before;
