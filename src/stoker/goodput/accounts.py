"""What the time of a worker is spent on. Every moment of a job is on one account for each of its workers."""

from __future__ import annotations

PRODUCTIVE = "productive"
RECOMPUTED = "recomputed"
STARTUP = "startup"
COMPILING = "compiling"
RESTORING = "restoring"
SAVING = "saving"
DATA = "data"
PEERS = "peers"
OTHER = "other"
IDLE = "idle"

# In the order in which they are shown, with what a reader sees.
MEANINGS = {
    PRODUCTIVE: "steps whose results count",
    RECOMPUTED: "steps that were lost: after the last checkpoint",
    STARTUP: "starting workers, imports, making the model",
    COMPILING: "tracing, compiling, trying XLA",
    RESTORING: "reading checkpoints",
    SAVING: "steps held up by a checkpoint",
    DATA: "waiting for data",
    PEERS: "waiting for other workers",
    OTHER: "validation, callbacks, the program's own code",
    IDLE: "no process: between a fault and the next start",
}

ACCOUNTS = tuple(MEANINGS)

# What a worker that trains is doing between two events, until they say more.
TRAINING = "training"
