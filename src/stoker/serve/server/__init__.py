"""The processes of `stoker serve`.

| module | subject |
|---|---|
| running | one serving process, from loading to its graceful end |
| supervising | the parent of several workers |
| sockets | listening on an address that nobody else uses; refusing new connections before the end |
| log | log lines to stderr, written without holding up a request |
"""
