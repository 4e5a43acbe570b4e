"""The patterns that lose time: one module per stall, named after it, with its cases in `cases/`.

A module that ends in `STALL = ...` is a stall. There is no list to enter it in: `doctor/stall.py` finds them all.
"""
