"""Where runs are kept: `.stoker/runs/<id>.json`, one record per run, replaced whole; profiler events beside it."""
