"""What every environment says: rank, size, addresses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.errors import UsageError


@dataclass(frozen=True)
class Place:
    """A worker among all workers; `addresses` by rank, as host:port."""

    rank: int
    addresses: list[str]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.addresses)


class Environment(ABC):
    """Variables that say where a worker is."""

    # As `--engine` names it.
    name: str

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    @classmethod
    @abstractmethod
    def here(cls, variables: Mapping[str, str]) -> bool:
        """Whether this is the one."""

    @abstractmethod
    def place(self) -> Place:
        """Where this worker is.

        Raises:
            UsageError: the variables do not say.
        """

    def value(self, name: str) -> str:
        """A variable that must be there."""
        if name not in self._variables:
            raise UsageError(f"{self.name}: the variable {name} is not set: is this process part of a job?")
        return self._variables[name]

    def number(self, name: str) -> int:
        """A variable that must be a whole number."""
        text = self.value(name)
        if not text.isdigit():
            raise UsageError(f"{self.name}: the variable {name} must be a whole number, and is {text!r}")
        return int(text)
