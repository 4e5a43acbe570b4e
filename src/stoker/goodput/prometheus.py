"""The ledger of a job in Prometheus' text format, with the job's id as a label."""

from __future__ import annotations

from stoker.goodput.ledger import JobLedger, Price

_HELP = {
    "stoker_job_goodput_ratio": "Share of the job's wall time spent on steps that count.",
    "stoker_job_wall_seconds": "Seconds since the job began, over all its restarts.",
    "stoker_job_account_seconds": "Seconds of the job by account; they sum to its wall time.",
    "stoker_job_lost_seconds": "Seconds of the job lost, by cause.",
    "stoker_job_cost": "What the workers cost so far, by account, at the price given with --price.",
    "stoker_job_steps": "Steps that count.",
    "stoker_job_lost_steps": "Steps that were run and then lost.",
    "stoker_job_workers": "The largest number of workers that ran at once.",
    "stoker_job_restarts": "How many times all workers were started again.",
    "stoker_job_running": "1 until the end of the job is seen.",
}


def format_metrics(ledger: JobLedger, price: Price | None = None) -> str:
    """Format the ledger as gauges. Counters would not do: a step that counted may be lost later."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {
        "stoker_job_goodput_ratio": [] if ledger.goodput is None else [({}, ledger.goodput)],
        "stoker_job_wall_seconds": [({}, ledger.wall_s)],
        "stoker_job_account_seconds": [({"account": name}, spent) for name, spent in ledger.accounts.items()],
        "stoker_job_lost_seconds": [({"cause": cause.what}, cause.seconds) for cause in ledger.causes],
        "stoker_job_cost": []
        if price is None
        else [({"account": name}, price.of(spent)) for name, spent in ledger.worker_s.items()],
        "stoker_job_steps": [({}, ledger.steps)],
        "stoker_job_lost_steps": [({}, ledger.lost_steps)],
        "stoker_job_workers": [({}, ledger.workers)],
        "stoker_job_restarts": [({}, ledger.restarts)],
        "stoker_job_running": [({}, int(ledger.state == "running"))],
    }
    lines: list[str] = []
    for name, samples in found.items():
        if samples:
            lines += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge"]
        lines += [
            f"{name}{{{_labels({'job': ledger.job, **labels})}}} {value!r}" for labels, value in samples
        ]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
