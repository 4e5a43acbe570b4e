"""Findings -> text edits -> new files; verify: run before and after and compare.

changes = plan(paths, wanted={"safe"}, reports=config.reports)
for change in changes: change.write()
"""
