"""The store's history, for Alembic: one module in `versions` for each change of its tables.

After a new one: raise `opening.HEAD`, change `schema`, and run `tools/make_store_schema.py`, which writes the scripts
that make a fresh store.
"""
