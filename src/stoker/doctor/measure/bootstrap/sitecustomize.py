"""How Stoker enters an unmodified program: Python imports `sitecustomize` before the program starts.

`stoker run` and `stoker launch` put this directory first on PYTHONPATH and run the program with the same Python. This
module undoes that at once, imports the environment's own `sitecustomize`, starts a worker's heartbeat, and has the
probes watch for TensorFlow. A worker's spare waits here until it is needed. From then on the program runs as if started
by hand: same argv, same `__main__`, same everything.
"""

import os
import sys


def _own_sitecustomize() -> None:
    """Import the `sitecustomize` that this one hides, if the environment has one."""
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


def _take_variables() -> "list[str | None]":
    """Remove our variables from the environment, so that processes that the program starts inherit none of them."""
    names = ("STOKER_RUN", "STOKER_HEARTBEAT", "STOKER_EVENTS", "STOKER_SPARE", "STOKER_IMPORTS")
    values = [os.environ.pop(name, None) for name in names]
    own_path = os.environ.pop("STOKER_PYTHONPATH", None)
    if own_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = own_path
    return values


def _enter() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    # Stoker reads these variables when it is imported.
    import stoker  # noqa: F401

    settings, heartbeat, events, spare, notes = _take_variables()
    if spare is not None:
        from stoker.compilations import keep_compilations
        from stoker.doctor.measure.worker_spare import wait_for_place

        before = dict(os.environ)
        _own_sitecustomize()
        wait_for_place(spare, before)
        keep_compilations()
        settings, heartbeat, events, _, notes = _take_variables()
    if events is not None:
        from stoker.goodput.journal import begin as begin_journal

        begin_journal(events)
    if spare is None:
        _own_sitecustomize()
    if notes is not None:
        from stoker.doctor.measure.worker_spare import note_imports

        note_imports(notes)
    if heartbeat is not None:
        from stoker.doctor.measure.worker_heartbeat import begin

        begin(heartbeat)
    if settings is not None:
        from stoker.doctor.measure.child import attach

        attach(settings)


_enter()
