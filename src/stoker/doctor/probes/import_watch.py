"""Running a hook right after TensorFlow or Keras has been imported, and no sooner."""

from __future__ import annotations

import importlib.machinery
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType

from stoker.doctor.probes.recorder import STARTUP, Recorder


class ImportWatcher(MetaPathFinder):
    """Runs a hook right after one of the named modules has been imported."""

    def __init__(self, hooks: Mapping[str, Callable[[ModuleType], None]], recorder: Recorder) -> None:
        self._hooks = dict(hooks)
        self._recorder = recorder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        hook = self._hooks.get(fullname)
        if hook is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            # Finding is not importing: TensorFlow looks for Keras a dozen times before it loads it.
            spec.loader = _LoaderWithHook(spec.loader, hook, self._recorder)
        return spec


class _LoaderWithHook(Loader):
    """The module's own loader, followed by our hook. It leaves no trace on the module."""

    def __init__(self, loader: Loader, hook: Callable[[ModuleType], None], recorder: Recorder) -> None:
        self._loader = loader
        self._hook = hook
        self._recorder = recorder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        on_books = self._recorder.on_main_thread()
        if on_books:
            self._recorder.enter(STARTUP)
        try:
            self._loader.exec_module(module)
        finally:
            if on_books:
                self._recorder.leave()
        try:
            self._hook(module)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            self._recorder.note(f"could not attach to {module.__name__} ({type(error).__name__}: {error})")
