"""Tell whether TensorFlow has read its settings, without importing it.

This is not in `devices`, because `import stoker` leads here, and must lead nowhere that imports TensorFlow.
"""

from __future__ import annotations

import sys


def has_started() -> bool:
    """Return whether TensorFlow has looked for devices. From then on it reads no more XLA variables."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = getattr(module, "_context", None)
    return bool(getattr(context, "_initialized", False))
