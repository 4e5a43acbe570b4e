"""Machines of one's own: network namespaces with a bridge between them, each with an sshd, that can be cut off.

The caller's side is a namespace's peer on the bridge; nothing leaves this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_NETWORK = "10.213.77"
_BRIDGE = "stk-bridge"
_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@dataclass(frozen=True)
class Hosts:
    """Some machines.

    Attributes:
        addresses: of each machine.
        ssh: the command that gets into them.
    """

    addresses: list[str]
    ssh: str

    @property
    def count(self) -> int:
        return len(self.addresses)

    @property
    def names(self) -> str:
        """As `stoker launch --hosts` takes them."""
        return ",".join(f"{address}:1" for address in self.addresses)

    def cut(self, number: int) -> Callable[[], None]:
        """Cut one off; the function that connects it again."""
        link = f"stk-{number}"
        _run("ip", "link", "set", link, "down")
        return lambda: _run("ip", "link", "set", link, "up")


def what_is_missing() -> str | None:
    """What this machine lacks for it."""
    if os.geteuid() != 0:
        return "root"
    if _SSHD is None or shutil.which("ssh") is None:
        return "the package openssh-server"
    return None if shutil.which("ip") else "the package iproute2"


@contextmanager
def open_hosts(count: int) -> Iterator[Hosts]:
    """So many machines, until the block ends."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("host", "user"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name))
        shutil.copy(home / "user.pub", home / "authorized")
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        _run("ip", "link", "add", _BRIDGE, "type", "bridge")
        stack.callback(_run, "ip", "link", "del", _BRIDGE)
        _run("ip", "addr", "add", f"{_NETWORK}.254/24", "dev", _BRIDGE)
        _run("ip", "link", "set", _BRIDGE, "up")
        addresses = [_open_host(stack, home, number) for number in range(count)]
        options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=5"
        yield Hosts(addresses, f"ssh -F none -o LogLevel=ERROR -i {home}/user {options}")


def _open_host(stack: ExitStack, home: Path, number: int) -> str:
    space, link, address = f"stk-host-{number}", f"stk-{number}", f"{_NETWORK}.{number + 1}"
    _run("ip", "netns", "add", space)
    stack.callback(_run, "ip", "netns", "del", space)
    _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
    _run("ip", "link", "set", link, "master", _BRIDGE, "up")
    for words in (
        ("addr", "add", f"{address}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("link", "set", "lo", "up"),
    ):
        _run("ip", "-n", space, *words)
    config = home / f"config-{number}"
    config.write_text(
        f"ListenAddress {address}\nHostKey {home}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {home}/authorized\nPermitRootLogin prohibit-password\n"
        # A connection whose other end is gone must not keep its agent alive.
        "ClientAliveInterval 2\nClientAliveCountMax 2\nAcceptEnv *\n"
    )
    assert _SSHD is not None
    daemon = subprocess.Popen(
        ["ip", "netns", "exec", space, _SSHD, "-D", "-e", "-f", str(config)],
        stderr=subprocess.PIPE,
        text=True,
    )
    stack.callback(_end, daemon)
    assert daemon.stderr is not None
    while "listening" not in (line := daemon.stderr.readline()):
        if not line:
            raise SystemExit(f"sshd does not start in {space}")
    return address


def _end(daemon: subprocess.Popen[str]) -> None:
    daemon.kill()
    daemon.communicate()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
