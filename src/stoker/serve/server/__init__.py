"""The processes of `stoker serve`.

| module | subject |
|---|---|
| running | one process that serves, from loading to its graceful end |
| supervising | the parent of several workers |
| sockets | listening on an address nobody else has; taking no more connections before the end |
| log | lines to stderr, which no request waits for |
"""
