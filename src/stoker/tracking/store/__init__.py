"""Where runs are kept: in SQL, for every run and its values, and as one JSON file for each measured run.

| module | subject |
|---|---|
| record_files | `.stoker/runs/<id>.json`: the record of a measured run, replaced whole |
| address, around | which store is meant: SQLite by default, PostgreSQL by URL, or none |
| schema, migrations, fresh | the tables; how an older store comes to have them; how a fresh one is made quickly |
| opening | opening a store, making or migrating it under a lock |
| connections | the two drivers behind one small interface, for appending |
| entries, applying | what is logged, and its SQL |
| audit, heads | the append-only chain of what happened; its end, kept elsewhere and signed |
| sealing | what a run was when it ended, in the audit |
| verifying, triggers | whether all is as it was written |
| writer, delivery, spool | the thread that commits in batches; each once; what waits while the store cannot |
| tracking | `stoker.track`: a run, from its beginning to its end |
| fingerprints, pipelines | the content hash of data and files; what a `tf.data` pipeline is made of |
| surroundings | code, versions and machine of a run |
| measured | a record's ledger and findings, in step with its file |
| queries, table, differing | runs read back; `stoker.runs`; two of them side by side |
| linking, origins | what a run uses or makes; which run a model in memory was trained by |
| provenance | what an exported model carries with it |
| deleting | taking a run out, never its audit |
| importing, exporting | from and to other trackers and files |
| event_files, mlflow_rest | their formats: TensorBoard's files, MLflow's REST API |

Nothing here is imported before it is used: SQLAlchemy and Alembic only where runs are read or an older store is
migrated, never where values are logged.
"""
