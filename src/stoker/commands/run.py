"""Run a program and say where every second went.

The program is not edited and does not notice: same output, same exit code. The ledger is printed to stderr
when it ends, however it ends, and kept under .stoker/runs/.

    stoker run train.py --epochs 3
    stoker run --html run.html train.py
    stoker run -m package.module args...
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.machinery
import os
import signal
import subprocess
import sys
import sysconfig
import tokenize
from importlib import metadata
from pathlib import Path
from typing import Any

from stoker import clock, config, software_gpu
from stoker.attach.tensorflow_versions import supported, unsupported_message
from stoker.commands._supervise import Supervisor
from stoker.diagnosis.record import RunFacts
from stoker.errors import UsageError
from stoker.measure.child import Settings
from stoker.records import Device, Record
from stoker.replay import prices
from stoker.report import console, output
from stoker.report.page import document
from stoker.software_gpu import profiles
from stoker.store import record_files
from stoker.version import __version__

_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-rocm", "tf-nightly")
# Before this release TensorFlow's C++ log level is fixed at start-up, and the profiler writes to it.
_LOG_LEVEL_IS_DYNAMIC = (2, 21)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options come before the program; everything after it is the program's."""
    parser.add_argument("--json", metavar="PATH", help="also write the record to PATH; - is stdout")
    parser.add_argument("--html", metavar="PATH", help="also write a page of the run to PATH")
    parser.add_argument("--quiet", action="store_true", help="save the record but print no ledger")
    parser.add_argument("--device", metavar="DEVICE", help="software-gpu, or software-gpu:N for N of them")
    parser.add_argument(
        "--device-memory", metavar="SIZE", default="8GiB", help="memory of each device, such as 8GiB"
    )
    parser.add_argument(
        "--device-profile",
        metavar="NAME",
        default="a100",
        help="t4, v100, a100, h100, or one of [tool.stoker.device-profiles]",
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="program args...")


def run(args: argparse.Namespace) -> int:
    """Check the request, run the program, report."""
    module = args.module is not None
    words = args.module if module else args.program
    if not words:
        raise UsageError("no program given: stoker run train.py, or stoker run -m package.module")
    target = words[0]
    if module:
        _check_module(target)
    else:
        _check_script(target)
    version = _tensorflow_version()
    if version is not None and not supported(version):
        raise UsageError(unsupported_message(version))
    if args.html:
        document.check(args.html)
    device = _device(args)
    record_files.prepare()
    facts = RunFacts(record_files.new_id(), target, words[1:], clock.utc_timestamp())
    path = record_files.path_of(facts.id)
    record_files.write(_empty_record(facts), path)
    command = _interpreter() + (["-m"] if module else []) + words
    supervisor = Supervisor(path, live=not args.quiet and sys.stderr.isatty())
    status = supervisor.run(command, _environment(path, facts, version, None if module else target, device))
    _report(path, status, args)
    return _end_like(status)


def _check_script(target: str) -> None:
    path = Path(target)
    if path.is_dir():
        raise UsageError(f"{target} is a directory: name a Python file, or use -m package")
    try:
        with tokenize.open(path) as file:
            compile(file.read(), target, "exec", dont_inherit=True)
    except FileNotFoundError:
        raise UsageError(f"no such file: {target}") from None
    except OSError as error:
        raise UsageError(f"cannot read {target}: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{target}:{line}" if line else target
        raise UsageError(f"{where} is not valid Python: {getattr(error, 'msg', error)}") from None


def _check_module(name: str) -> None:
    top = name.partition(".")[0]
    if importlib.machinery.PathFinder.find_spec(top, [os.getcwd(), *sys.path[1:]]) is None:
        raise UsageError(f"no module named {top!r}: is it installed in this environment?")


def _tensorflow_version() -> str | None:
    """The installed TensorFlow's version without importing it; None if it is not installed as a package."""
    for name in _DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _interpreter() -> list[str]:
    """This Python, with the flags it was started with (-W, -X, -O ...)."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags]


def _device(args: argparse.Namespace) -> dict[str, Any] | None:
    """The software GPU that was asked for, built by now; None if none was."""
    if args.device is None:
        return None
    name, _, count = args.device.partition(":")
    if name != "software-gpu" or not (count or "1").isdigit():
        raise UsageError(f"no device {args.device!r}: use software-gpu, or software-gpu:2 for two of them")
    profile = profiles.resolve(args.device_profile, config.load(Path()).device_profiles)
    settings = software_gpu.settings_of(int(count or 1), args.device_memory, profile)
    software_gpu.ensure_built()
    return {
        "count": settings.count,
        "memory": settings.memory,
        "profile": dataclasses.asdict(settings.profile),
    }


def _environment(
    path: Path, facts: RunFacts, version: str | None, script: str | None, device: dict[str, Any] | None
) -> dict[str, str]:
    environment = dict(os.environ)
    ours = version is not None and _log_level_needed(version) and "TF_CPP_MIN_LOG_LEVEL" not in environment
    if ours:
        environment["TF_CPP_MIN_LOG_LEVEL"] = "1"
    settings = Settings(str(path.resolve()), clock.now_ns(), facts, _user_root(script), ours, device)
    environment["STOKER_RUN"] = settings.to_json()
    door = str(Path(__file__).parent.parent / "bootstrap")
    own = environment.get("PYTHONPATH")
    if own is not None:
        environment["STOKER_PYTHONPATH"] = own
    environment["PYTHONPATH"] = os.pathsep.join([door, own] if own else [door])
    return environment


def _log_level_needed(version: str) -> bool:
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) < _LOG_LEVEL_IS_DYNAMIC


def _user_root(script: str | None) -> str | None:
    """The program's own directory, where it lies among the libraries and would be taken for one."""
    if script is None:
        return None
    directory = Path(script).resolve().parent
    libraries = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    return str(directory) if any(directory.is_relative_to(library) for library in libraries) else None


def _empty_record(facts: RunFacts) -> Record:
    """What is known before the program starts; all that is left if it dies at once."""
    return Record(
        id=facts.id,
        program=facts.program,
        argv=facts.argv,
        exit_code=None,
        versions={"stoker": __version__},
        device=Device(),
        wall_s=0.0,
        steps=0,
        steps_per_s=None,
        examples_per_s=None,
        accounts={},
        findings=[],
        started=facts.started,
        state="running",
    )


def _report(path: Path, status: int, args: argparse.Namespace) -> None:
    exit_code = status if status >= 0 else 128 - status
    record = prices.priced(
        dataclasses.replace(record_files.read(path), exit_code=exit_code, state="finished")
    )
    record_files.write(record, path)
    if not args.quiet:
        console.show(record, path)
    if args.json:
        output.write_record(args.json, record)
    if args.html:
        output.write(args.html, document.page(record))
        if not args.quiet:
            print(f"page: {args.html}", file=sys.stderr)


def _end_like(status: int) -> int:
    """End as the program did: with its exit code, or by the signal that ended it."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    _no_core_dump()
    signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -status)
    return 128 - status


def _no_core_dump() -> None:
    """The program has left its own core, if any; ours would only replace it."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
