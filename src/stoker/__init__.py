"""Stoker keeps TensorFlow programs at full throughput.

    $ stoker run train.py          # where every second goes, and which line spends it

Importing this package never imports TensorFlow.
"""

from stoker.version import __version__

__all__ = ["__version__"]
