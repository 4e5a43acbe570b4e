"""The type of every argument that is a file or a directory of this machine."""

from __future__ import annotations

import glob
import os

from stoker.errors import ArgumentError, UsageError, check_local_path


def local_path(text: str) -> str:
    """Return the path, or refuse the address of a bucket or a server before anything begins."""
    try:
        check_local_path(text)
    except ArgumentError as error:
        # argparse would replace the message of a ValueError.
        raise UsageError(str(error)) from None
    return text


def data_path(text: str) -> str:
    """Return a file, folder or glob that exists: better now than after the seconds that TensorFlow takes to load."""
    local_path(text)
    path = os.path.expanduser(text)
    if not os.path.exists(path) and not glob.glob(path, recursive=True):
        raise UsageError(f"there is no file or folder {text}")
    return text


def named_path(text: str) -> str:
    """Return `PATH` or `NAME=PATH`, checked in the same way."""
    local_path(text)
    local_path(text.partition("=")[2])
    return text
