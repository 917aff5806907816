"""``isolux withdraw``: take people who withdrew out of everything, and prove that they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.errors import SpecError

if TYPE_CHECKING:
    from isolux_curate.proof.searching import Proof
    from isolux_curate.withdrawal.withdrawing import Looked, Withdrawn

VERB = "isolux_curate.verbs.withdraw:withdraw"

_LEFT, _SHOWN = 1, 20
_KEYS = ("ledger", "key")
_OF_PROOF = ("who", "list", "kind", "published_key")
_OF_REPLAY = ("scope", "ledger", "key", "server", "published_key")


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
    from isolux.vocabulary.plugin_options import named_options, own_settings
    from isolux_curate.verbs import withdraw as verb
    from isolux_curate.withdrawal.withdrawing import Withdrawn

    flags = named_options(verb.withdraw)
    if verify is not None:
        _verified(verify, own_settings(flags, settings, _KEYS, "--verify"))
        return
    if prove:
        kept = own_settings(flags, settings, (*_OF_PROOF, *_KEYS), "--prove")
        searched = {name: kept[name] for name in _OF_PROOF if name in kept}
        _proved(verb.prove(folders, photo=photo, **searched))
        return
    if photo:
        raise SpecError("--photo is for a search", expected="--prove --photo FILE")
    if replay:
        _replayed(verb.replay(folders, **own_settings(flags, settings, _OF_REPLAY, "--replay")))
        return
    done = verb.withdraw(folders, **settings)
    if isinstance(done, Withdrawn):
        _done(done)
    else:
        _looked(done)


def _replayed(done: Sequence[Withdrawn]) -> None:
    if not done:
        say("nobody who withdrew is back")
    for one in done:
        _done(one)


def _proved(done: Proof) -> None:
    import polars as pl

    for name, rows in (("found", done.found), ("not looked into", done.blind)):
        schema = {"where": pl.String, "what": pl.String}
        document.give(name, pl.DataFrame(rows, schema=schema, orient="row"))
    for where, how in done.found[:_SHOWN]:
        document.warn(f"{where}: {how}")
    for where, why in done.blind[:_SHOWN]:
        document.warn(f"{where} was not looked into, and is not clean: {why}")
    document.note_all(done.notes)
    say(
        f"{done.files:,} files and parts of files, {done.bytes:,} bytes, {done.pictures:,}"
        f" pictures: {len(done.found):,} found, {len(done.blind):,} not looked into"
    )
    if not done.is_clean:
        raise typer.Exit(_LEFT)


def _verified(receipt: str, settings: dict[str, Any]) -> None:
    from isolux_curate.verbs import withdraw as verb

    said = verb.verify(receipt, ledger=settings.get("ledger"), key=settings.get("key"))
    say(
        f"receipt {said['number']:,} of {said['ended']}: hash and signature verify;"
        f" {len(said['artefacts']):,} artefacts"
    )


def _show(done: Withdrawn | Looked) -> None:
    import polars as pl

    from isolux.cli.screen import show_wide

    columns = ("where", "what", "done", "n")
    rows = [{c: getattr(one, c) for c in columns} for one in done.artefacts]
    table = pl.DataFrame(rows, schema={c: pl.Int64 if c == "n" else pl.String for c in columns})
    document.give("artefacts", table)
    for where, why in done.blind:
        document.warn(f"{where} was not looked through: {why}.")
    for where, how in getattr(done, "left", ()):
        document.warn(f"{where}: {how}")
    if not document.giving() and table.height:
        told = table.group_by("what", "done", maintain_order=True).agg(
            artefacts=pl.len(), rows=pl.col("n").sum()
        )
        show_wide("What held them", told)


def _looked(found: Looked) -> None:
    _show(found)
    say(f"{len(found.artefacts):,} files would be changed or deleted; nothing was changed")


def _done(done: Withdrawn) -> None:

    _show(done)
    document.note_all(done.notes)
    if done.receipt is None:
        say("not finished: give the same command again once what is named above is settled")
        raise typer.Exit(_LEFT)
    document.wrote("receipt", done.receipt)
