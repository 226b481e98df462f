-- A notice on its way by a notifier is an effect in one of the notifier's two lanes: `notifier/matrix/prompt`,
-- `notifier/matrix/ordinary`. Before, notices waited beside the outbox.

ALTER TABLE deliveries ADD COLUMN effect INTEGER;
UPDATE deliveries
    SET effect = (SELECT coalesce(max(o.id), 0) FROM outbox AS o)
        + (SELECT count(*) FROM deliveries AS d WHERE d.status = 'pending' AND d.id <= deliveries.id)
    WHERE status = 'pending';
INSERT INTO outbox (id, key, project, workflow, effect, status, attempts, not_before, created_at)
    SELECT d.effect, 'delivery/' || d.id, d.project,
        'notifier/' || d.notifier || CASE WHEN d.urgent THEN '/prompt' ELSE '/ordinary' END,
        '{"effect":"tell","delivery":' || d.id || '}', 'pending', 0, d.not_before, n.at
    FROM deliveries AS d JOIN notices AS n ON n.id = d.notice
    WHERE d.status = 'pending' ORDER BY d.id;
CREATE INDEX deliveries_of_effect ON deliveries (effect) WHERE status = 'pending';
