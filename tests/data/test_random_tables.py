"""A fixed share of `benchmarks/soak_tables.py`: random tables are read right or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.random_tables import KINDS, make_case
from tests.data.table_reference import Refused, check

# The readers load it when they are used.
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings("ignore::stoker.data.DataWarning", "ignore::UserWarning"),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(KINDS)))
def test_random_tables_are_read_right_or_refused(kind: str, tmp_path: Path) -> None:
    seeds = [seed for seed in range(72) if KINDS[seed % len(KINDS)] == kind]
    read = 0
    for seed in seeds:
        try:
            check(make_case(seed, tmp_path / str(seed)))
        except Refused:
            continue
        read += 1
    assert read > len(seeds) / 3
