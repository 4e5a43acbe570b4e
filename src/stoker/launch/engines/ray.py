"""Ray: an agent on each node of a cluster, as an actor that holds the processors of its workers.

Ray finds the nodes and carries what supervisor and agents say; TF_CONFIG is ours. Ray's own TensorflowTrainer is not
used: it switches to the old Keras (TF_USE_LEGACY_KERAS=1).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

from stoker.errors import UsageError
from stoker.launch.hosts import Host, Size, share
from stoker.launch.links import AGENT, Inbox, Link
from stoker.launch.messages import decode, encode

_CHUNK = 64 * 1024


class Carrier:
    """Runs on a node, as an actor: an agent's process, and what it says."""

    def __init__(self, directory: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory
        )

    def say(self, line: bytes) -> None:
        """To the agent."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def hear(self) -> bytes:
        """What the agent says next; nothing when it has ended."""
        assert self._process.stdout is not None
        return os.read(self._process.stdout.fileno(), _CHUNK)


class RayLink:
    """An agent behind an actor."""

    def __init__(self, name: str, actor: Any, inbox: Inbox) -> None:
        self._name, self._actor, self._inbox = name, actor, inbox
        threading.Thread(target=self._hear, daemon=True).start()

    def send(self, say: str, **fields: object) -> None:
        """Say something; to an agent that is gone, nothing."""
        self._actor.say.remote(encode(say, **fields))

    def close(self) -> None:
        """End the agent, and its workers with it."""
        import ray

        ray.kill(self._actor)

    def _hear(self) -> None:
        import ray

        rest = b""
        why = {"say": "gone", "status": 1}
        try:
            while data := ray.get(self._actor.hear.remote()):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._inbox.put((self._name, decode(line)))
        except ray.exceptions.RayError as error:
            text = str(error).strip().splitlines()[0]
            self._inbox.put((self._name, {"say": "noise", "text": text}))
        self._inbox.put((self._name, why))


class RayReach:
    """The nodes of the cluster that RAY_ADDRESS names, or of one on this machine.

    Raises:
        UsageError: Ray is not installed, or its cluster has no room.
    """

    def __init__(self, size: Size) -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("--engine ray needs Ray: pip install 'stoker[ray]'") from None
        self._size = size
        try:
            ray.init(log_to_driver=False, configure_logging=False, ignore_reinit_error=True)
        except Exception as error:  # noqa: BLE001 - Ray raises just that, and others
            first = str(error).strip().splitlines()[0]
            raise UsageError(f"Ray cannot be reached or started: {first}") from None
        self._nodes = {node["NodeManagerAddress"]: node for node in ray.nodes() if node["Alive"]}

    def hosts(self) -> list[Host]:
        """The nodes, with room for as many workers as they have processors."""
        return [Host(name, int(node["Resources"].get("CPU", 0))) for name, node in self._nodes.items()]

    def __call__(self, host: Host, inbox: Inbox) -> Link:
        """Start an agent there."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        shares = share(self.hosts(), self._size) or {}
        where = NodeAffinitySchedulingStrategy(self._nodes[host.name]["NodeID"], soft=False)
        # Speaking and listening at the same time.
        options = {"num_cpus": shares.get(host.name, 0), "max_concurrency": 2, "scheduling_strategy": where}
        actor = ray.remote(Carrier).options(**options).remote(os.getcwd())
        return RayLink(host.name, actor, inbox)
