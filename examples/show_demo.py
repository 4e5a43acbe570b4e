"""What `make demo` shows: a stalled training program under `stoker run`, its repair, and what the repair gained."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def ledger(program: str, directory: str) -> dict:
    """Run an example as a user would and return the record it leaves."""
    record = Path(directory, f"{program}.json")
    page = f"{Path(program).stem}.html"
    print(f"\n$ stoker run --html {page} {program}", flush=True)
    command = [sys.executable, "-m", "stoker", "run", "--html", page, "--json", str(record), program]
    subprocess.run(command, cwd=HERE, check=True)
    return json.loads(record.read_text(encoding="utf-8"))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        stalled, repaired = ledger("demo.py", directory), ledger("demo_fixed.py", directory)
    speed_up = repaired["steps_per_s"] / stalled["steps_per_s"]
    print(
        f"\n{stalled['steps_per_s']:.1f} steps/s before, {repaired['steps_per_s']:.1f} after: "
        f"{speed_up:.1f}x faster, as measured."
    )


if __name__ == "__main__":
    main()
