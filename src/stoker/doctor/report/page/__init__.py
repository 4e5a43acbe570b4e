"""The page of a run: one self-contained HTML file.

| module | subject |
|---|---|
| document | the file itself: data, scripts, styles, and a policy that lets nothing else run |
| data, findings, tables, pipelines, memory, tunings, before_after | what the page shows, as plain JSON values |
| assets/ | the scripts and styles that draw it |
"""
