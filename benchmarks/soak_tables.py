"""Random tables through every reader of `stoker.data`, against pandas, polars and the values that were written.

    python benchmarks/soak_tables.py --count 5000 --seed 0

Every table is read right or refused in one clear line. One that is not is kept, with its seed, in the folder `--keep`;
the exit code is then 1. `--show` prints the refusals by kind.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.data.random_tables import make_case
from tests.data.table_reference import Refused, check


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="tables (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first table (0)")
    parser.add_argument("--keep", default="soak_tables_failed", help="where failing tables are kept")
    parser.add_argument("--show", action="store_true", help="print why tables were refused")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    start = time.monotonic()
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as folder:
            outcome, kind, why = one(seed, Path(folder), Path(args.keep))
        counts[f"{kind} {outcome}"] += 1
        if outcome == "refused":
            reasons[f"{kind}: {re.sub(r'/[^ ,:]*', 'FILE', why)[:110]}"] += 1
        elif outcome == "failed":
            print(f"seed {seed} ({kind}): {why}", flush=True)
    failed = sum(count for name, count in counts.items() if name.endswith("failed"))
    print(f"{args.count:,} tables in {time.monotonic() - start:.0f} s, {failed} failed")
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count:,}")
    if args.show:
        for reason, count in reasons.most_common(60):
            print(f"  {count:4d} {reason}")
    return 1 if failed else 0


def one(seed: int, folder: Path, keep: Path) -> tuple[str, str, str]:
    """Make and check one table: what came of it, its kind, and why."""
    case = make_case(seed, folder)
    try:
        check(case)
    except Refused as refusal:
        return "refused", case.kind, str(refusal)
    except Exception as error:  # noqa: BLE001 - whatever it is, the soak goes on
        shutil.copytree(folder, keep / str(seed), dirs_exist_ok=True)
        return (
            "failed",
            case.kind,
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300],
        )
    return "read", case.kind, ""


if __name__ == "__main__":
    sys.exit(main())
