"""Files that are not on this disk: URLs of buckets and servers, through fsspec and its backends.

    local_path("s3://bucket/train/*.parquet")   # a path on this machine that stands for the same files
    put_tree(Path("bundle"), "s3://bucket/bundle", last="bundle.json")

| module | subject |
|---|---|
| remote | the files behind a URL: list, read, write, delete; retries; errors in one line, without secrets |
| kept | the copies on this machine: fetched once, shared by all processes |
| fetching | how a copy is fetched, and how its files can be read as they arrive |
| copies, room | one copy; the limit for all copies, kept by removing the least recently used |

Code that takes paths asks `is_url` and then works on the local path. The backends find credentials in their own ways
(environment, configuration files, the role of the machine); Stoker neither takes nor keeps any.
"""

from stoker.storage.fetching import Fetch
from stoker.storage.kept import (
    arriving,
    begin_copy,
    folder_of,
    has_changed,
    local_path,
    origin_of,
    version_of,
)
from stoker.storage.remote import is_url, list_names, put_tree, read_bytes, show_url

__all__ = [
    "Fetch",
    "arriving",
    "begin_copy",
    "folder_of",
    "has_changed",
    "is_url",
    "list_names",
    "local_path",
    "origin_of",
    "put_tree",
    "read_bytes",
    "show_url",
    "version_of",
]
