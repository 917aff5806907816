"""From runs to what a page holds: its words and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from isolux.report.summary import summarise_record
from isolux.viewer import tables
from isolux.viewer.coding import Coding, coding_of
from isolux.viewer.distributions import bins_of, distributions
from isolux.viewer.few import FEWEST, few_of_moves, few_of_runs, of_enough
from isolux.viewer.figures import figures_of
from isolux.viewer.manifest import manifest_of, paper_words, run_words
from isolux.viewer.moves import moves
from isolux.viewer.people import people_of
from isolux.viewer.printable import printable_names, printable_words
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError


@dataclass(frozen=True, slots=True)
class Shown:
    """One run as the page shows it.

    Parameters
    ----------
    run : Run
    name : str
        What tells it from the others, where two runs have a model of one name: its directory.
    changed : sequence of str or None
        Files that are not as they were written; None: not known.
    whole : bool
        False: people who are in the run's values were taken out of its tables since. Then nobody is
        counted: such counts, less those of the values, would tell of who was taken out.
    """

    run: Run
    name: str
    changed: Sequence[str] | None = None
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Contents:
    """What a page holds: ``manifest`` (JSON values) and ``tables`` by name."""

    manifest: Mapping[str, Any]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def contents_of(shown: Sequence[Shown], *, people: bool = False, figures: bool = False) -> Contents:
    """Gather what a page shows of runs: groups, pairs, findings, and how scores are spread."""
    if not shown:
        raise SpecError("there is nothing to look at", expected="one run or more", found="none")
    runs = [one.run for one in shown]
    for one in shown:
        if one.run.group_metrics.is_empty():
            raise SpecError(
                "this run measured nothing, so there is nothing to look at",
                expected="a run with rows in group_metrics.parquet",
                found="no row",
                where=one.name,
            )
    words = [{**run_words(one.run, one.changed), "paper": paper_words(one.run) if people else None}
             for one in shown]  # fmt: skip
    titles = [said["title"] for said in words]
    for one, said in zip(shown, words, strict=True):
        if titles.count(said["title"]) > 1:
            said["title"] = f"{said['title']} ({one.name})"
    contexts = [summarise_record(run)[1] for run in runs]
    coding = coding_of(list(zip(runs, contexts, strict=True)))
    bare = [
        one.run if one.whole else replace(one.run, scores=one.run.scores.clear()) for one in shown
    ]
    bins = bins_of(runs if people else bare, coding)
    least = max(int(run.record.get("publish_min") or 0) for run in runs)
    held = _people(runs, coding, least) if people else []
    whole = all(one.whole for one in shown)
    drawn, undrawn = figures_of(runs, curves=people and whole) if figures else (None, "")
    told = manifest_of(
        words, coding, bins, names=_names(shown, coding),
        holds={"people": people, "pictures": False, "publish_min": least, "served": False,
               "fewest": 0 if people else FEWEST, "whole": whole, "figures": figures,
               "undrawn": undrawn},
    )  # fmt: skip
    groups = tables.groups(runs, coding)
    return Contents(
        printable_words({**told, "people": [said for _, said in held]}),
        printable_names(
            {
                "groups": groups,
                "pairs": tables.pairs(runs, coding),
                "tests": tables.tests(runs, coding),
                "changes": tables.changes(runs, coding),
                "findings": tables.findings(runs),
                **({} if drawn is None else {"figures": drawn}),
                **_counts(bare, coding, bins, None if people else groups),
                **{f"people-{place}": table for place, (table, _) in enumerate(held)},
            }
        ),
    )


def _counts(
    runs: Sequence[Run], coding: Coding, bins: Mapping[int, Any], groups: pl.DataFrame | None
) -> dict[str, pl.DataFrame]:
    """Count people by score and by change; of a page without single people, none of a handful."""
    moved, spread = moves(runs, coding), distributions(runs, coding, bins)
    if groups is not None and not (moved.is_empty() and spread.is_empty()):
        few = few_of_runs(runs)
        spread = of_enough(spread, groups, coding, ["model"], few)
        few |= few_of_moves(moved, groups, coding)
        moved = of_enough(moved, groups, coding, ["model_a", "model_b"], few)
    return {"moves": moved.drop("n_people"), "distributions": spread}


def _people(
    runs: Sequence[Run], coding: Coding, least: int
) -> list[tuple[pl.DataFrame, dict[str, Any]]]:
    if least:
        raise SpecError(
            "what is made to be published holds no single person",
            expected="--people or --publish-min", found="both",
        )  # fmt: skip
    titles = dict(coding.attributes)
    return [people_of(place, run, coding, titles) for place, run in enumerate(runs)]


def _names(shown: Sequence[Shown], coding: Coding) -> list[str]:
    """Call each model by its name; where two have the same, by its run's too."""
    plain = [model for _, model in coding.models]
    return [
        f"{model} ({shown[run].name})" if plain.count(model) > 1 else model
        for run, model in coding.models
    ]
