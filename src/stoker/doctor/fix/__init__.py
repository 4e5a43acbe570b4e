"""Repair findings: turn them into text edits and new files, then run the program before and after and compare.

    repairs = plan(paths, wanted={"safe"}, reports=config.reports)
    for change in changes: change.write()

| module | subject |
|---|---|
| plan | rounds of edits in memory until nothing is left to do |
| edits | apply edits to a text; they never overlap, and the result always parses |
| verify | check that the repaired program computes the same, and faster |
| verified | record the measured speedup as the price of the repaired findings |
"""
