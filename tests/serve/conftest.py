"""One small bundle for all tests that ask one: making it starts a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def pets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A model and its bundle."""
    from tests.serve.bundles import made

    return made(tmp_path_factory.mktemp("pets"))
