"""Figures and accounts in words, the same in every report."""

from __future__ import annotations

from stoker.doctor.diagnosis.other_work import is_busy, measure_other_work
from stoker.records import Finding, Record, TunerGain
from stoker.units import duration, percent, quantity, size

# A finding below this share of the run is listed, but not announced.
MINOR = 0.02
_LONG_PATH = 48
MEANINGS = {
    "startup": "imports and devices",
    "trace": "building and optimising graphs",
    "input": "waiting for data",
    "transfer": "copying host data in",
    "sync": "reading tensors back",
    "compute": "running kernels",
    "dispatch": "launching work from Python",
    "communication": "exchanging with other workers",
    "checkpoint": "saving and loading",
    "teardown": "taking iterators down",
    "python": "the program's own Python",
}


def list_notes(record: Record) -> list[str]:
    """Return what the reader must know: the notes of the run, a busy machine and, once each, notes of findings."""
    of_findings = dict.fromkeys(f.detail["note"] for f in record.findings if "note" in f.detail)
    return [*record.notes, *_describe_other_work(record), *of_findings]


def _describe_other_work(record: Record) -> list[str]:
    """Say how much of the processors other programs used, if it was enough to make the figures doubtful."""
    share = measure_other_work([record])
    if not is_busy(share):
        return []
    # A worker's peers on the same machine count as other programs.
    who = "other programs and other workers" if "workers" in record.environment else "other programs"
    priced = any(finding.what_if for finding in record.findings)
    worse = "times and prices are less certain than their bounds" if priced else "times are less certain"
    return [f"{who} used {percent(share)} of the processors: {worse}"]


def evidence(finding: Finding) -> str:
    """Return a finding's evidence: `300 times · 5.0 s · 4.9 s waiting, 0.1 s copying · 1.2 KiB` and details."""
    parts = [finding.title]
    if finding.count and finding.bytes_saved is None:
        parts.append(f"{finding.count:,} {'ops' if 'ops' in finding.detail else 'times'}")
    if finding.seconds is not None:
        parts.append(duration(finding.seconds))
    if finding.wait_s is not None and finding.copy_s is not None:
        parts.append(f"{duration(finding.wait_s)} waiting, {duration(finding.copy_s)} copying")
    if finding.bytes and finding.bytes_saved is None:
        parts.append(size(finding.bytes))
    return " · ".join(parts + _details(finding))


def lost_outside_steps_s(finding: Finding, record: Record) -> float:
    """Return the seconds that a finding loses before the first step or after the last, which its price leaves out."""
    price = finding.what_if
    if price is None or price.share is None or not record.steps_per_s:
        return 0.0
    return max(0.0, (finding.lost_s or 0.0) - price.share * record.steps / record.steps_per_s)


def _details(finding: Finding) -> list[str]:
    detail = finding.detail
    parts = []
    for change in detail.get("changes", [])[:2]:
        parts.append(f"{change['argument']}: {change['from']} → {change['to']}")
    if "ops_per_step" in detail:
        parts.append(f"{detail['ops_per_step']:g} ops a step")
    if "objects" in detail:
        parts.append(quantity(detail["objects"], "function object"))
    if "models" in detail:
        parts.append(f"{quantity(detail['models'], 'model')}, {quantity(detail['traces'], 'trace')}")
    if "rows_per_call" in detail:
        parts.append(f"{detail['rows_per_call']:g} row{'s' * (detail['rows_per_call'] != 1)} a call")
    parts += _memory_details(finding)
    if "call_us" in detail:
        parts.append(f"{detail['call_us']} µs to call, {detail['compute_us']} µs to run")
    if detail.get("pipeline"):
        parts.append(" → ".join(detail["pipeline"]))
    if "tuner" in detail:
        parts.append(tuner_gain(detail["tuner"]))
    if "through" in detail:
        parts.append(f"read by {reader(finding)}")
    if detail.get("same_array"):
        parts.append("the same array every time")
    if len(detail.get("parts", ())) > 1:
        parts.append(
            "most in " + ", ".join(f"{short_path(p['file'])}:{p['line']}" for p in detail["parts"][:3])
        )
    if "collectives" in detail:
        parts.append(f"{quantity(detail['collectives'], 'exchange')} a step")
    if "worker" in detail:
        parts.append(f"worker {detail['worker']}, by its {detail['account']}")
    elif len(detail.get("workers", ())) > 1:
        parts.append(f"on {len(detail['workers'])} workers")
    if "callback" in detail:
        parts.append(f"{detail['callback']}.{detail['hook']}")
    return parts


def _memory_details(finding: Finding) -> list[str]:
    if finding.bytes_saved is None:
        return []
    detail = finding.detail
    parts = []
    if "bytes_per_step" in detail:
        parts.append(f"`{detail['name']}` grows by {size(detail['bytes_per_step'])} a step")
    if "copies" in detail:
        parts.append(f"{detail['copies']} copies of {size(finding.bytes or 0)}")
    if "training_bytes" in detail:
        parts.append(f"training needs {size(detail['training_bytes'])}")
    if "layer" in detail:
        parts.append(f"{detail['layer']} and others" if (finding.count or 0) > 1 else detail["layer"])
    if "shape" in detail:
        parts.append(f"{detail['dtype']}[{','.join(map(str, detail['shape']))}]")
    if detail.get("device"):
        parts.append(f"on {detail['device']}")
    return parts


def reader(finding: Finding) -> str:
    """Return the library call that reads, such as `plt.imshow(image)`, or an empty string if the line itself reads."""
    through = finding.detail.get("through")
    return finding.detail.get("call", f"{through}()") if through else ""


def tuner_gain(gain: TunerGain) -> str:
    """Return rates without a speed-up, which the price says: `the step takes 820/s, the input gives 310/s and ...`"""
    takes = "" if gain["step_per_s"] is None else f"the step takes {rate(gain['step_per_s'])}/s, "
    low, high = (rate(end) for end in gain["could_give_per_s"])
    could = low if low == high else f"{low} to {high}"
    return (
        f"{takes}the input gives {rate(gain['gives_per_s'])}/s and could give {could}/s with the tuner's "
        f"“{gain['change']}” ({gain['command'] or 'stoker.tune(ds)'} measures it)"
    )


def short_path(path: str) -> str:
    """Return a path, shortened to its last two parts if it is outside the working directory."""
    parts = path.replace("\\", "/").split("/")
    return path if parts[0] and len(path) <= _LONG_PATH else "…/" + "/".join(parts[-2:])


def rate(value: float) -> str:
    """Return a rate as text: `24.4`, `1,301`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
