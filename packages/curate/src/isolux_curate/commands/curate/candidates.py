"""Commands that select classes of people, candidate photos, and numbers of photos by country."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.cli.table_output import print_table_in_column_blocks
from isolux.core.errors import SpecError
from isolux.core.formatting import pluralise
from isolux_curate.candidates.files import (
    compute_quotas_from_files,
    pick_photos_from_files,
    sample_first_round,
    select_concepts_from_files,
)
from isolux_curate.commands.curate._output import write_spreadsheet_safe_csv

VERBS = {
    "concepts": select_concepts_from_files,
    "candidates": pick_photos_from_files,
    "quotas": compute_quotas_from_files,
}


def concepts(nouns: str, *, out: Path, **settings: Any) -> None:
    """List WordNet's concepts for people, and why FACET's rules exclude each of them.

    People then choose among those not excluded: FACET's 52 were chosen by hand. Check the choice
    with --selection.

    Parameters
    ----------
    nouns : str
        WordNet's file data.noun; version 3.0 has ImageNet's numbers.
    out : Path
        The CSV to write: synset, lemmas, depth, reason (empty: it stands).
    """
    for name, rule_description in (
        ("imagenet", "presence in ImageNet-21k"),
        ("examples", "500 examples"),
    ):
        if settings.get(name) is None:
            command_output.report_warning(
                f"the rule on {rule_description} was not applied: no --{name}"
            )
    if settings.get("offensive") is None:
        command_output.report_warning(
            "no --offensive: synsets that insult people are among those that stand"
        )
    concept_table = select_concepts_from_files(nouns, **settings)
    write_spreadsheet_safe_csv(out, concept_table)
    print_clean_lines(
        f"{concept_table.height:,} concepts of people: {concept_table['reason'].null_count():,}"
        " stand"
    )
    reasons = concept_table["reason"].drop_nulls().str.replace(r"^\d+ (examples|steps)", "$1")
    for reason, number in reasons.value_counts(sort=True).iter_rows():
        print_clean_lines(f"  {number:,} {reason}")
    print_clean_lines(f"concepts: {out}")


def candidates(photos: str, *, out: Path, **settings: Any) -> None:
    """Choose photos whose caption and tags mention a class, those with the most terms first.

    Run it without rates for the first 50 photos per class; then with the share of them that showed
    the class, and with the photos you have so far, for rounds that favour classes with too few
    photos.

    Parameters
    ----------
    photos : str
        A table image_id, caption, tags (separated by commas).
    out : Path
        The CSV to write: image_id, class, overlap.
    """
    candidate_table = pick_photos_from_files(photos, **settings)
    write_spreadsheet_safe_csv(out, candidate_table)
    print_table_in_column_blocks(
        "Photos of this round", candidate_table["class"].value_counts().sort("class")
    )
    print_clean_lines(f"{pluralise(candidate_table.height, 'photo')}: {out}")


def quotas(
    seen: str,
    *,
    out: Path,
    first: int | None = None,
    take: int | None = None,
    **settings: Any,
) -> None:
    """Work out how many photos to take from each country so that the groups reach a stated balance.

    The first round is drawn at random (--first 7125, as in FairFace). Once it is annotated, each
    later round goes to countries whose people are underrepresented, and leaves out countries that
    have enough.

    Parameters
    ----------
    seen : str
        A table country, group: one row per photo annotated so far; with --first, image_id.
    out : Path
        The CSV to write.
    first : int, optional
        Draw this many photos at random instead of computing quotas.
    take : int, optional
        Photos of the next round.
    """
    if (first is None) == (take is None):
        raise SpecError(
            "which round this is is not said", expected="--first N, or --take N of a later round"
        )
    if first is not None:
        first_photos = sample_first_round(seen, first=first)
        write_spreadsheet_safe_csv(out, first_photos)
        print_clean_lines(f"{pluralise(first_photos.height, 'photo')} drawn at random: {out}")
        return
    country_quotas = compute_quotas_from_files(seen, take=int(take or 0), **settings)
    write_spreadsheet_safe_csv(out, country_quotas.countries)
    print_table_in_column_blocks("Countries", country_quotas.countries)
    print_table_in_column_blocks("Groups after this round, as expected", country_quotas.groups)
    print_clean_lines(f"quotas: {out}")
