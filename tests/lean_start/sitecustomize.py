"""Programs that the tests start load TensorFlow in half the CPU time.

Keras imports scikit-learn, and with it half of SciPy, for a wrapper that no test uses, and IPython for its file editor.
Few users have either beside TensorFlow. This directory is on PYTHONPATH (see tests/conftest.py) and makes Keras
believe that they are missing; whoever else imports them gets them. And Python looks for no garbage while TensorFlow
loads: there is none, and looking through all that is loaded, again and again, takes a fifth of the time.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec

# What is hidden, and from which modules of Keras.
HIDDEN = {"sklearn": "keras.src.wrappers", "IPython": "keras.src.saving"}
# Loaded early by TensorFlow; and asked for near the end, by Keras.
_FIRST, _LAST = "tensorflow.python", "sklearn"


class _HiddenFromKeras:
    """The first finder to be asked. It finds nothing, and raises where others would find what Keras can do without."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == _FIRST and gc.isenabled():
            gc.disable()
        if name not in HIDDEN:
            return None
        importer = sys._getframe(1)
        while importer.f_back and importer.f_globals.get("__name__", "").startswith(
            ("importlib", "_frozen_imp")
        ):
            importer = importer.f_back
        if not importer.f_globals.get("__name__", "").startswith(HIDDEN[name]):
            return None
        if name == _LAST:
            gc.enable()
        raise ModuleNotFoundError(f"{name} is hidden from Keras", name=name)


sys.meta_path.insert(0, _HiddenFromKeras())
