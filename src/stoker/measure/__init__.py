"""Measuring one program or loop from its beginning to its end: what `run`, `Watch` and notebooks share.

| module | subject |
|---|---|
| child | the half of `stoker run` that lives in the program's process |
| heartbeat | the one thread of Stoker's in the program |
"""
