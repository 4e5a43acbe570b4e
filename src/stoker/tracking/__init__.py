"""A store that answers "What did I run?": every run with its parameters, values, files and lineage; and a page over it.

| room | subject |
|---|---|
| store/ | runs in SQLite or PostgreSQL, safe through kills and full disks; an audit that nobody can rewrite unnoticed |
| ui/ | `stoker ui`: a page over the store |
| log | `stoker.Log`: a Keras callback that keeps a loop in the store |

Two types are used throughout: an `Event` on the way in (`store/events`), a `RunRow` on the way out
(`store/schema`).

The room is not called `track` because `stoker.track` is a function, which a package of that name would hide.
"""
