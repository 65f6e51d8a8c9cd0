-- Times are milliseconds: `_ms` since 1970 in UTC where a moment is meant (`started_ms`), else a duration.
-- A value that is not known is NULL, never 0.
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  feature TEXT NOT NULL,
  number INTEGER,
  title TEXT,
  template TEXT,
  status TEXT NOT NULL,      -- running, paused, completed, failed, cancelled, damaged
  verdict TEXT,              -- succeeded, degraded, failed, cancelled; NULL while it is open
  started_ms INTEGER,
  ended_ms INTEGER,          -- NULL while it is open
  total_ms INTEGER,          -- a process owned it
  active_ms INTEGER,         -- without the time in which it only waited
  sequential_ms INTEGER,     -- the same work, one step after the other
  steps INTEGER,
  steps_failed INTEGER,
  steps_reused INTEGER,
  attempts INTEGER,
  attempts_failed INTEGER,
  retries INTEGER,
  timeouts INTEGER,
  refused INTEGER,
  fallbacks INTEGER,
  stalls INTEGER,
  context_reloads INTEGER,
  cache_hits INTEGER,
  cache_lookups INTEGER,
  resumes INTEGER,
  resume_success REAL,       -- share of finished steps that resumes did not run again
  tokens INTEGER,
  cost_usd REAL,
  cost_estimated INTEGER NOT NULL DEFAULT 0,
  forked_from TEXT,          -- the id of the run that it goes on from
  is_foreign INTEGER NOT NULL DEFAULT 0,
  journal_bytes INTEGER,     -- of the journal that these rows were made of; NULL once it is gone
  journal_changed INTEGER
) STRICT;
CREATE INDEX runs_by_feature ON runs (feature, number);

CREATE TABLE steps (
  run TEXT NOT NULL,
  path TEXT NOT NULL,
  phase TEXT NOT NULL,
  kind TEXT NOT NULL,
  agent TEXT,
  model TEXT,
  state TEXT NOT NULL,
  failure_class TEXT,
  failure TEXT,
  attempts INTEGER NOT NULL,
  reused INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  started_ms INTEGER,
  ended_ms INTEGER,
  active_ms INTEGER NOT NULL,
  tokens INTEGER,
  cost_usd REAL,
  PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
  run TEXT NOT NULL,
  step TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  agent TEXT,
  model TEXT,
  session TEXT,
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER,
  active_ms INTEGER,
  outcome TEXT,              -- succeeded, skipped, failed, refused, stopped, lost; NULL while it runs
  failure_class TEXT,
  failure TEXT,
  PRIMARY KEY (run, step, attempt)
) STRICT, WITHOUT ROWID;

-- What an attempt used, if its agent told it.
CREATE TABLE usage (
  run TEXT NOT NULL,
  step TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  model TEXT,
  input INTEGER,
  cache_read INTEGER,
  cache_write INTEGER,
  output INTEGER,
  reasoning INTEGER,
  cost_usd REAL,
  cost_estimated INTEGER NOT NULL,
  PRIMARY KEY (run, step, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE handoffs (
  id TEXT PRIMARY KEY,
  task TEXT NOT NULL,
  sender TEXT NOT NULL,
  receiver TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  created TEXT NOT NULL
) STRICT;

CREATE TABLE wakes (
  id TEXT PRIMARY KEY,
  type TEXT,
  status TEXT,
  session TEXT,
  role TEXT,
  priority INTEGER,
  summary TEXT,
  created TEXT,
  handled TEXT               -- NULL while it waits
) STRICT;

-- Files that the two tables above were made of, as they were then.
CREATE TABLE sources (
  name TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL,
  changed INTEGER NOT NULL
) STRICT;
