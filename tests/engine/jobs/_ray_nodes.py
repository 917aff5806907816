"""Two Ray nodes: each in a network namespace of its own where the machine allows, else beside.

Every process that is ended here was started here: a node's tree is found from the process that
started it. Who joins the cluster needs a token that is made for it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Nodes", "two_nodes"]

_HERE = Path(__file__).resolve().parents[3]
_STARTED = 90.0  # seconds for a node to be there


@dataclass
class Nodes:
    """A cluster of two: commands run beside its head."""

    address: str
    env: dict[str, str]
    beside_head: list[str]
    apart: bool
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Python beside the head."""
        return subprocess.Popen(
            [*self.beside_head, sys.executable, *arguments], env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def kill_second(self) -> int:
        """Kill the second node and all that it runs, at once; return how many processes."""
        return _kill_tree(self.started[1].pid)


def _kill_tree(pid: int) -> int:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                said = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(said[1]), []).append(int(entry.name))
    tree, at = [pid], 0
    while at < len(tree):
        tree += parents.get(tree[at], [])
        at += 1
    for one in tree:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(tree)


def _apart(name: str) -> bool:
    """Make two namespaces that see one another; false where this user or machine cannot."""
    if os.geteuid() or shutil.which("ip") is None:
        return False
    steps = [["netns", "add", f"{name}{end}"] for end in "ab"]
    steps += [["link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b"]]
    for end, address in (("a", "10.213.7.1/24"), ("b", "10.213.7.2/24")):
        steps += [
            ["link", "set", f"{name}{end}", "netns", f"{name}{end}"],
            ["-n", f"{name}{end}", "addr", "add", address, "dev", f"{name}{end}"],
            ["-n", f"{name}{end}", "link", "set", "lo", "up"],
            ["-n", f"{name}{end}", "link", "set", f"{name}{end}", "up"],
        ]
    for step in steps:
        if subprocess.run(["ip", *step], capture_output=True, check=False).returncode:
            _remove(name)
            return False
    return True


def _remove(name: str) -> None:
    for end in "ab":
        subprocess.run(["ip", "netns", "del", f"{name}{end}"], capture_output=True, check=False)
    subprocess.run(["ip", "link", "del", f"{name}a"], capture_output=True, check=False)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def two_nodes(folder: Path) -> Iterator[Nodes]:
    """Start a head and a second node of one core each, and end them."""
    name = f"isx{os.getpid() % 100000}"
    apart = _apart(name)
    port = _free_port()
    places = ("10.213.7.1", "10.213.7.2") if apart else ("127.0.0.1", "127.0.0.1")
    inside = [["ip", "netns", "exec", f"{name}{end}"] if apart else [] for end in "ab"]
    env = os.environ | {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_TMPDIR": str(folder), "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(_HERE / "src"), str(_HERE), os.environ.get("PYTHONPATH", "")]
        ),
    }  # fmt: skip
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "1",
           "--object-store-memory", "100000000", "--disable-usage-stats"]  # fmt: skip
    nodes = Nodes(f"{places[0]}:{port}", env, inside[0], apart)
    try:
        for own, place, more in (
            (inside[0], places[0], ["--head", "--port", str(port), "--include-dashboard", "false"]),
            (inside[1], places[1], ["--address", nodes.address]),
        ):
            command = [*own, *ray, "--node-ip-address", place, *more]
            quiet = subprocess.DEVNULL
            nodes.started.append(subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet))
            _wait_for(nodes, len(nodes.started))
        yield nodes
    finally:
        for one in nodes.started:
            _kill_tree(one.pid)
            one.wait()
        if apart:
            _remove(name)


def _wait_for(nodes: Nodes, cores: int) -> None:
    look = (
        "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False);"
        "sys.exit(ray.cluster_resources().get('CPU', 0) < float(sys.argv[2]))"
    )
    until = time.monotonic() + _STARTED
    said = ""
    while time.monotonic() < until:
        seen = nodes.run("-c", look, nodes.address, str(cores))
        said, _ = seen.communicate()
        if not seen.returncode:
            return
        time.sleep(0.5)
    raise TimeoutError(f"no Ray node within {_STARTED:g} s: {said[-500:]}")
