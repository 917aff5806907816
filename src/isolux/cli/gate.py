"""``isolux gate``: a policy asked of a run, for CI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import typer

_EXIT_UNUSABLE_RUN = 4


def gate(
    run: str,
    *,
    policy: Path | None = None,
    baseline: str | None = None,
    init: bool = False,
    json: bool = False,
    json_file: Path | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
) -> None:
    """Check a finished audit against a policy: pass, fail, or not enough people to tell.

    Exit code 0: every rule passes. 1: a rule fails. 3: no rule fails, but at least one cannot be
    decided; it says how many more people would decide it. 2: the policy or a flag is wrong. 4: the
    run cannot be used.

    Parameters
    ----------
    run : str
        Run directory of the audit.
    policy : Path, optional
        The policy: a YAML file.
    baseline : str, optional
        Run directory that `max_drop` rules compare with.
    init : bool
        Print a policy that fits this run, with a comment on each line, and decide nothing.
    json : bool
        Print the decision as JSON (docs/schemas/gate-1.json).
    json_file : Path, optional
        Write that JSON to this file.
    junit : Path, optional
        Write JUnit XML to this file.
    markdown : Path, optional
        Write a summary in Markdown to this file.
    """
    from isolux.cli import command_output
    from isolux.cli.streams import print_to_stderr
    from isolux.core.errors import RunError

    _refuse_flag_combinations(
        policy, init=init, other_flags=(baseline, junit, markdown, json_file, json or None)
    )
    _refuse_overwriting(policy, (junit, markdown, json_file))
    try:
        if init:
            from isolux.api.gate import proposed_policy

            sys.stdout.write(proposed_policy(run))
            return
        from isolux.api.gate import gate as run_gate

        decision = run_gate(run, str(policy), baseline=baseline)
    except RunError as error:
        command_output.record_first_error(error)
        print_to_stderr(f"isolux: {error}")
        raise typer.Exit(_EXIT_UNUSABLE_RUN) from error
    _write_text_files(
        {junit: decision.junit, markdown: decision.markdown, json_file: decision.json}
    )
    sys.stdout.write(decision.json() if json else f"{decision.text()}\n")
    raise typer.Exit(decision.exit_code)


def _refuse_flag_combinations(
    policy: Path | None, *, init: bool, other_flags: tuple[object, ...]
) -> None:
    from isolux.core.errors import SpecError

    if init and (policy is not None or any(flag_value is not None for flag_value in other_flags)):
        raise SpecError(
            "--init proposes a policy and takes no other flag",
            expected="isolux gate --init RUN > policy.yaml",
            found="--init beside others",
        )
    if not init and policy is None:
        raise SpecError(
            "no policy is given",
            expected="--policy policy.yaml",
            found="none",
            hint="isolux gate --init RUN > policy.yaml proposes one",
        )


def _refuse_overwriting(policy: Path | None, paths: tuple[Path | None, ...]) -> None:
    """Refuse outputs that would overwrite the policy, a run's file, a folder or each other."""
    from isolux.core.errors import OutputError
    from isolux.io.owned_files import is_run_file

    out_paths = [path.expanduser().resolve() for path in paths if path is not None]
    reserved_paths = [] if policy is None else [policy.expanduser().resolve()]
    for out_path in out_paths:
        if out_path.is_dir():
            raise OutputError(
                "this is a folder, and a file is to be written",
                expected="a path of its own",
                where=str(out_path),
            )
        if out_path in reserved_paths or is_run_file(out_path):
            raise OutputError(
                "this file is needed for something else",
                expected="a path of its own",
                where=str(out_path),
            )
        reserved_paths.append(out_path)


def _write_text_files(texts: Mapping[Path | None, Callable[[], str]]) -> None:
    from isolux.io.atomic import write_text

    for path, text in texts.items():
        if path is not None:
            write_text(path, text())
