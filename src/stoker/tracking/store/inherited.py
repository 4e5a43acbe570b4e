"""The run and the store that a program under `stoker run` inherits for its own runs.

`doctor/measure` sets these in the program's process instead of in environment variables, so that the program does not
notice them.
"""

from __future__ import annotations

# The id of the run; None outside of `stoker run`.
run: str | None = None
# The URL of the store, "off" for none; None outside of `stoker run`.
store: str | None = None
