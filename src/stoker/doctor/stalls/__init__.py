"""One file per static kind: detection, text edits, its page, its own good and bad cases.

A file here that defines `RULE` is a rule; there is no list to keep (`check.registry` finds them).
"""
