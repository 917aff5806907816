"""``isolux card``: papers of a finished audit for a customer, a regulator, a committee."""

from __future__ import annotations

import sys
from pathlib import Path

from isolux.cli import command_output


def card(
    run: str,
    *,
    kind: str,
    facts: Path | None = None,
    publish_min: int = 0,
    out: str | None = None,
    overwrite: bool = False,
    init: bool = False,
) -> None:
    """Fill in a card from a finished audit: model card, bias profile and others.

    Facts that no audit can know come from a file; whatever it does not provide becomes a marked
    blank and is never invented. `isolux list cards` shows the kinds and what each asks for. No card
    is a statement of conformity.

    Parameters
    ----------
    run : str
        Run directory of the audit.
    kind : str
        The kind of card: `isolux list cards`.
    facts : Path, optional
        Facts that no audit can know: a YAML file, as --init prints it.
    publish_min : int
        Hide groups of fewer people, and whatever would reveal them; 0: nothing is hidden.
    out : str, optional
        Folder for the card as Markdown, HTML and, if there is a schema, JSON; default: print the
        Markdown.
    overwrite : bool
        Replace a card of this kind in that folder.
    init : bool
        Print an empty file of facts for this kind, and make no card.
    """
    from isolux.api.card import build_facts_template
    from isolux.api.card import card as fill_card

    if init:
        sys.stdout.write(build_facts_template(run, kind=kind))
        return
    filled_card = fill_card(run, kind=kind, facts=facts, publish_min=publish_min)
    if out is not None or command_output.is_json_active():  # the Markdown itself tells them
        for text in filled_card.warnings:
            command_output.report_warning(text, word="warning")
    if out is None:
        sys.stdout.write(filled_card.markdown())
        return
    for path in filled_card.write(out, overwrite=overwrite):
        command_output.report_file("card", path)
    if filled_card.blanks:
        command_output.report_note(
            f"{len(filled_card.blanks)} facts are not stated, and marked so: "
            + ", ".join(blank.key for blank in filled_card.blanks)
            + f" (isolux card {run} --kind {kind} --init > facts.yaml, then --facts facts.yaml)"
        )
