"""Where runs are kept: a SQL database for every run and its values, and a JSON file for each measured run.

A run reports **events** (`events`). They pass through these modules, in this order:

| module | subject |
|---|---|
| tracking | `stoker.track`: a run, from start to end |
| surroundings, fingerprints, pipelines | code, versions and machine; content hashes of files, data and pipelines |
| linking, origins | what a run uses and makes; which run trained a model in memory |
| events | what happens to a run, as typed values, and their format on disk |
| writer | the thread that commits events in batches |
| delivery, spool | delivering each batch once; files for batches that wait while the store is down |
| applying | writing a batch as SQL, in one transaction |
| audit, sealing, heads | the append-only chain of what happened; digests of ended runs; the end of the chain |

All of these build on:

| module | subject |
|---|---|
| address, inherited | which store to use: a SQLite file, a PostgreSQL database, or none |
| schema, migrations | the rows of the tables; the SQL scripts that make the tables |
| opening, connections | opening and migrating a store; the two drivers behind one interface |
| plain_values | values that JSON and both databases can hold |

These modules read the store:

| module | subject |
|---|---|
| queries, table, differing | runs read back; `stoker.runs`; two runs compared |
| verifying, triggers | checking that everything is as it was written |
| provenance | the origin of a model, exported with it |
| deleting | deleting a run, but never its audit |
| record_files, measured | `.stoker/runs/<id>.json`; the same record in the store |
| importing, exporting | other trackers and files |
| event_files, mlflow_rest | TensorBoard's file format, MLflow's REST API |

The store needs no package beyond the standard library, except psycopg for PostgreSQL.
"""
