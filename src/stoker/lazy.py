"""Import names of a package only when they are used, so that importing the package stays quick.

Why not lazy-loader? It is as quick (0.3 ms), but does not say which extra to install when a package is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from stoker.errors import name_extra


def import_when_used(
    package: str, homes: Mapping[str, str], instead: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package.

    If a module is missing because an extra is not installed, the error is one line that names the extra.

    Args:
        package: the package's name.
        homes: for each name, the module that defines it; for a module of the package, the module itself.
        instead: for a missing package, the package whose extra to name.
    """

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(home)
        except ModuleNotFoundError as error:
            missing = (instead or {}).get(error.name or "", error.name)
            line = name_extra(f"{package}.{name}", ModuleNotFoundError(name=missing))
            if line is None:
                raise
            raise line from None
        return module if home == f"{package}.{name}" else getattr(module, name)

    return find
