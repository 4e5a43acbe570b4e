"""The programs that recipes run, and that `--eject` writes: one for tables, one for texts, one for images.

Each is complete and to be read from top to bottom. Its settings stand in the last line, where ejecting puts those of
the run.
"""
