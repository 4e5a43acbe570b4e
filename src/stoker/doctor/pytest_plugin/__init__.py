"""The guard in pytest: limits as markers, counts of every test, tests on the software GPU.

    @pytest.mark.limit_syncs(0, per_step=True, warmup=2)
    @pytest.mark.limit_copies("1 MiB")
    @pytest.mark.limit_retraces(1)
    @pytest.mark.limit_eager_ops(500)

A passed test over a limit becomes a failed one. `pytest --stoker` prints the counts of every test, and
`--stoker-fail-on-increase` compares them with the last passing run. A test with the fixture `software_gpu`, or the
marker of that name, runs on the software GPU.

Loading this plug-in does not import TensorFlow: only a marked test, or an option, does.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from stoker.doctor.pytest_plugin import child
from stoker.doctor.pytest_plugin.counts import Counts
from stoker.errors import StokerError

MARKERS = {
    "limit_syncs": "syncs",
    "limit_copies": "copies",
    "limit_retraces": "retraces",
    "limit_eager_ops": "eager_ops",
}
_MARKER_HELP = {
    "limit_syncs": "the most reads of tensors, as a count or a size",
    "limit_copies": 'the most host data copied in, as a size such as "1 MiB" or a count',
    "limit_retraces": "the most functions traced again",
    "limit_eager_ops": "the most ops dispatched one by one",
}
_REPORTS: pytest.StashKey[list[Any]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("stoker", "TensorFlow throughput")
    group.addoption("--stoker", action="store_true", help="print every test's syncs, copies and retraces")
    group.addoption(
        "--stoker-fail-on-increase",
        action="store_true",
        help="fail a test that syncs, copies or retraces more than in the last passing run",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers. In a child for the software GPU, bring that up before anything else."""
    for name, text in _MARKER_HELP.items():
        config.addinivalue_line("markers", f"{name}(most, per_step=False, warmup=0): {text}")
    config.addinivalue_line("markers", "software_gpu(count=1, memory='8GiB', profile='a100'): run there")
    counting = config.getoption("--stoker") or config.getoption("--stoker-fail-on-increase")
    if counting and importlib.util.find_spec("tensorflow") is None:
        raise pytest.UsageError("--stoker counts what TensorFlow does, and TensorFlow is not installed")
    try:
        child.enable()
    except StokerError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(_Plugin(config, bool(counting)), "stoker-guard")


@pytest.fixture
def software_gpu() -> Any:
    """Run the test on the software GPU, in a process of its own. Counters start at zero."""
    from stoker.doctor import software_gpu as device

    if not device.is_enabled():
        pytest.fail(
            "name software_gpu among the test's own arguments, or mark it: it needs its own process", False
        )
    device.reset()
    return device


class _Plugin:
    """The hooks of one session."""

    def __init__(self, config: pytest.Config, counting: bool) -> None:
        self._config = config
        self._counting = counting
        self._counts = Counts(config)
        self._children = child.Children(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not self._children.wants(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._children.reports(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        # This item was never set up here, but the item before it left what the two share.
        item.session._setupstate.teardown_exact(nextitem)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            guards = list(self._guards(item))
        except StokerError as error:
            pytest.fail(str(error), pytrace=False)
        with contextlib.ExitStack() as stack:
            item.stash[_REPORTS] = [stack.enter_context(guard) for guard in guards]
            return (yield)

    def _guards(self, item: pytest.Item) -> Iterator[Any]:
        """Yield the guards of a test: one for all counts, and one per marker, with steps and a warm-up of its own."""
        from stoker.doctor.guard import guard

        nothing: dict[str, Any] = dict.fromkeys(MARKERS.values())
        if self._counting:
            yield guard(**nothing, action="record")
        for name, kind in MARKERS.items():
            marker = item.get_closest_marker(name)
            if marker is None:
                continue
            options = {"per_step": False, "warmup": 0, **marker.kwargs}
            if len(marker.args) != 1 or options.keys() != {"per_step", "warmup"}:
                raise StokerError(f"write @pytest.mark.{name}(most), with per_step= and warmup= if you like")
            yield guard(**{**nothing, kind: marker.args[0]}, **options, action="record")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        reports = item.stash.get(_REPORTS, [])
        if call.when == "call" and reports:
            self._judge(report, reports)
        return report

    def _judge(self, report: pytest.TestReport, reports: list[Any]) -> None:
        problems = [counted.text() for counted in reports if counted.over]
        if self._counting:
            # Plain values, because the report travels from a worker to the terminal as JSON.
            report.stoker = self._counts.row(reports[0])  # type: ignore[attr-defined]
            if self._config.getoption("--stoker-fail-on-increase"):
                problems += self._counts.increases(report.nodeid, reports[0])
        if problems and report.passed and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = "stoker: " + "; ".join(problem.splitlines()[0] for problem in problems)
            report.sections.append(("stoker", "\n".join(problems)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._counts.take(report)
        self._children.pass_on(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._config.getoption("--stoker"):
            self._counts.show(terminalreporter)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._counting and exitstatus == 0:
            self._counts.save()
