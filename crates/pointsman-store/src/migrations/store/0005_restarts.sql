-- How many sessions of its identity died before this one: counted when it is registered, so that a list of identities never
-- visits old generations.
ALTER TABLE sessions ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;

UPDATE sessions SET restarts = (
    SELECT count(*) FROM sessions AS p
    WHERE p.project = sessions.project AND p.identity = sessions.identity
        AND p.generation < sessions.generation AND p.exit IN ('crashed', 'exited', 'idle_timeout')
);
