"""Find out which files are the user's own, and which line in them a call came from.

A site is never in TensorFlow, Keras, NumPy, the standard library, site-packages or Stoker. The exception is a
program that itself lives in site-packages (`stoker run -m package.module`): then its package is the user's.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType
from typing import Any

import stoker
from stoker.doctor.attach.announced import LOOP_PACKAGES

# file, line, function
SiteKey = tuple[str, int, str]

# How far a frame is from the user's request: the user's own code; libraries that only pass a request on (NumPy, tqdm,
# `Tensor.__float__`); the inside of TensorFlow and Keras, which reads values for its own purposes; tf.data and the
# savers, which act only for themselves; the loops of Keras and of Stoker's trainer.
USER, LIBRARY, FRAMEWORK, INTERNAL, KERAS_LOOP = range(5)

# What runs below these files is not the user's doing, except a user's callback: its frame is found first.
_INTERNAL_PARTS = tuple(
    part.replace("/", os.sep)
    for part in (
        "/keras/src/callbacks/",
        "/keras/src/saving/",
        "/keras/src/utils/progbar.py",
        "/keras/src/utils/summary_utils.py",
        "/tensorflow/python/data/",
        "/tensorflow/python/checkpoint/",
        "/tensorflow/python/saved_model/",
        "/tensorflow/python/distribute/",
        "/tensorflow/python/training/",
    )
)

_KERAS_LOOP_PARTS = tuple(
    part.replace("/", os.sep) for part in ("/keras/src/trainers/", "/keras/src/backend/tensorflow/trainer.py")
)

# The parts of TensorFlow and Keras that read a tensor because the program asks for its value.
_ON_REQUEST_PARTS = tuple(
    part.replace("/", os.sep)
    for part in (
        "/tensorflow/python/framework/ops.py",
        "/tensorflow/python/framework/tensor.py",
        "/tensorflow/python/ops/resource_variable_ops.py",
        "/tensorflow/python/ops/variables.py",
        "/tensorflow/python/ops/cond",
        "/tensorflow/python/ops/while",
        "/tensorflow/python/ops/ragged/ragged_tensor.py",
        "/tensorflow/python/util/",
        "/tensorflow/python/dlpack/",
        "/keras/src/backend/tensorflow/core.py",
        "/keras/src/backend/common/variables.py",
        "/keras/src/ops/",
        "/keras/src/layers/layer.py",
        "/keras/src/models/",
        "/keras/src/metrics/",
        "/keras/src/optimizers/",
        "/keras/src/utils/",
    )
)

OWN_ROOT = os.path.dirname(os.path.abspath(stoker.__file__)) + os.sep
# Stoker's own loops count as loops, like Keras'.
_REAL_ROOT = os.path.join(os.path.realpath(OWN_ROOT), "")
_OWN_LOOPS = tuple(os.path.join(_REAL_ROOT, package, "") for package in LOOP_PACKAGES)
_MOST_COUNTED = 20


def count_site(sites: dict[SiteKey, int], site: SiteKey | None) -> None:
    """Count a line of the user's, if there is one. Only the first lines are kept."""
    if site is not None and (site in sites or len(sites) < _MOST_COUNTED):
        sites[site] = sites.get(site, 0) + 1


def is_own_loop(filename: str) -> bool:
    """Return whether a file belongs to the loops of Stoker's trainer, which announces its work."""
    return os.path.realpath(filename).startswith(_OWN_LOOPS)


class Sites:
    """Finds the user's line on the stack. Each file is classified only once, for speed."""

    def __init__(self, user_root: str | None = None) -> None:
        paths = sysconfig.get_paths()
        roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._library_roots = tuple(os.path.realpath(root) + os.sep for root in roots)
        self._user_root = os.path.realpath(user_root) + os.sep if user_root else None
        self.kinds: dict[str, int] = {}
        # The column of each site's call, looked up once.
        self.columns: dict[SiteKey, int] = {}

    def kind_of(self, filename: str) -> int:
        """Return how far code in this file is from the user's request."""
        kind = self.kinds.get(filename)
        if kind is None:
            kind = self.kinds[filename] = self._classify(filename)
        return kind

    def _classify(self, filename: str) -> int:
        if filename.startswith("<"):
            # `<frozen importlib>`, `<string>`, `<__array_function__ internals>`. A typed-in program is the user's.
            return USER if filename.startswith(("<stdin>", "<ipython-input")) else LIBRARY
        path = os.path.realpath(filename)
        if is_own_loop(path):
            return KERAS_LOOP
        if path.startswith(_REAL_ROOT) or os.path.basename(path).startswith("__autograph_generated_file"):
            return LIBRARY
        if self._user_root and path.startswith(self._user_root):
            return USER
        if path.startswith(self._library_roots) or f"{os.sep}site-packages{os.sep}" in path:
            if any(part in path for part in _KERAS_LOOP_PARTS):
                return KERAS_LOOP
            if any(part in path for part in _INTERNAL_PARTS):
                return INTERNAL
            framework = any(f"{os.sep}{name}{os.sep}" in path for name in ("tensorflow", "keras"))
            return FRAMEWORK if framework and not any(part in path for part in _ON_REQUEST_PARTS) else LIBRARY
        return USER

    def through(self) -> str:
        """Return the library function that the user's line called to get here, such as `matplotlib.pyplot.imshow`.

        Return "" if the line itself makes the request, or makes it through TensorFlow, Keras or NumPy.
        """
        frame: FrameType | None = sys._getframe(1)
        outermost: FrameType | None = None
        while frame is not None and self.kind_of(frame.f_code.co_filename) != USER:
            outermost, frame = frame, frame.f_back
        if frame is None or outermost is None or outermost.f_code.co_filename.startswith(OWN_ROOT):
            return ""
        module = str(outermost.f_globals.get("__name__", ""))
        own = module.split(".")[0] in ("tensorflow", "keras", "numpy", "stoker", "")
        return "" if own else f"{module}.{outermost.f_code.co_name}"

    def caller(self, nearer_than: int = KERAS_LOOP + 1) -> tuple[SiteKey | None, int]:
        """Return the innermost line of the user's on the stack, and the farthest kind of frame in between.

        The search gives up, without a line, at the first frame of kind `nearer_than` or beyond.
        """
        farthest = LIBRARY
        frame: FrameType | None = sys._getframe(1)
        kinds = self.kinds
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(code.co_filename)
            if kind is None:
                kind = self.kind_of(code.co_filename)
            if kind == USER:
                key = (code.co_filename, frame.f_lineno, code.co_name)
                if key not in self.columns:
                    self.columns[key] = _column(code, frame.f_lasti)
                return key, farthest
            if kind > farthest:
                if kind >= nearer_than:
                    return None, kind
                farthest = kind
            frame = frame.f_back
        return None, farthest


def _column(code: CodeType, lasti: int) -> int:
    """Return the column of the running call, from 1; 0 before Python 3.11, which does not report it."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return 0
    for index, position in enumerate(positions()):
        if index == lasti // 2:
            return (position[2] or 0) + 1
    return 0


def shown_path(path: str) -> str:
    """Return a path as reports show it: relative if below the working directory; a notebook's cell by its number."""
    cell = cell_number(path)
    if cell:
        return f"cell {cell}"
    if not os.path.isabs(path):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def cell_number(path: str) -> str:
    """Return the number of the notebook's cell that IPython calls by this path; empty if the path is not a cell's."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # IPython returns ("Cell", "In[4]") for its own code, and None for anything else.
    name = None if shell is None else shell.compile.format_code_name(path)
    return "" if name is None else "".join(filter(str.isdigit, name[1]))


def site_columns(site: SiteKey | None) -> dict[str, Any]:
    """Return a site as columns of a table; no columns if there is no site."""
    return {"file": shown_path(site[0]), "line": site[1], "function": site[2]} if site else {}


def definition(function: object) -> SiteKey | None:
    """Return where a Python function is defined: file, line, name."""
    seen = 0
    while seen < 10:
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None:
            break
        function, seen = inner, seen + 1
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno, code.co_name) if isinstance(code, CodeType) else None
