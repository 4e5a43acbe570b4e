"""What the page is told stays small, however much there is."""

from __future__ import annotations

from pathlib import Path

from stoker.tracking.store import address, opening, queries
from stoker.tracking.ui import answers


def test_lineage_of_many_runs_reads_each_link_twice_at_most(tmp_path: Path) -> None:
    """A hundred thousand runs that use what one has made: pair by pair, they would take hours."""
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    connection = opening.connect(store)
    count = 100_000
    with connection.transaction():
        connection.execute(
            "INSERT INTO artifacts (id, hash, kind, name, path, time) VALUES (1, 'sha256:1', 'model', 'm', '', 0)"
        )
        connection.execute("INSERT INTO links (run, artifact, relation) VALUES ('r0', 1, 'makes')")
        connection.execute_many(
            "INSERT INTO links (run, artifact, relation) VALUES (?, 1, 'uses')",
            [(f"r{n}",) for n in range(count)],
        )
    with queries.open_reader(store) as reader:
        read = 0
        whole = reader.links

        def counted(**wanted: object) -> object:
            nonlocal read
            for link in whole(**wanted):  # type: ignore[arg-type]
                read += 1
                yield link

        reader.links = counted  # type: ignore[method-assign,assignment]
        found = answers.trace_lineage(reader, "r5")
    assert read <= 2 * (count + 1)
    assert len(found["runs"]) == 300
    assert "r5" in [one["id"] for one in found["runs"]]
    assert found["left_out"] == count - 300
    assert len(found["links"]) <= 301


def test_lineage_of_runs_that_go_round_in_circles_ends(tmp_path: Path) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    connection = opening.connect(store)
    with connection.transaction():
        for n in range(40):
            row = (n, f"sha256:{n}")
            connection.execute(
                "INSERT INTO artifacts (id, hash, kind, name, path, time) VALUES (?, ?, 'm', 'm', '', 0)", row
            )
        rows = [
            (f"r{run}", n, relation) for run in range(40) for n in range(40) for relation in ("uses", "makes")
        ]
        connection.execute_many("INSERT INTO links (run, artifact, relation) VALUES (?, ?, ?)", rows)
    with queries.open_reader(store) as reader:
        found = answers.trace_lineage(reader, "r0")
    assert (len(found["runs"]), len(found["links"]), found["left_out"]) == (40, 2000, 1200)
