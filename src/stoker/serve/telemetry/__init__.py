"""OpenTelemetry: a server's requests as spans, its counts as metrics, sent over OTLP.

| module | subject |
|---|---|
| requests | what is noted of a request while it is answered: next to nothing, and nothing at all when it is off |
| environment | what the standard environment variables ask for |
| spans | notes become spans |
| counts | the counts of `/metrics` become metrics |
| sending | the thread that does both, and gives way to the requests |
| starting | all of it for one process; whatever is wrong is a line in the log and no more |

The hot path imports `requests` alone, which needs no package of the extra `stoker[otel]`.
"""
