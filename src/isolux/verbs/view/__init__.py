"""A page in which runs are explored: groups sorted, searched and filtered, each number as measured.

    run directories → what a page holds of them → one file that opens by a double click

The page shows what the run's tables hold and measures nothing. What of people it may hold, and what
never enters it: ``docs/how_to/viewer.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import polars as pl

from isolux.io import run_directory, write_text
from isolux.io.run_changes import blaming_changes, changed_files
from isolux.people.withdrawal import runs_without
from isolux.people.withdrawn_lists import read_withdrawn
from isolux.verbs._in_memory import HasRun, RunSource, run_of
from isolux.verbs.compare.joining import judged_units
from isolux.verbs.publish import publish
from isolux.verbs.view.pictures import pictures_of
from isolux.viewer import Contents, Shown, Site, contents_of, serve
from isolux.viewer import bundle as page_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.counts import COUNTS
from isolux.vocabulary.errors import OutputError, SpecError, UnknownNameError


def view(
    runs: Run | HasRun | str | Path | Sequence[Run | HasRun | str | Path],
    bundle: str | Path,
    *,
    metric: Sequence[str] = (),
    people: bool = False,
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
    publish_min: int = 0,
    overwrite: bool = False,
) -> Path:
    """Write a page in which runs are explored: one file, offline, opened by a double click.

    Parameters
    ----------
    runs : Audit, Run, str or Path, or several
        Finished audits or a comparison of two models, or their directories. Several stand side by
        side, model by model.
    bundle : str or Path
        The page to write: an ``.html`` file.
    metric : sequence of str
        Include only these metrics; default: all.
    people : bool
        Also include single people: their ids, groups, scores and the answers about them.
    withdrawn : str or Path, optional
        File with the ids of people who withdrew. The run's values still count them, and the page
        says so; of a run that they are in, it has no spread of scores and no count of who gained
        and lost, and ``people`` is refused: the list of all others would tell of them.
    allow_unmatched : bool
        Continue even if an id in that file matches nobody.
    publish_min : int
        Hide groups of fewer people, and whatever would reveal them; 0: nothing is hidden.
    overwrite : bool
        Replace a file that is there already.

    Returns
    -------
    Path
        The page. Without ``people`` it holds groups and how their scores are spread, and no
        single person: no spread of groups of fewer than 10, or whose value is withheld.

    Raises
    ------
    SpecError
        No run, one that measured nothing, a page that is not an ``.html`` file; ``people`` of what
        is to be published, of a run that keeps none, or of one in which someone withdrew; runs of
        the same people side by side of which only one counts someone who withdrew.
    UnknownNameError
        A metric that none of the runs measured.
    FileError
        No run at a path, or a damaged one.
    OutputError
        The page cannot be written, is there already, or would be larger than 25 MB.

    Examples
    --------
    >>> import tempfile, isolux
    >>> people = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                        "light": ["day", "night"] * 200, "value": [1.0] * 399 + [0.0]})
    >>> found = isolux.audit(people, by="light", replicates=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = isolux.view(found, Path(folder) / "light.html")
    ...     page.name, page.stat().st_size < 1_000_000
    ('light.html', True)
    """
    page = Path(bundle).expanduser()
    if page.suffix.lower() not in (".html", ".htm"):
        raise SpecError(
            "a page is an HTML file", expected="--bundle NAME.html", found=repr(str(bundle))
        )
    if page.is_file() and not overwrite:
        raise OutputError(
            "this file exists already",
            expected="a path where nothing is",
            where=str(page),
            hint="choose another path, or replace it with --overwrite (overwrite=True)",
        )
    shown = shown_runs(
        runs,
        metric=metric,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        publish_min=publish_min,
        people=people,
        bundled=True,
    )
    return write_text(page, page_of(_contents(runs, shown, people=people)))


def serve_view(
    runs: RunSource | Sequence[RunSource],
    ready: Callable[[str, bool], None],
    *,
    metric: Sequence[str] = (),
    images: str | Path | None = None,
    may_show: bool = False,
    show_faces: bool = False,
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
    port: int | None = None,
) -> None:
    """Serve the page to this computer alone, until Ctrl-C: for large runs, and for pictures."""
    shown = shown_runs(runs, metric=metric, withdrawn=withdrawn, allow_unmatched=allow_unmatched)
    found = [one.run for one in shown]
    people = all(run.scores.height and COUNTS not in run.evidence for run in found)
    pictures = None
    if images is not None:
        pictures = pictures_of(
            found,
            images,
            withdrawn=withdrawn,
            allow_unmatched=allow_unmatched,
            may_show=may_show,
            show_faces=show_faces,
        )
    held = _contents(runs, shown, people=people)
    holds = {**held.manifest["holds"], "served": True, "pictures": pictures is not None}
    contents = replace(held, manifest={**held.manifest, "holds": holds})
    serve(Site(contents, pictures), port, lambda address: ready(address, people))


def shown_runs(
    runs: RunSource | Sequence[RunSource],
    *,
    metric: Sequence[str] = (),
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
    publish_min: int = 0,
    people: bool = False,
    bundled: bool = False,
) -> list[Shown]:
    """Take runs from memory or read them, with the metrics asked for, cut for publishing."""
    one = isinstance(runs, str | Path) or not isinstance(runs, Sequence)
    sources: list[RunSource] = [runs] if one else list(runs)  # type: ignore[list-item, arg-type]
    found = [_shown(source, i) for i, source in enumerate(sources, start=1)]
    if metric:
        known = pl.concat([s.run.group_metrics["metric"] for s in found]).unique(
            maintain_order=True
        )
        for name in metric:
            if name not in known.to_list():
                raise UnknownNameError("metric", name, known.to_list(), where="--metric")
        found = [replace(shown, run=_of_metrics(shown.run, metric)) for shown in found]
    kept = found
    if withdrawn is not None:
        kept = shown_without(found, withdrawn, allow_unmatched=allow_unmatched)
    if bundled:
        refuse_differences(found, kept, people=people)
    return shown_published(found, kept, publish_min) if publish_min else kept


def _contents(
    runs: RunSource | Sequence[RunSource], shown: Sequence[Shown], *, people: bool
) -> Contents:
    """Give what the page holds; a run that was changed by hand is named where that fails."""
    sources = runs if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    with ExitStack() as blamed:
        for one in sources:
            if isinstance(one, str | Path):
                blamed.enter_context(blaming_changes(one))
        return contents_of(shown, people=people, figures=True)


def _shown(source: RunSource, place: int) -> Shown:
    if isinstance(source, str | Path):
        run = run_directory.load(source, changed="told")  # the page says it first
        name = Path(source).expanduser().resolve().name
        return Shown(run, name, changed_files(source))
    return Shown(run_of(source), f"run {place}")


def _of_metrics(run: Run, names: Sequence[str]) -> Run:
    kept = pl.col("metric").is_in(list(names))
    return replace(
        run,
        scores=run.scores.filter(kept),
        group_metrics=run.group_metrics.filter(kept),
        disparities=run.disparities.filter(kept),
        findings=run.findings.filter(kept | pl.col("metric").is_null()),
    )


# Runs that are published on one page: nothing of a few people in any, nor between any two.

_ROW = ("metric", "label", "threshold", "attribute", "values")


def shown_published(before: Sequence[Shown], kept: Sequence[Shown], minimum: int) -> list[Shown]:
    """Cut runs for publishing, by whom their values count: those who withdrew since too."""
    runs = [replace(old.run, record=new.run.record) for old, new in zip(before, kept, strict=True)]
    cut = [publish(run, minimum, beside=runs) for run in runs]
    found = [replace(one, run=run) for one, run in zip(kept, cut, strict=True)]
    for (a, one), (b, two) in combinations(zip(found, before, strict=True), 2):
        _refuse_near(a, b, minimum, in_both=_in_both(one.run, two.run))
    return found


def _in_both(one: Run, two: Run) -> bool:
    """Tell whether anybody was judged in both runs."""
    ids = judged_units(one)
    return bool(ids.is_in(judged_units(two).implode()).any())


def _refuse_near(a: Shown, b: Shown, minimum: int, *, in_both: bool) -> None:
    """Refuse totals of two runs that are a few people apart."""
    one, two = (run.run.group_metrics.select("model", *_ROW, "n_units", "value") for run in (a, b))
    met = one.join(two, on=_ROW, nulls_equal=True, suffix="_b")
    apart = (pl.col("n_units") - pl.col("n_units_b")).abs()
    near = met.filter(apart.is_between(1, minimum - 1))
    if near.filter(pl.col("model") == pl.col("model_b")).height:
        what = (
            "these runs audit one model twice, on nearly the same people: the scores of a few of "
            "them would be one run's value minus the other's"
        )
        hint = "publish one of them; where they are of two models, audit each with another "
        hint += "--model-name"
    elif near.height and in_both:
        what = (
            "these runs count nearly the same people: the number of a few of them would be one "
            "run's count minus the other's"
        )
        hint = "publish what `isolux compare` makes of the two: it counts those judged in both"
    else:
        return
    raise SpecError(
        what,
        expected=f"runs whose groups differ by nobody, or by {minimum} people or more",
        found=f"{a.name} and {b.name}",
        hint=hint,
    )


# People who withdrew after an audit, taken out of what a page shows of it.

_HINT = "audit again with --withdrawn FILE, and view that run"


def shown_without(
    shown: Sequence[Shown], withdrawn: str | Path, *, allow_unmatched: bool
) -> list[Shown]:
    """Take out who is on a list: their rows, and whatever would tell of them by subtraction."""
    listed = read_withdrawn(withdrawn)
    kept = runs_without([one.run for one in shown], listed, allow_unmatched=allow_unmatched)
    return [
        replace(one, run=_told(run), whole=False) if _units(run) != _units(one.run) else one
        for one, run in zip(shown, kept, strict=True)
    ]


def refuse_differences(before: Sequence[Shown], after: Sequence[Shown], *, people: bool) -> None:
    """Refuse a file in which what is listed, less what is counted, is who withdrew."""
    if all(one.whole for one in after):
        return
    if people:
        raise SpecError(
            "people who withdrew could be worked out from this file: the run's values still count "
            "them, and the list of all others would be in it as well",
            expected="--bundle without --people, or a run without those who withdrew",
            found="--people with --withdrawn",
            hint=_HINT,
        )
    units = [_units(one.run) for one in after]
    gone = [_units(one.run) - left for one, left in zip(before, units, strict=True)]
    for i, some in enumerate(units):
        for j, others in enumerate(units[:i]):
            if gone[i] != gone[j] and some & others:
                raise SpecError(
                    "people who withdrew could be worked out from this file: one run's values "
                    "count more of them than the other's, and most people are in both",
                    expected="runs that count the same people",
                    found=f"{after[j].name} and {after[i].name}",
                    hint=f"{_HINT}; or write a file for each run",
                )


def _units(run: Run) -> frozenset[str]:
    tables = [run.scores, run.attributes, *run.evidence.values()]
    held = [t["unit_id"].drop_nulls().cast(pl.String) for t in tables if "unit_id" in t.columns]
    return frozenset(pl.concat(held).unique().to_list()) if held else frozenset()


def _told(run: Run) -> Run:
    told = (
        "People withdrew after this audit, and its values still rest on them: audit again with "
        "--withdrawn to take them out of the values. Spreads of scores, and who gained and lost, "
        "are left out."
    )
    warnings = [told, *(run.record.get("warnings") or ())]
    return replace(run, record={**run.record, "warnings": warnings})
