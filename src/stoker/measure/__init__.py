"""Measuring one program or loop from its beginning to its end: what `run`, `Watch` and notebooks share.

| module | subject |
|---|---|
| child | the half of `stoker run` that lives in the program's process |
| heartbeat | the only thread Stoker runs in the program |
"""
