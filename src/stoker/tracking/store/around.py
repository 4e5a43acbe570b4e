"""What a program under `stoker run` inherits from it: the run its own runs are inside of, and the store.

Not by the environment: the program must not notice.
"""

from __future__ import annotations

# The id of the run, and the URL of the store, "off" for none; None where no `stoker run` is around this process.
run: str | None = None
store: str | None = None
