"""Write src/stoker/tracking/store/fresh/*.sql: what makes a fresh store, as Alembic's migrations give it.

python tools/make_store_schema.py

A fresh store is made from these, in milliseconds and without importing Alembic into a training program.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from alembic import command
from alembic.config import Config

FRESH = Path(__file__).parent.parent / "src" / "stoker" / "tracking" / "store" / "fresh"
DIALECTS = ("sqlite", "postgresql")


def statements(dialect: str) -> str:
    """The statements of all migrations."""
    written = io.StringIO()
    config = Config(output_buffer=written)
    config.set_main_option("script_location", "stoker.tracking.store:migrations")
    config.attributes["dialect"] = dialect
    command.upgrade(config, "head", sql=True)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith("--")) + "\n"
    return re.sub(r" RETURNING [\w.]+;", ";", text)


if __name__ == "__main__":
    for name in DIALECTS:
        (FRESH / f"{name}.sql").write_text(statements(name), encoding="utf-8")
