"""The page of a run: one HTML file that needs nothing else.

| module | subject |
|---|---|
| document | the file itself: data, scripts, styles, and a policy that lets nothing else run |
| data, findings, tables, pipelines, memory, tunings, before_after | what the page shows, as plain JSON values |
| assets/ | what draws it |
"""
