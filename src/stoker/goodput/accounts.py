"""What a worker spends its time on. For each worker, every moment of a job belongs to exactly one account."""

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

# In the order in which the ledger shows them, with the words that it shows.
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

# The phase of a worker that trains, until its events say more.
TRAINING = "training"
