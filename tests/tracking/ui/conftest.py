"""What the tests of the page share with those of the store."""

from __future__ import annotations

from tests.tracking.store.conftest import own_writers

__all__ = ["own_writers"]
