"""What a program under `stoker run` inherits: the run that its own runs are inside of, and the store.

`doctor/measure` sets these in the program's process, not by environment variables: the program must not notice.
"""

from __future__ import annotations

# The id of the run; None outside of `stoker run`.
run: str | None = None
# The URL of the store, "off" for none; None outside of `stoker run`.
store: str | None = None
