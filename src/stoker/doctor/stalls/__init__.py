"""The patterns that lose time: one module for each stall, named after it, with its cases in `cases/`.

A module that ends in `STALL = ...` is a stall. There is no list to add it to: `doctor/stall.py` finds them all.
"""
