"""``isolux withdraw``: remove people who withdrew from everything, and prove that they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.core.errors import SpecError

if TYPE_CHECKING:
    from isolux_curate.proof.search import SearchResult
    from isolux_curate.withdrawal.workflow import WithdrawalPreview, WithdrawalResult

VERB = "isolux_curate.api.withdraw:withdraw"

_EXIT_REMAINING, _MAX_LISTED = 1, 20
_LEDGER_SETTINGS = ("ledger", "key")
_PROOF_SETTINGS = ("who", "list", "kind", "published_key")
_REPLAY_SETTINGS = ("scope", "ledger", "key", "server", "published_key")


def withdraw(
    folders: Sequence[str],
    *,
    verify: str | None = None,
    prove: bool = False,
    replay: bool = False,
    photo: Sequence[str] = (),
    **settings: Any,
) -> None:
    """Remove people from everything in the given folders, and write a receipt that names nobody.

    This covers project rows, photos, crops, caches, tables of runs, pages, published folders,
    archives, and tasks on the annotation server. Repeat the command to resume it.

    With --prove, nothing is changed: every byte is searched for their ids, the names of their files
    and their pictures, also in archives, tables and pages.

    Exit code 0: done. 1: something is left, or could not be searched. 2: the settings are wrong.

    Parameters
    ----------
    folders : sequence of str
        Projects, runs, caches, published datasets.
    verify : str, optional
        A receipt: only check that it has not been changed since it was signed.
    prove : bool
        Search for them, and change nothing.
    replay : bool
        Remove people again who had withdrawn and are back because a backup was restored: pass the
        ledger that was not restored with --ledger.
    photo : sequence of str
        With --prove: photos of them that you have, to search for copies of.
    """
    from isolux.core.plugin_options import list_keyword_defaults, select_used_settings
    from isolux_curate.api import withdraw as verb
    from isolux_curate.withdrawal.workflow import WithdrawalResult

    flags = list_keyword_defaults(verb.withdraw)
    if verify is not None:
        _verify_and_print_receipt(
            verify, select_used_settings(flags, settings, _LEDGER_SETTINGS, "--verify")
        )
        return
    if prove:
        proof_settings = select_used_settings(
            flags, settings, (*_PROOF_SETTINGS, *_LEDGER_SETTINGS), "--prove"
        )
        search_settings = {
            name: proof_settings[name] for name in _PROOF_SETTINGS if name in proof_settings
        }
        _print_proof_or_exit(
            verb.search_folders_for_people(folders, photo=photo, **search_settings)
        )
        return
    if photo:
        raise SpecError("--photo is for a search", expected="--prove --photo FILE")
    if replay:
        _print_replay_results(
            verb.withdraw_reappeared_people(
                folders, **select_used_settings(flags, settings, _REPLAY_SETTINGS, "--replay")
            )
        )
        return
    outcome = verb.withdraw(folders, **settings)
    if isinstance(outcome, WithdrawalResult):
        _print_withdrawal_or_exit(outcome)
    else:
        _print_withdrawal_preview(outcome)


def _print_replay_results(outcomes: Sequence[WithdrawalResult]) -> None:
    if not outcomes:
        print_clean_lines("nobody who withdrew is back")
    for outcome in outcomes:
        _print_withdrawal_or_exit(outcome)


def _print_proof_or_exit(search_result: SearchResult) -> None:
    import polars as pl

    for name, rows in (
        ("found", search_result.matches),
        ("not looked into", search_result.unsearchable),
    ):
        schema = {"where": pl.String, "what": pl.String}
        command_output.add_table_to_json(name, pl.DataFrame(rows, schema=schema, orient="row"))
    for source, description in search_result.matches[:_MAX_LISTED]:
        command_output.report_warning(f"{source}: {description}")
    for source, reason in search_result.unsearchable[:_MAX_LISTED]:
        command_output.report_warning(f"{source} was not looked into, and is not clean: {reason}")
    command_output.report_notes(search_result.notes)
    print_clean_lines(
        f"{search_result.files:,} files and parts of files, {search_result.bytes:,} bytes,"
        f" {search_result.pictures:,} pictures: {len(search_result.matches):,} found,"
        f" {len(search_result.unsearchable):,} not looked into"
    )
    if not search_result.is_clean:
        raise typer.Exit(_EXIT_REMAINING)


def _verify_and_print_receipt(receipt_path: str, settings: dict[str, Any]) -> None:
    from isolux_curate.api import withdraw as verb

    receipt_record = verb.verify_and_read_receipt(
        receipt_path, ledger=settings.get("ledger"), key=settings.get("key")
    )
    print_clean_lines(
        f"receipt {receipt_record['number']:,} of {receipt_record['ended']}: hash and signature"
        " verify;"
        f" {len(receipt_record['artefacts']):,} artefacts"
    )


def _print_artefacts_and_warnings(outcome: WithdrawalResult | WithdrawalPreview) -> None:
    import polars as pl

    from isolux.cli.table_output import print_table_in_column_blocks
    from isolux_curate.withdrawal.workflow import WithdrawalResult

    columns = ("where", "what", "done", "n")
    rows = [{c: getattr(artefact, c) for c in columns} for artefact in outcome.artefacts]
    table = pl.DataFrame(rows, schema={c: pl.Int64 if c == "n" else pl.String for c in columns})
    command_output.add_table_to_json("artefacts", table)
    for source, reason in outcome.unsearchable:
        command_output.report_warning(f"{source} was not looked through: {reason}.")
    for source, description in outcome.remaining if isinstance(outcome, WithdrawalResult) else ():
        command_output.report_warning(f"{source}: {description}")
    if not command_output.is_json_active() and table.height:
        summary = table.group_by("what", "done", maintain_order=True).agg(
            artefacts=pl.len(), rows=pl.col("n").sum()
        )
        print_table_in_column_blocks("What held them", summary)


def _print_withdrawal_preview(preview: WithdrawalPreview) -> None:
    _print_artefacts_and_warnings(preview)
    print_clean_lines(
        f"{len(preview.artefacts):,} files would be changed or deleted; nothing was changed"
    )


def _print_withdrawal_or_exit(withdrawal_result: WithdrawalResult) -> None:

    _print_artefacts_and_warnings(withdrawal_result)
    command_output.report_notes(withdrawal_result.notes)
    if withdrawal_result.receipt is None:
        print_clean_lines(
            "not finished: give the same command again once what is named above is settled"
        )
        raise typer.Exit(_EXIT_REMAINING)
    command_output.report_file("receipt", withdrawal_result.receipt)
