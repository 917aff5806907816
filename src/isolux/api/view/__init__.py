"""A page in which runs are explored: groups sorted, searched and filtered, each number as measured.

    run directories → what a page holds of them → one file that opens by a double click

The page shows what the run's tables hold; changes between two runs are tested when it is written.
What of people it may hold, and what never enters it: ``docs/how_to/viewer.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import polars as pl

from isolux.api._tables_from_memory import RunHolder, RunSource, run_of
from isolux.api.compare import compare
from isolux.api.compare.person_matching import list_scored_units
from isolux.api.publish import publish
from isolux.api.view.person_images import find_person_images
from isolux.core.containers import Run
from isolux.core.counts import COUNTS
from isolux.core.errors import IsoluxError, OutputError, SpecError, UnknownNameError
from isolux.core.progress import report_step
from isolux.io import run_directory, write_text
from isolux.io.run_changes import explain_changes, list_changed_files
from isolux.people.withdrawal import remove_withdrawn_from_runs
from isolux.people.withdrawal_lists import read_withdrawn_list
from isolux.viewer import Contents, DisplayedRun, Site, build_page_contents, serve_until_interrupted
from isolux.viewer import build_standalone_page as page_of

MAX_COMPARED_RUNS = 3
"""Changes are tested between so many runs: each two of them are resampled together."""


def view(
    runs: Run | RunHolder | str | Path | Sequence[Run | RunHolder | str | Path],
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
    displayed_runs = load_runs_for_display(
        runs,
        metric=metric,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        publish_min=publish_min,
        people=people,
        bundled=True,
    )
    return write_text(page, page_of(_build_contents(runs, displayed_runs, people=people)))


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
    displayed_runs = load_runs_for_display(
        runs, metric=metric, withdrawn=withdrawn, allow_unmatched=allow_unmatched
    )
    loaded_runs = [displayed.run for displayed in displayed_runs]
    people = all(run.scores.height and COUNTS not in run.evidence for run in loaded_runs)
    images_to_serve = None
    if images is not None:
        images_to_serve = find_person_images(
            loaded_runs,
            images,
            withdrawn=withdrawn,
            allow_unmatched=allow_unmatched,
            may_show=may_show,
            show_faces=show_faces,
        )
    page_contents = _build_contents(runs, displayed_runs, people=people)
    page_holds = {
        **page_contents.manifest["holds"],
        "served": True,
        "pictures": images_to_serve is not None,
    }
    contents = replace(page_contents, manifest={**page_contents.manifest, "holds": page_holds})
    serve_until_interrupted(
        Site(contents, images_to_serve), port, lambda address: ready(address, people)
    )


def load_runs_for_display(
    runs: RunSource | Sequence[RunSource],
    *,
    metric: Sequence[str] = (),
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
    publish_min: int = 0,
    people: bool = False,
    bundled: bool = False,
) -> list[DisplayedRun]:
    """Load the runs to display: selected metrics, without withdrawn people, suppressed if asked."""
    report_step("reading the runs")
    is_single = isinstance(runs, str | Path) or not isinstance(runs, Sequence)
    sources: list[RunSource] = [runs] if is_single else list(runs)  # type: ignore[list-item, arg-type]
    displayed_runs = [_to_displayed_run(source, i) for i, source in enumerate(sources, start=1)]
    if metric:
        metric_names = pl.concat([s.run.group_metrics["metric"] for s in displayed_runs]).unique(
            maintain_order=True
        )
        for name in metric:
            if name not in metric_names.to_list():
                raise UnknownNameError("metric", name, metric_names.to_list(), where="--metric")
        displayed_runs = [
            replace(displayed, run=_select_metrics(displayed.run, metric))
            for displayed in displayed_runs
        ]
    current_runs = displayed_runs
    if withdrawn is not None:
        current_runs = drop_withdrawn(displayed_runs, withdrawn, allow_unmatched=allow_unmatched)
    if bundled:
        refuse_revealing_withdrawals(displayed_runs, current_runs, people=people)
    return (
        publish_displayed_runs(displayed_runs, current_runs, publish_min)
        if publish_min
        else current_runs
    )


def _build_contents(
    runs: RunSource | Sequence[RunSource], displayed_runs: Sequence[DisplayedRun], *, people: bool
) -> Contents:
    """Build the page's contents; errors name a run whose files were changed."""
    sources = runs if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    with ExitStack() as error_contexts:
        for source in sources:
            if isinstance(source, str | Path):
                error_contexts.enter_context(explain_changes(source))
        comparisons, untested = compare_displayed_runs(displayed_runs)
        return build_page_contents(
            displayed_runs,
            people=people,
            figures=True,
            comparisons=comparisons,
            untested=untested,
        )


def compare_displayed_runs(
    displayed_runs: Sequence[DisplayedRun],
) -> tuple[dict[tuple[int, int], Run], str]:
    """Test the changes between runs of one model each, or say why they cannot be compared."""
    comparisons: dict[tuple[int, int], Run] = {}
    pairs = list(combinations(enumerate(displayed_runs), 2))
    if not pairs or len(displayed_runs) > MAX_COMPARED_RUNS:
        return {}, ""
    reason = ""
    for (i, first), (j, second) in pairs:
        if not all(map(_can_be_compared, (first, second))):
            continue
        report_step(f"comparing {first.name} and {second.name}")
        try:
            comparisons[i, j] = compare(first.run, second.run).run
        except IsoluxError as error:  # runs of other people are shown beside each other, untested
            reason = str(error).splitlines()[0]
    return comparisons, reason


def _can_be_compared(displayed: DisplayedRun) -> bool:
    """Return whether a run is an audit of one model, complete and not reduced for publishing."""
    run = displayed.run
    is_audit = "model_a" not in run.disparities.columns and run.scores.height > 0
    has_one_model = run.group_metrics["model"].n_unique() == 1
    is_published = bool(run.record.get("publish_min"))
    return is_audit and has_one_model and displayed.is_complete and not is_published


def _to_displayed_run(source: RunSource, position: int) -> DisplayedRun:
    if isinstance(source, str | Path):
        run = run_directory.load_run(
            source, on_change="told"
        )  # the page reports changed files itself
        name = Path(source).expanduser().resolve().name
        return DisplayedRun(run, name, list_changed_files(source))
    return DisplayedRun(run_of(source), f"run {position}")


def _select_metrics(run: Run, names: Sequence[str]) -> Run:
    is_selected = pl.col("metric").is_in(list(names))
    return replace(
        run,
        scores=run.scores.filter(is_selected),
        group_metrics=run.group_metrics.filter(is_selected),
        disparities=run.disparities.filter(is_selected),
        findings=run.findings.filter(is_selected | pl.col("metric").is_null()),
    )


# Publication on one page: no small counts in any run, nor between any two.

_GROUP_KEY = ("metric", "label", "threshold", "attribute", "values")


def publish_displayed_runs(
    original_runs: Sequence[DisplayedRun], current_runs: Sequence[DisplayedRun], minimum: int
) -> list[DisplayedRun]:
    """Suppress small groups in all runs, by the people whom their values count."""
    runs = [
        replace(original_run.run, record=current.run.record)
        for original_run, current in zip(original_runs, current_runs, strict=True)
    ]
    published_runs = [publish(run, minimum, other_runs=runs) for run in runs]
    published_displays = [
        replace(displayed, run=run)
        for displayed, run in zip(current_runs, published_runs, strict=True)
    ]
    for (a, first_original), (b, second_original) in combinations(
        zip(published_displays, original_runs, strict=True), 2
    ):
        _refuse_near_totals(
            a, b, minimum, shares_people=_have_common_units(first_original.run, second_original.run)
        )
    return published_displays


def _have_common_units(first: Run, second: Run) -> bool:
    """Return whether any unit was scored in both runs."""
    ids = list_scored_units(first)
    return bool(ids.is_in(list_scored_units(second).implode()).any())


def _refuse_near_totals(
    a: DisplayedRun, b: DisplayedRun, minimum: int, *, shares_people: bool
) -> None:
    """Refuse totals of two runs that differ by a few people."""
    first_groups, second_groups = (
        run.run.group_metrics.select("model", *_GROUP_KEY, "n_units", "value") for run in (a, b)
    )
    matched_groups = first_groups.join(second_groups, on=_GROUP_KEY, nulls_equal=True, suffix="_b")
    count_difference = (pl.col("n_units") - pl.col("n_units_b")).abs()
    near_totals = matched_groups.filter(count_difference.is_between(1, minimum - 1))
    if near_totals.filter(pl.col("model") == pl.col("model_b")).height:
        problem = (
            "these runs audit one model twice, on nearly the same people: the scores of a few of "
            "them would be one run's value minus the other's"
        )
        hint = "publish one of them; where they are of two models, audit each with another "
        hint += "--model-name"
    elif near_totals.height and shares_people:
        problem = (
            "these runs count nearly the same people: the number of a few of them would be one "
            "run's count minus the other's"
        )
        hint = "publish what `isolux compare` makes of the two: it counts those judged in both"
    else:
        return
    raise SpecError(
        problem,
        expected=f"runs whose groups differ by nobody, or by {minimum} people or more",
        found=f"{a.name} and {b.name}",
        hint=hint,
    )


# People who withdrew after an audit are dropped from the page.

_AUDIT_AGAIN_HINT = "audit again with --withdrawn FILE, and view that run"


def drop_withdrawn(
    displayed_runs: Sequence[DisplayedRun], withdrawn: str | Path, *, allow_unmatched: bool
) -> list[DisplayedRun]:
    """Drop withdrawn people's rows, and what would reveal them by subtraction."""
    withdrawn_list = read_withdrawn_list(withdrawn)
    remaining_runs = remove_withdrawn_from_runs(
        [displayed.run for displayed in displayed_runs],
        withdrawn_list,
        allow_unmatched=allow_unmatched,
    )
    return [
        replace(displayed, run=_add_withdrawal_warning(run), is_complete=False)
        if _list_units(run) != _list_units(displayed.run)
        else displayed
        for displayed, run in zip(displayed_runs, remaining_runs, strict=True)
    ]


def refuse_revealing_withdrawals(
    original_runs: Sequence[DisplayedRun], current_runs: Sequence[DisplayedRun], *, people: bool
) -> None:
    """Refuse a file in which counts and listed people together reveal who withdrew."""
    if all(displayed.is_complete for displayed in current_runs):
        return
    if people:
        raise SpecError(
            "people who withdrew could be worked out from this file: the run's values still count "
            "them, and the list of all others would be in it as well",
            expected="--bundle without --people, or a run without those who withdrew",
            found="--people with --withdrawn",
            hint=_AUDIT_AGAIN_HINT,
        )
    units = [_list_units(displayed.run) for displayed in current_runs]
    removed_units = [
        _list_units(displayed.run) - remaining_units
        for displayed, remaining_units in zip(original_runs, units, strict=True)
    ]
    for i, units_i in enumerate(units):
        for j, units_j in enumerate(units[:i]):
            if removed_units[i] != removed_units[j] and units_i & units_j:
                raise SpecError(
                    "people who withdrew could be worked out from this file: one run's values "
                    "count more of them than the other's, and most people are in both",
                    expected="runs that count the same people",
                    found=f"{current_runs[j].name} and {current_runs[i].name}",
                    hint=f"{_AUDIT_AGAIN_HINT}; or write a file for each run",
                )


def _list_units(run: Run) -> frozenset[str]:
    tables = [run.scores, run.attributes, *run.evidence.values()]
    id_columns = [
        t["unit_id"].drop_nulls().cast(pl.String) for t in tables if "unit_id" in t.columns
    ]
    return frozenset(pl.concat(id_columns).unique().to_list()) if id_columns else frozenset()


def _add_withdrawal_warning(run: Run) -> Run:
    caution = (
        "People withdrew after this audit, and its values still rest on them: audit again with "
        "--withdrawn to take them out of the values. Spreads of scores, and who gained and lost, "
        "are left out."
    )
    warnings = [caution, *(run.record.get("warnings") or ())]
    return replace(run, record={**run.record, "warnings": warnings})
