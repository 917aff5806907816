"""The command line: one file per command; bad input is a message, never a traceback."""

from __future__ import annotations

import atexit
import gc
import os

__all__ = ["collect_seldom", "main"]

INTERRUPTED, REFUSED, BUG = 130, 2, 70
_STOPPED = "isolux: interrupted; nothing was left half-written"
_MANY = 100_000  # objects made between two searches for what is no longer reached; Python's is 700


def main() -> None:
    """Run ``isolux``. Exit codes: 0 done, 2 bad input or settings, 130 interrupted, 70 a bug."""
    # Two threads that wait for each other by spinning are slower than one: set before numpy loads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    collect_seldom()
    raise SystemExit(_run())


def collect_seldom() -> None:
    """Let a process that runs once search seldom for garbage, and not at all when it ends.

    Libraries make some hundred thousand objects as they are imported, which all stay: going
    through them again and again, and once more before the process ends and the system takes
    everything back, takes half a second of CPU. Tables lie in arrays, which are freed as soon as
    nothing refers to them; only what refers to itself waits. The library alone never changes how
    its host collects.
    """
    gc.set_threshold(_MANY, 50, 50)
    atexit.unregister(gc.freeze)  # once, however often a program calls this
    atexit.register(gc.freeze)


def _run() -> int:
    import sys

    from isolux.cli._help import ALL
    from isolux.cli.app import program
    from isolux.vocabulary.errors import IsoluxError

    args = ["--help" if text == ALL else text for text in sys.argv[1:]]
    everything = ALL in sys.argv[1:]
    try:
        app = program(args, everything=everything)
        code = app(args, prog_name="isolux", standalone_mode=False)
    except IsoluxError as error:
        return _say(f"isolux: {error}", REFUSED)
    except (KeyboardInterrupt, EOFError):
        return _say(_STOPPED, INTERRUPTED)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(bool(done.code))
    except Exception as error:  # noqa: BLE001 - the last line of defence, see _unforeseen
        return _unforeseen(error)
    if code == INTERRUPTED:  # typer turns Ctrl-C into this exit code
        return _say(_STOPPED, INTERRUPTED)
    return code if isinstance(code, int) else 0


def _unforeseen(error: Exception) -> int:
    """Print usage errors and interruptions as such, and anything else as a bug of ours."""
    show = getattr(error, "show", None)
    code = getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):  # click's UsageError and its kin
        show()
        return code
    if type(error).__name__ == "Abort":
        return _say(_STOPPED, INTERRUPTED)
    if isinstance(code, int):
        return code
    if os.environ.get("ISOLUX_TRACEBACK"):
        raise error
    return _say(
        f"isolux: this is a bug in isolux, not in your input: {type(error).__name__}: {error}\n"
        "  what to do: run again with ISOLUX_TRACEBACK=1 and report what it prints",
        BUG,
    )


def _say(text: str, code: int) -> int:
    import sys

    print(text, file=sys.stderr)  # noqa: T201 - the command line's own voice
    return code
