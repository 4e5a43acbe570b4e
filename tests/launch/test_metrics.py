"""`stoker launch --metrics`: the ledger of a job, where Prometheus' node_exporter collects it."""

from __future__ import annotations

from pathlib import Path

from tests.launch.support import launch, run_refused


def test_the_file_has_the_end_of_a_job_that_was_restarted(tmp_path: Path) -> None:
    program = "sys.exit(3 if restart == 0 and rank == 1 else 0)"
    out = launch(tmp_path, program, "-n", "2", "--metrics", "job.prom", "--price", "3.60/h")
    assert out.code == 0, out.stderr
    text = (tmp_path / "job.prom").read_text()
    (job,) = (path.name for path in (tmp_path / ".stoker" / "jobs").iterdir())
    assert f'stoker_job_restarts{{job="{job}"}} 1\n' in text
    assert f'stoker_job_running{{job="{job}"}} 0\n' in text
    assert f'stoker_job_cost{{job="{job}",account="startup"}}' in text
    assert (tmp_path / "job.prom").stat().st_mode & 0o044


def test_a_file_that_nobody_collects_is_refused(tmp_path: Path) -> None:
    code, said = run_refused(tmp_path, "--metrics", "job.txt", "train.py")
    assert (code, said.count("\n")) == (2, 1)
    assert "node_exporter reads only files that end in .prom" in said
    code, said = run_refused(tmp_path, "--metrics", "nowhere/job.prom", "train.py")
    assert code == 2
    assert "there is no directory nowhere" in said
