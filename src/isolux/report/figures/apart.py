"""Figures drawn in a process of their own: its end is not the audit's, and it can start ahead.

The engine that draws takes longer to start than a small audit takes to count, and holds Python's
lock all the while. A command that will write a report therefore starts it first: by the time that
the figures are asked for, it waits for them on another core.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isolux.io.cores import cores
from isolux.vocabulary.addresses import allowed_addresses
from isolux.vocabulary.errors import DrawingError

__all__ = [
    "addresses_are_limited", "draw_ahead", "draw_apart", "end_renderer", "is_ahead",
]  # fmt: skip

_RENDERER = Path(__file__).with_name("renderer.py")
_renderers: list[subprocess.Popen[str]] = []


def addresses_are_limited() -> bool:
    """Tell whether this process may not reserve as many addresses as it likes (``ulimit -v``)."""
    return allowed_addresses() is not None


def draw_ahead() -> None:
    """Start the renderer now, for figures that will come, where a second core can run it."""
    if cores() < 2 or addresses_are_limited() or find_spec("vl_convert") is None:
        return
    with suppress(OSError):  # no more processes: this one draws
        _renderer()


def is_ahead() -> bool:
    """Tell whether a renderer is there that has not ended."""
    return bool(_renderers) and _renderers[-1].poll() is None


def draw_apart(spec: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Draw a Vega-Lite chart in the renderer's process, which stays for the next one."""
    process = _renderer()
    assert process.stdin is not None  # noqa: S101 - both are pipes, see _renderer
    assert process.stdout is not None  # noqa: S101
    try:
        process.stdin.write(json.dumps({"spec": spec, "config": config}) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except OSError:
        answer = ""
    if not answer:
        raise _ended(process)
    told = json.loads(answer)
    if "error" in told:
        raise RuntimeError(told["error"])
    return str(told["svg"])


def _renderer() -> subprocess.Popen[str]:
    if not _renderers or _renderers[-1].poll() is not None:
        end_renderer()  # of one that ended by itself, the pipes are open
        _renderers[:] = [
            subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, str(_RENDERER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        ]
    return _renderers[-1]


def end_renderer() -> None:
    """End the renderer's process, if there is one; the next figure starts another."""
    while _renderers:
        process = _renderers.pop()
        process.kill()
        with suppress(OSError):
            process.communicate()


atexit.register(end_renderer)


def _ended(process: subprocess.Popen[str]) -> DrawingError:
    code = process.wait()
    end_renderer()
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    limit = allowed_addresses()
    allowed = "" if limit is None else f", under a limit of {limit // 1024:,} KiB of addresses"
    return DrawingError(
        "the report's figures cannot be drawn",
        expected="some 50 GiB of address space (not memory) for the figures' engine",
        found=f"its process ended {how}{allowed}",
        hint="raise the limit (ulimit -v)",
    )
