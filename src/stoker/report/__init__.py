"""How a record is shown: one file per format."""
