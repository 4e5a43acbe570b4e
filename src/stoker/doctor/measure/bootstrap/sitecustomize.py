"""How Stoker enters an unmodified program: Python imports `sitecustomize` before the program starts.

`stoker run` and `stoker launch` put this directory first on PYTHONPATH and run the program with the same Python. This
module undoes that at once, imports the environment's own `sitecustomize`, starts a worker's heartbeat, and has the
probes watch for TensorFlow. From then on the program runs as if started by hand: same argv, same `__main__`, same
everything.
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


def _enter() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    # Stoker reads these variables when it is imported.
    import stoker  # noqa: F401

    settings = os.environ.pop("STOKER_RUN", None)
    heartbeat = os.environ.pop("STOKER_HEARTBEAT", None)
    events = os.environ.pop("STOKER_EVENTS", None)
    own_path = os.environ.pop("STOKER_PYTHONPATH", None)
    if own_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = own_path
    if events is not None:
        from stoker.goodput.journal import begin as begin_journal

        begin_journal(events)
    _own_sitecustomize()
    if heartbeat is not None:
        from stoker.doctor.measure.worker_heartbeat import begin

        begin(heartbeat)
    if settings is not None:
        from stoker.doctor.measure.child import attach

        attach(settings)


_enter()
