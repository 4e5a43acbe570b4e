"""Tests on the software GPU. They run in a pytest of their own: TensorFlow takes a device only before it starts.

The parent starts a child for all such tests of a module (for one test under xdist, which deals tests out), and passes
on the reports that the child leaves in a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from stoker.doctor import software_gpu

_REPORTS = "STOKER_PYTEST_REPORTS"
_NAME = "software_gpu"


def is_child() -> bool:
    """Return whether this pytest was started for the software GPU."""
    return _REPORTS in os.environ


def enable() -> None:
    """Bring the software GPU up, if the environment asks for it."""
    software_gpu.enable_from_environment()


class Children:
    """Starts the children; in a child, writes the reports for the parent."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._known: dict[str, list[pytest.TestReport]] = {}

    def wants(self, item: pytest.Item) -> bool:
        """Return whether this test must run in a child."""
        asked = _NAME in getattr(item, "fixturenames", ()) or item.get_closest_marker(_NAME) is not None
        return asked and not software_gpu.is_enabled()

    def reports(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Return the reports of a test, from a child that may have run its neighbours, too."""
        if item.nodeid not in self._known:
            self._run(item)
        return self._known[item.nodeid]

    def pass_on(self, report: pytest.TestReport) -> None:
        """Write a report to where the parent finds it, if this is a child."""
        if is_child():
            data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            with open(os.environ[_REPORTS], "a", encoding="utf-8") as file:
                file.write(json.dumps(data) + "\n")

    def _run(self, item: pytest.Item) -> None:
        settings = _settings(item)
        together = [item]
        if not hasattr(self._config, "workerinput"):
            together = [
                other
                for other in item.session.items
                if other.path == item.path and self.wants(other) and _settings(other) == settings
            ]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "reports"
            environment = {
                **os.environ,
                **software_gpu.environment_for(**settings),
                _REPORTS: str(path),
                "CUDA_VISIBLE_DEVICES": "-1",
            }
            done = subprocess.run(
                self._command([other.nodeid for other in together]),
                cwd=self._config.rootpath,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            report = self._config.hook.pytest_report_from_serializable(
                config=self._config, data=json.loads(line)
            )
            self._known.setdefault(report.nodeid, []).append(report)
        for other in together:
            if not any(r.when == "teardown" for r in self._known.get(other.nodeid, [])):
                self._known.setdefault(other.nodeid, []).append(_report_broken_child(other, done))

    def _command(self, nodeids: list[str]) -> list[str]:
        config = self._config
        command = [sys.executable, "-m", "pytest", "-q", f"--rootdir={config.rootpath}"]
        if config.inipath is not None:
            command += ["-c", str(config.inipath)]
        if config.pluginmanager.has_plugin("xdist"):
            command += ["-n", "0"]
        command += [
            option for option in ("--stoker", "--stoker-fail-on-increase") if config.getoption(option)
        ]
        return [*command, *nodeids]


def _settings(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker(_NAME)
    return dict(marker.kwargs) if marker is not None else {}


def _report_broken_child(item: pytest.Item, done: subprocess.CompletedProcess[str]) -> pytest.TestReport:
    """Return the report of a test whose child ended before the test did."""
    output = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
    text = f"the process for the software GPU ended with code {done.returncode} before this test\n{output}"
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
