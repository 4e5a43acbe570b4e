"""The programs that recipes run and `--eject` writes: one for tables, one for texts, one for images.

Each is complete, and reads from top to bottom. Its settings are at the end, where ejecting writes those of the run.
"""
