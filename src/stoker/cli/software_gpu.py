"""Show whether the software GPU is built, where and for which TensorFlow, and try it out.

The software GPU is a device that TensorFlow programs see as /GPU:0, on a machine that has none. It is built
once per TensorFlow version, at first use or with --build.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys

from stoker.doctor.software_gpu import build
from stoker.doctor.software_gpu.profiles import PROFILES
from stoker.printing import print_answer, print_note


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker software-gpu`."""
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--status", action="store_true", help="only report the state; build and run nothing")
    action.add_argument("--build", action="store_true", help="only build it, if it is not built yet")
    action.add_argument("--clean", action="store_true", help="remove all builds from the cache")


def run(args: argparse.Namespace) -> int:
    """Show the state, then build and test, unless an option says otherwise."""
    if args.clean:
        return _clean()
    tensorflow = build.installed_tensorflow()
    library = build.library_path(tensorflow)
    print_answer(f"TensorFlow  {tensorflow.version} ({tensorflow.distribution})")
    print_answer(f"compiler    {build.compiler() or 'none: install g++ or set CXX'}")
    print_answer(f"plug-in     {library}" if library.exists() else "plug-in     not built")
    print_answer(f"profiles    {', '.join(PROFILES)}")
    if args.status:
        return 0
    if not library.exists():
        print_answer(f"built       {build.ensure_built()}")
    return 0 if args.build else _self_test()


def _clean() -> int:
    directory = build.cache_directory()
    if directory.exists():
        shutil.rmtree(directory)
        print_answer(f"removed {directory}")
    else:
        print_answer(f"nothing to remove in {directory}")
    return 0


def _self_test() -> int:
    """Run in a separate process: TensorFlow accepts a device only before it starts, and it prints freely."""
    command = [sys.executable, "-m", "stoker.doctor.software_gpu.self_test"]
    done = subprocess.run(command, capture_output=True, text=True)
    print_answer(done.stdout, end="")
    if done.returncode != 0:
        print_note("self-test   failed", prefix="")
        print_note("\n".join(done.stderr.splitlines()[-5:]), prefix="")
        return 1
    return 0
