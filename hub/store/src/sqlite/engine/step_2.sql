-- What speaks against a delivery that was in hand at crashes: see `crash.rs`. `against` counts crashes in a row in the same `step`, and
-- `starts` says which epochs these were. Its column was the company in which a suspect was tried, and -1 was the state of one.
DROP INDEX deliveries_suspect;
ALTER TABLE deliveries RENAME COLUMN together TO against;
ALTER TABLE deliveries ADD COLUMN step INTEGER NOT NULL DEFAULT 0;
UPDATE deliveries SET against = 0, starts = NULL WHERE state = 0;
UPDATE deliveries SET against = 0, starts = NULL, state = CASE WHEN failures = 0 AND replay_of IS NULL THEN 1 ELSE 2 END WHERE state = -1;
