"""OpenTelemetry: a server's requests as spans, its counts as metrics, sent over OTLP.

| module | subject |
|---|---|
| requests | what is noted about a request while it is answered: very little, and nothing when telemetry is off |
| environment | what the standard environment variables ask for |
| spans | turning notes into spans |
| counts | turning the counts of `/metrics` into metrics |
| sending | the thread that does both, and gives way to requests |
| starting | starting it all in one process; any fault is just a line in the log |

The hot path imports only `requests`, which needs no package of the extra `stoker[otel]`.
"""
