"""Nobody else has started this: one process, by itself."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.launch.environments.place import Environment, Place


class Local(Environment):
    """The only worker there is."""

    name = "local"

    @classmethod
    def here(cls, variables: Mapping[str, str]) -> bool:
        """Always, after all others."""
        return True

    def place(self) -> Place:
        """The first of one. It needs no port."""
        return Place(0, ["localhost:0"])
