"""Canonical names of library objects: `tf.function` has the same name however a program imports it."""

from __future__ import annotations

import ast
import re

# Prefixes of dotted names, with the spelling that the analysis uses. The longest prefix wins.
_PREFIXES = {
    "tensorflow": "tf",
    "tensorflow.compat.v2": "tf",
    "tensorflow.compat.v1": "tf1",
    # The names inside TensorFlow are not its public names.
    "tensorflow.python": "tf_internal",
    "tensorflow.python.keras": "keras",
    "tensorflow.keras": "keras",
    "tensorflow.python.data": "tf.data",
    "tensorflow._api.v2": "tf",
    "tensorflow_core": "tf",
    "tf_keras": "keras",
    "keras.api": "keras",
    "keras.src": "keras_src",
    "keras.engine": "keras_src",
    "numpy": "np",
    "jax.numpy": "jnp",
    "tensorflow_datasets": "tfds",
    "tensorflow_addons": "tfa",
    "tensorflow_probability": "tfp",
    "tf.keras": "keras",
    # Short names that TensorFlow gives to parts of Keras.
    "tf.optimizers": "keras.optimizers",
    "tf.losses": "keras.losses",
    "tf.metrics": "keras.metrics",
    "tf.compat.v2": "tf",
    "tf.compat.v1": "tf1",
    "tf1.keras": "keras",
    "tf.experimental.numpy": "tnp",
    "keras.models.Model": "keras.Model",
    "keras.models.Sequential": "keras.Sequential",
    "keras.layers.Input": "keras.Input",
    "keras.layers.experimental.preprocessing": "keras.layers",
    "keras.layers.experimental": "keras.layers",
    "keras.utils.image_dataset_from_directory": "keras.preprocessing.image_dataset_from_directory",
    "keras.utils.text_dataset_from_directory": "keras.preprocessing.text_dataset_from_directory",
    "keras.optimizers.legacy": "keras.optimizers",
    "keras.optimizers.experimental": "keras.optimizers",
    "keras.config.set_floatx": "keras.backend.set_floatx",
    "tf.python_io": "tf1.python_io",
    "tf.Session": "tf1.Session",
    "tf.InteractiveSession": "tf1.InteractiveSession",
    "tf.placeholder": "tf1.placeholder",
    "tf.experimental.function": "tf.function",
}
_DEPTH = max(prefix.count(".") for prefix in _PREFIXES) + 1

# A file is worth analysing if it imports one of these.
TENSOR_ROOTS = frozenset({"tensorflow", "keras", "tf_keras", "tensorflow_core", "tensorflow_datasets"})
# Names that are never looked up among the project's own files.
LIBRARY_ROOTS = TENSOR_ROOTS | {"numpy", "tensorflow_addons", "tqdm", "torch", "sklearn"}
# The methods of a Keras callback that Keras calls at every batch.
BATCH_HOOK = re.compile(r"^on_(train_|test_|predict_)?batch_(begin|end)$")

_cache: dict[str, str] = {}


def find_canonical_name(dotted: str) -> str:
    """Return the canonical spelling of a library name: `tensorflow.compat.v2.keras.Model` -> `keras.Model`."""
    known = _cache.get(dotted)
    if known is None:
        known = dotted
        for _ in range(4):
            shorter = _replace_prefix(known)
            if shorter == known:
                break
            known = shorter
        _cache[dotted] = known
    return known


def _replace_prefix(dotted: str) -> str:
    parts = dotted.split(".")
    for size in range(min(len(parts), _DEPTH), 0, -1):
        target = _PREFIXES.get(".".join(parts[:size]))
        if target is not None:
            return ".".join([target, *parts[size:]])
    return dotted


def dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` for an expression of that form, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def last_name(node: ast.AST) -> str:
    """Return the name that a reader would use for an expression: `self.model` -> `model`, `nets[0]` -> `nets`."""
    while isinstance(node, (ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def bindings(scope: ast.AST, name: str) -> list[ast.AST]:
    """Return every node of a scope that binds a name, or declares it as global or nonlocal."""
    return [node for node in ast.walk(scope) if _binds(node, name)]


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return name in node.names
    if isinstance(node, ast.alias):
        return (node.asname or node.name.split(".", 1)[0]) == name
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == name
    return isinstance(node, ast.arg) and node.arg == name
