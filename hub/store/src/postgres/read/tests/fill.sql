-- A database that has been in use: 200 000 deliveries to 1 000 services have ended, 20 000 of them as dead letters in 3 000 groups,
-- and 5 000 wait behind all of these, most of them for one service.

INSERT INTO services (name, version, document) SELECT 'service-' || n, 1, '{}' FROM generate_series(0, 999) n;

INSERT INTO events (number, id, source, kind, fingerprint, accepted, considered, filtered, trace, payload)
SELECT n, 'event-' || n, CASE WHEN n = 7 THEN 'rare' ELSE 'shop' END, CASE WHEN n = 9 THEN 'odd.kind' ELSE 'order.created' END,
       decode(md5(n::text) || md5(n::text), 'hex'), n, CASE WHEN n = 11 THEN 0 ELSE 1 END, 0, NULL,
       convert_to(repeat('x', 300), 'UTF8')
FROM generate_series(1, 205000) n;

INSERT INTO deliveries (number, era, event, rule, rule_version, service, ordering, replay_of, replay_era, request)
SELECT n, 7, n, 'rule-' || n % 1000, 1, 'service-' || CASE WHEN n <= 5000 THEN n % 2 ELSE n % 1000 END, NULL, NULL, NULL,
       '\x01aa'::bytea
FROM generate_series(1, 205000) n;

-- The first 5 000 wait still: 2 = for their next attempt, 4 = for their order, 5 = for their rule, 0 = claimed.
INSERT INTO work (number, service, rule, ordering, is_replay, state, epoch, due, touched, accepted)
SELECT number, service, rule, ordering, false,
       CASE WHEN number % 50 = 0 THEN 5 WHEN number % 51 = 0 THEN 4 WHEN number % 100 = 1 THEN 0 ELSE 2 END, 1, number, number, number
FROM deliveries WHERE number <= 5000;

INSERT INTO outcomes (number, state, epoch, due, touched, accepted, counted, failures, panics, reason, crashes, against, step,
                      starts, took, status, answer)
SELECT n, CASE WHEN n % 10 = 0 THEN 8 ELSE 7 END, 1, n, n, n, 1, CASE WHEN n % 10 = 0 THEN 12 ELSE 0 END, 0,
       CASE WHEN n % 10 = 0 THEN 3 END, 0, 0, 0, NULL, CASE WHEN n % 10 = 0 THEN NULL ELSE 1000 END, 200, NULL
FROM generate_series(5001, 205000) n;

INSERT INTO letter_groups (number, fingerprint, service, rule, reason, status, message, state, note, first, last, reopened, open,
                           replaying, delivered, failed_again, parked, deleted)
SELECT g, g, 'service-' || g % 1000, 'rule-' || g % 1000, 3, 503, 'message ' || g, 0, NULL, 0, g, 0, 0, 0, 0, 0, 0, 0
FROM generate_series(0, 2999) g;

-- Most are delivered by now (2), some are open (0), few are parked (4), and one operation replays some (1).
INSERT INTO dead_letters (delivery, grouping, standing, at, status, replayed, replayed_at, operation, discarded, edited, indexed)
SELECT n, (n / 10) % 3000, CASE WHEN n % 10000 = 0 THEN 4 WHEN n % 400 = 0 THEN 1 WHEN n % 100 = 0 THEN 0 ELSE 2 END, n, 503,
       CASE WHEN n % 400 = 0 THEN n / 400 END, n, CASE WHEN n % 400 = 0 THEN 1 END, NULL, false, n > 6000
FROM generate_series(5010, 205000, 10) n;

INSERT INTO letter_words (delivery, words)
SELECT delivery, ('''common'':1 ''word' || delivery || ''':2 ''half' || delivery % 20 || ''':3')::tsvector FROM dead_letters
WHERE indexed;

UPDATE letter_groups SET open = l.open, replaying = l.replaying, delivered = l.delivered, parked = l.parked
FROM (SELECT grouping, count(*) FILTER (WHERE standing = 0) AS open, count(*) FILTER (WHERE standing = 1) AS replaying,
             count(*) FILTER (WHERE standing = 2) AS delivered, count(*) FILTER (WHERE standing = 4) AS parked
      FROM dead_letters GROUP BY grouping) l
WHERE letter_groups.number = l.grouping;

INSERT INTO incidents (id, live, is_open, rule, severity, service, resolved, document)
SELECT 'incident-' || n, n % 100 = 0, n % 100 = 0, 'rule', 'warning', NULL, NULL,
       '{"rule":"rule","kind":"circuitOpen","severity":"warning","opened_ms":1,"updated_ms":1,"value":"1","summary":"","notified":true,"notices":[]}'
FROM generate_series(1, 20000) n;

INSERT INTO audit (at, who, action, target) SELECT n, 'me', 'put', 'service-' || n % 1000 FROM generate_series(1, 50000) n;

ANALYZE;
