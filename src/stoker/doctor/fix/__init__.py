"""Findings -> text edits -> new files; verify: run before and after and compare.

    repairs = plan(paths, wanted={"safe"}, reports=config.reports)
    for change in changes: change.write()

| module | subject |
|---|---|
| plan | rounds of edits in memory until nothing is left to do |
| edits | applying them to a text: never overlapping, the result always parses |
| verify | whether the repaired program computes the same, and faster |
| verified | how much faster, as the price of what was repaired |
"""
