"""Joins a job that a scheduler started without `stoker launch`, such as `srun python train.py` or Ray Train.

environments.enter()
strategy = tf.distribute.MultiWorkerMirroredStrategy()
"""

from __future__ import annotations

import json
import os

from stoker.launch.place import RANK, SIZE, WorkerPlace, build_tf_config
from stoker.launch.schedulers import detect


def enter() -> WorkerPlace:
    """Find this process's place in its job, and set TF_CONFIG accordingly. Call it before creating a strategy.

    Raises:
        UsageError: the scheduler's variables are missing or contradict each other.
    """
    place = detect(os.environ).find_place()
    if place.size > 1:
        os.environ["TF_CONFIG"] = json.dumps(build_tf_config(place))
        os.environ |= {RANK: str(place.rank), SIZE: str(place.size)}
    return place
