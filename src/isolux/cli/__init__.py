"""The command line: one file per command; bad input is a message, never a traceback."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback

from isolux.cli.memory_errors import explain_low_address_limit, explain_memory_error
from isolux.cli.signals import (
    StopSignal,
    format_stop_message,
    raise_stop_on_signals,
    received_signal,
    restore_silenced_stderr,
)
from isolux.cli.streams import flush_and_find_write_error, guard_streams, print_to_stderr
from isolux.core.printable import clean_line

EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_BUG = 130, 2, 70
_GC_THRESHOLD = 250_000  # allocations between two garbage collections; Python's default is 700


def main() -> None:
    """Run ``isolux``.

    Exit codes: 0 done, 2 bad input or settings, 70 a bug; 128 and a signal's number where one came:
    130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
    """
    try:
        with raise_stop_on_signals(), guard_streams():
            # Two threads that spin while they wait are slower than one. Set before numpy loads.
            os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            reduce_garbage_collection()
            refusal = explain_low_address_limit()
            code = (
                _print_failure_and_return_code(refusal, EXIT_REFUSED)
                if refusal
                else _run_command_with_json()
            )
    except StopSignal:  # at the first or the last moment, outside of what _run catches
        number = received_signal()
        code = (
            EXIT_INTERRUPTED
            if number is None
            else _print_failure_and_return_code(format_stop_message(number), 128 + number)
        )
    raise SystemExit(code)


def reduce_garbage_collection() -> None:
    """Reduce garbage collection in a process that runs one command, and skip it at exit.

    Libraries make some hundred thousand objects as they are imported, which all stay: going
    through them again and again, and once more before the process ends and the system takes
    everything back, takes half a second of CPU. Tables lie in arrays, which are freed as soon as
    nothing refers to them; only what refers to itself waits. The library alone never changes how
    its host collects.
    """
    gc.set_threshold(_GC_THRESHOLD, 50, 50)
    atexit.unregister(gc.freeze)  # once, however often a program calls this
    atexit.register(gc.freeze)


def _run_command_with_json() -> int:
    """Run the command; with ``--json`` its output is one JSON document."""
    from isolux.cli import command_output
    from isolux.cli.app import WITH_JSON, is_command_group

    code = command_output.run_with_json_document(
        sys.argv[1:],
        _run_to_exit_code,
        commands_with_own_document=WITH_JSON,
        is_group=is_command_group,
    )
    fault = flush_and_find_write_error() if command_output.is_json_requested(sys.argv[1:]) else None
    return (
        _print_failure_and_return_code(_format_write_error(fault), EXIT_REFUSED)
        if fault is not None and code == 0
        else code
    )


def _run_to_exit_code() -> int:
    """Run the command, and turn whatever ended it into an exit code."""
    try:
        code = _parse_and_run_command()
        code = code if isinstance(code, int) else 0
        if code == EXIT_INTERRUPTED:  # typer turns Ctrl-C into this exit code
            code = _print_error_and_choose_exit_code(KeyboardInterrupt())
    except BaseException as error:  # noqa: BLE001 - told by the exit code
        if os.environ.get("ISOLUX_TRACEBACK") and isinstance(error, Exception):
            traceback.print_exc()
            return 1
        code = 0 if received_signal() else _print_error_and_choose_exit_code(error)
    number = received_signal()
    if number is not None:  # also where a library replaced the exception
        _remove_staging_files()
        restore_silenced_stderr()
        return _print_failure_and_return_code(format_stop_message(number), 128 + number)
    _warn_of_uncached_kernels()
    fault = flush_and_find_write_error()
    if fault is not None and code == 0:
        return _print_failure_and_return_code(_format_write_error(fault), EXIT_REFUSED)
    return code


def _format_write_error(fault: OSError) -> str:
    return f"isolux: the output cannot be printed\n  found: {clean_line(str(fault))}"


def _parse_and_run_command() -> object:
    """Read the arguments and run the command that they name."""
    from isolux.cli._help import HELP_ALL
    from isolux.cli.app import build_cli_program, strip_json_flag
    from isolux.cli.progress import show_progress
    from isolux.core.errors import SpecError

    for text in sys.argv[1:]:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise SpecError(
                "an argument cannot be written into a record",
                expected="text in UTF-8",
                found=ascii(text),
                hint="rename the file or folder, if it is the name of one",
            )
    args = ["--help" if text == HELP_ALL else text for text in strip_json_flag(sys.argv[1:])]
    shell_words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    if shell_words and "_ISOLUX_COMPLETE" in os.environ:  # a shell asks what its line may become
        app = build_cli_program(shell_words.split()[1:], shows_all=True)
    else:
        app = build_cli_program(args, shows_all=HELP_ALL in sys.argv[1:])
    with show_progress():
        return app(args, prog_name="isolux", standalone_mode=False)


def _remove_staging_files() -> None:
    stages = sys.modules.get("isolux.io.staging")
    if stages is not None and hasattr(stages, "discard_all_staging"):
        stages.discard_all_staging()


def _warn_of_uncached_kernels() -> None:
    """Warn where compiled code could not be cached, so that the next command compiles again."""
    compile_cache = sys.modules.get("isolux.io.compile_cache")
    reason = compile_cache.cache_failure_reason() if compile_cache is not None else None
    if reason is not None:
        print_to_stderr(
            "isolux: compiled code could not be kept, so each command compiles it again\n  found: "
            f"{clean_line(reason)}\n  what to do: set NUMBA_CACHE_DIR to a writable folder"
        )


def _print_error_and_choose_exit_code(error: BaseException) -> int:
    """Print an error as what it is: bad input, a usage error, too little memory, or our bug."""
    from isolux.cli.command_output import record_first_error
    from isolux.core.errors import IsoluxError

    error = _replace_unknown_flag_error(error)
    if isinstance(error, IsoluxError) or callable(getattr(error, "format_message", None)):
        record_first_error(error)  # with its fields; other errors as the printed text
    if isinstance(error, IsoluxError):
        return _print_failure_and_return_code(f"isolux: {error}", EXIT_REFUSED)
    if isinstance(error, (KeyboardInterrupt, EOFError)) or type(error).__name__ == "Abort":
        return _print_failure_and_return_code(
            "isolux: interrupted; nothing was left half-written", EXIT_INTERRUPTED
        )
    if (flag := getattr(error, "option_name", None)) is not None:
        return _print_failure_and_return_code(
            f"isolux: {_format_nearest_option(error, str(flag))}", EXIT_REFUSED
        )
    # click's UsageError shows itself; SystemExit and click's Exit only have a code.
    code = getattr(error, "code" if isinstance(error, SystemExit) else "exit_code", None)
    if callable(show := getattr(error, "show", None)):
        show()
    if isinstance(code, int) or isinstance(error, SystemExit):
        return code if isinstance(code, int) else int(bool(code))
    refusal = explain_memory_error(error) or _explain_missing_folder(error)
    return (
        _print_failure_and_return_code(refusal, EXIT_REFUSED)
        if refusal
        else _print_bug_report(error)
    )


def _explain_missing_folder(error: BaseException) -> str | None:
    """Say that the working folder is gone, where that is why a path could not be resolved."""
    if not isinstance(error, FileNotFoundError):
        return None
    try:
        os.getcwd()  # noqa: PTH109 - Path.cwd() would do the same
    except FileNotFoundError:
        return (
            "isolux: the folder in which this command runs was removed\n"
            "  what to do: change to a folder that exists, and run it again"
        )
    return None


def _replace_unknown_flag_error(error: BaseException) -> BaseException:
    """Explain how a setting is set that is not a flag of ``audit`` or ``predict``."""
    flag, command = getattr(error, "option_name", None), (sys.argv[1:2] or [""])[0]
    if flag is None:
        return error
    if command == "audit":
        from isolux.cli.audit import build_unknown_flag_error

        return build_unknown_flag_error(sys.argv[2:], str(flag))
    from isolux.cli._flags import build_option_usage_error

    return build_option_usage_error(command, str(flag)) or error


def _format_nearest_option(error: BaseException, flag: str) -> str:
    """Name the nearest option of the command; an argument's name says that it has no flag."""
    from difflib import get_close_matches

    context = getattr(error, "ctx", None)
    command = getattr(context, "command", None)
    options = [
        name
        for p in getattr(command, "params", ())
        for name in (*p.opts, *p.secondary_opts)
        if name.startswith("--")
    ]
    path = getattr(context, "command_path", "isolux")
    arguments = [p for p in getattr(command, "params", ()) if p.param_type_name == "argument"]
    if flag.lstrip("-") in [p.name for p in arguments]:
        names = " ".join("NAME:PATH" if p.name == "data" else p.name.upper() for p in arguments)
        advice = f"leave the flag out: `{path} {names}`"
    else:
        nearest_names = get_close_matches(flag, sorted({*options, "--help"}))
        suggestion = f"did you mean {' or '.join(nearest_names)}? " if nearest_names else ""
        advice = f"{suggestion}`{path} --help` lists them"
    return f"`{path}` has no option {clean_line(flag)}\n  what to do: {advice}"


def _print_bug_report(error: BaseException) -> int:
    return _print_failure_and_return_code(
        f"isolux: this is a bug in isolux, not in your input: {type(error).__name__}: "
        f"{clean_line(str(error))}\n"
        "  what to do: run again with ISOLUX_TRACEBACK=1 and report what it prints",
        EXIT_BUG,
    )


def _print_failure_and_return_code(text: str, code: int) -> int:
    from isolux.cli.command_output import record_first_error

    record_first_error(text)
    print_to_stderr(text)
    return code
