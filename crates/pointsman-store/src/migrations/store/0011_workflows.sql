-- Every workflow has a lane in the outbox and messages of its own: `task/3`, `run/planner/7`. Before, only tasks had.

DROP INDEX outbox_lanes;
ALTER TABLE outbox ADD COLUMN workflow TEXT NOT NULL DEFAULT '';
UPDATE outbox SET workflow = 'task/' || issue;
ALTER TABLE outbox DROP COLUMN issue;
CREATE INDEX outbox_lanes ON outbox (project, workflow, id) WHERE status = 'pending';

DROP INDEX messages_of_task;
ALTER TABLE messages ADD COLUMN workflow TEXT NOT NULL DEFAULT '';
UPDATE messages SET workflow = 'task/' || issue;
ALTER TABLE messages DROP COLUMN issue;
CREATE INDEX messages_of_workflow ON messages (project, workflow, id);
