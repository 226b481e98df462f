-- What a run is about, if not about the whole project: a pull request, an issue.

ALTER TABLE runs ADD COLUMN subject TEXT;
CREATE INDEX runs_about ON runs (project, subject, id) WHERE subject IS NOT NULL;
