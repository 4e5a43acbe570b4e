"""Where runs are kept: in SQL, for every run and its values, and as one JSON file for each measured run.

| module | subject |
|---|---|
| record_files | `.stoker/runs/<id>.json`: the record of a measured run, replaced whole |
| address | which store is meant: SQLite by default, PostgreSQL by URL, or none |
| schema, migrations, fresh | the tables; how an older store comes to have them; how a fresh one is made quickly |
| opening | opening a store, making or migrating it under a lock |
| connections | the two drivers behind one small interface, for appending |
| entries, applying | what is logged, and its SQL |
| audit | the append-only chain of what happened, and its verification |
| writer, delivery, spool | the thread that commits in batches; each once; what waits while the store cannot be written |
| tracking | `stoker.track`: a run, from its beginning to its end |
| fingerprints, surroundings | the content hash of data and files; code, versions and machine of a run |
| queries | runs read back |

Nothing here is imported before it is used: SQLAlchemy and Alembic only where runs are read or an older store is
migrated, never where values are logged.
"""
