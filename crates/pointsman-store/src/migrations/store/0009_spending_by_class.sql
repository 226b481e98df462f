-- Tokens by the class that services tell and bill apart. What was counted before is in no class: it stays in `tokens` alone.
ALTER TABLE spending ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN cache_writes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN cache_reads INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spending ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cache_writes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cache_reads INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
