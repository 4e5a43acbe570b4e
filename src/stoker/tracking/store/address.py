"""Which store to use: the one given, `STOKER_STORE`, `[tool.stoker] store`, or `.stoker/stoker.db`; or none."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from stoker import config
from stoker.errors import UsageError
from stoker.files import HOME
from stoker.tracking.store import inherited

DEFAULT = f"sqlite:///{HOME / 'stoker.db'}"
VARIABLE = "STOKER_STORE"
OFF = "off"


@dataclass(frozen=True)
class Address:
    """A store: the file of a SQLite database, or the URL of a PostgreSQL one."""

    path: Path | None = None
    url: str = ""

    def __str__(self) -> str:
        """Return the URL without its password, for people and files."""
        if self.path is not None:
            return f"sqlite:///{self.path}"
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        user = parts.username or ""
        return urlunsplit(parts._replace(netloc=f"{user}@{host}" if user else host, query=""))

    @property
    def home(self) -> Path:
        """The directory for files that belong to the store but are not in it: the spool and the audit's head."""
        return self.path.parent if self.path is not None else HOME.absolute()

    @property
    def mark(self) -> str:
        """A short name that identifies the store."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:12]


def find(given: str | None = None) -> Address | None:
    """Find the store to use; None if the store is switched off.

    Raises:
        UsageError: the URL is invalid.
    """
    text = given or inherited.store or os.environ.get(VARIABLE) or config.load(Path()).store or DEFAULT
    return None if text.strip().lower() == OFF else parse(text)


def require(given: str | None = None) -> Address:
    """Find the store, for a command that needs one.

    Raises:
        UsageError: the store is switched off, or the URL is invalid.
    """
    found = find(given)
    if found is None:
        raise UsageError(
            f"the store is switched off ({VARIABLE} or [tool.stoker] says {OFF!r}): give --store URL"
        )
    return found


def parse(text: str) -> Address:
    """Parse the URL of a store.

    Raises:
        UsageError: the URL is that of neither a SQLite file nor a PostgreSQL database.
    """
    scheme, colon, rest = text.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Address(path=Path(rest[1:]).expanduser().absolute())
    if scheme in ("postgresql", "postgres") and colon and rest:
        return Address(url=f"postgresql://{rest}")
    raise UsageError(
        f"invalid store {text!r}: use sqlite:///path/to/file.db, postgresql://user@host/database, or {OFF!r}"
    )
