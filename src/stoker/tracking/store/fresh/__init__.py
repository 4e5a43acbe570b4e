"""The statements that make a fresh store, one script a database; written by `tools/make_store_schema.py`."""
