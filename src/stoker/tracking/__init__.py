"""What was run: every run in a store, with its parameters, metrics, files and lineage, and a page to look at them.

| room | subject |
|---|---|
| store/ | runs in SQL (SQLite or PostgreSQL), through kills and full disks; an audit that nobody rewrites unnoticed |
| ui/ | `stoker ui`: the page over the store |
| log | `stoker.Log`: a Keras loop in the store |

The room is not called `track`, because `stoker.track` is a function: importing a package of that name would hide it.
"""
