"""``isolux check``: a dataset's problems, before anything is measured with it.

From a loaded dataset, and the files that its images name, to one table of problems. Checks are the
plugins of ``isolux.checks``; pictures are opened once for all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from isolux.checks import PROBLEMS, ImageFiles, NoImages, inspect_images, locate_images
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, InputError, SpecError, TableError, UnknownNameError
from isolux.core.info import CheckInfo
from isolux.core.plugin_options import parse_option_assignments
from isolux.core.refusals import collect_refusals
from isolux.core.spec import parse_spec
from isolux.core.tables import check as check_table
from isolux.people.loading import load_people
from isolux.people.withdrawal import remove_withdrawn_people
from isolux.people.withdrawal_lists import read_withdrawn_list

LOADING = "loading"
"""The check's name in the table where the loader refuses the dataset."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The problems found, and the checks that ran.

    Parameters
    ----------
    problems : polars.DataFrame
        check, severity (error, warning), problem, unit_kind, unit_id, file, expected, found, hint;
        errors first, then in the order of checks.
    checks : tuple of str
        Those that ran.
    notes : tuple of str
        What was not looked at, and why.
    """

    problems: pl.DataFrame
    checks: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def failed(self, *, strict: bool = False) -> bool:
        """Tell whether there is an error; with ``strict``, whether there is any problem."""
        return not (self.problems if strict else self.problems.filter(severity="error")).is_empty()


def check(
    data: Dataset | str | Path,
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    images: str | Path | None = None,
    no_images: bool = False,
    check_option: Sequence[str] = (),
    data_option: Sequence[str] = (),
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    separator: str | None = None,
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
) -> CheckResult:
    r"""Look for broken files, boxes, masks, ids, duplicate photos, private metadata.

    Parameters
    ----------
    data : Dataset or str
        A dataset, or NAME:PATH (``coco:instances.json``). Where its loader refuses cells, those
        are its problems, and nothing else is checked.
    only : sequence of str
        A check to run; default: all.
    skip : sequence of str
        A check to leave out.
    images : str or Path, optional
        The folder that contains the pictures; default: looked for near the annotation.
    no_images : bool
        Check only the annotation, and open no picture.
    check_option : sequence of str
        A check's setting, CHECK.NAME=VALUE: ``boxes.slack_px=2``.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    id : str, optional
        The column that identifies a row.
    separator : str, optional
        What separates several values in one cell.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are left out.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.

    Returns
    -------
    CheckResult
        ``.problems``, ``.notes``, ``.failed()``.

    Raises
    ------
    UnknownNameError, SpecError
        No such dataset, check or setting.
    FileError
        Nothing at the path, or no such folder of pictures.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,light\n1,day\n2,night\n")
    ...     check(f"table:{file}", no_images=True).failed()
    False
    """
    if images is not None and no_images:
        raise SpecError(
            "pictures are named and not to be opened",
            expected="--images or --no-images",
            found="both",
        )
    consent: dict[str, Any] = {"withdrawn": withdrawn, "allow_unmatched": allow_unmatched}
    if isinstance(data, Dataset):
        withdrawn_ids = None if withdrawn is None else read_withdrawn_list(withdrawn)
        loaded: Dataset | CheckResult = (
            data
            if withdrawn_ids is None
            else remove_withdrawn_people(data, withdrawn_ids, allow_unmatched=allow_unmatched)
        )
    else:
        name, _, path = str(data).partition(":")
        options = [*_list_options_of_all_columns(name, data_option), *data_option]
        people_settings = {"data_option": options, "id": id, "separator": separator, **consent}
        people = parse_spec({"data": str(data), **people_settings}).people
        loaded = load_dataset_or_report_problems(
            lambda: load_people(people, uses_unscored_people=True),
            path,
            name,
            # An error that is raised has the ids of who withdrew redacted; collected ones have not.
            collects_refusals=withdrawn is None,
        )
    if isinstance(loaded, CheckResult):
        return loaded
    names = _select_checks(only, skip)
    settings = _parse_check_options(names, check_option)
    notes = list(loaded.notes)
    image_files = _find_and_open_image_files(
        loaded, names, images, notes, opens_images=not no_images
    )
    finished_checks, tables = [], [PROBLEMS.empty()]
    for name in names:
        needs = _load_check_info(name).needs
        if needs != "tables" and image_files is None:
            continue
        image_settings = {"pictures": image_files} if needs != "tables" else {}
        found_problems = registry.load("checks", name).check(
            loaded, **image_settings, **settings[name]
        )
        tables.append(check_table(found_problems, PROBLEMS, source=name))
        finished_checks.append(name)
    problems = pl.concat(tables).sort(pl.col("severity") != "error", maintain_order=True)
    return CheckResult(problems, tuple(finished_checks), tuple(dict.fromkeys(notes)))


def _list_options_of_all_columns(name: str, options: Sequence[str]) -> list[str]:
    """List the settings that load what a dataset's loader leaves out unless it is asked for."""
    is_set = any(option.partition("=")[0].strip() == "segments" for option in options)
    has_segments = (
        name in registry.names("datasets")
        and "segments" in inspect.signature(registry.load("datasets", name).load).parameters
    )
    return ["segments=yes"] if has_segments and not is_set else []


def load_dataset_or_report_problems(
    load: Callable[[], Dataset],
    path: str | Path,
    name: str,
    *,
    collects_refusals: bool = True,
) -> Dataset | CheckResult:
    """Load a dataset; what its loader refuses are problems of the dataset, not a mistake.

    Examples
    --------
    >>> def refuse_age() -> Dataset:
    ...     raise InputError("an age is no number", expected="years", found="'old'", where="row 3")
    >>> found = load_dataset_or_report_problems(refuse_age, ".", "table")
    >>> found.problems.select("check", "problem", "found").row(0)
    ('loading', 'an age is no number', "'old'")
    """
    block: AbstractContextManager[list[TableError]] = (
        collect_refusals() if collects_refusals else nullcontext([])
    )
    with block as collected:
        last: list[InputError] = []
        try:
            dataset = load()
        except InputError as error:
            data_path = Path(path).expanduser()
            if not data_path.exists() or (
                data_path.is_dir() and error.where in {str(data_path), str(path)}
            ):
                raise
            last = [error]
        except Exception:
            if not collected:  # else a refused cell, named already, that was read on
                raise
    refusals = list({(error.problem, error.where): error for error in (*collected, *last)}.values())
    if not refusals:
        return dataset
    rows = [
        {
            "check": LOADING,
            "severity": "error",
            "problem": refusal.problem,
            "unit_kind": "dataset",
            "unit_id": name,
            "file": refusal.where or str(path),
            "expected": refusal.expected,
            "found": refusal.found,
            "hint": refusal.hint,
        }
        for refusal in refusals
    ]
    note = "Its loader refuses the dataset, so nothing else was checked."
    return CheckResult(pl.DataFrame(rows, schema=PROBLEMS.schema), (LOADING,), (note,))


def _load_check_info(name: str) -> CheckInfo:
    return cast("CheckInfo", registry.load_info("checks", name))


def _select_checks(only: Sequence[str], skip: Sequence[str]) -> list[str]:
    check_names = registry.names("checks")
    for name in (*only, *skip):
        if name not in check_names:
            raise UnknownNameError("check", name, check_names)
    selected_names = [
        name for name in check_names if (not only or name in only) and name not in skip
    ]
    if not selected_names:
        raise SpecError("no check is left to run", expected="at least one", found="all are skipped")
    order = ("tables", "files", "pixels")
    return sorted(selected_names, key=lambda name: order.index(_load_check_info(name).needs))


def _parse_check_options(
    names: Sequence[str], options: Sequence[str]
) -> dict[str, dict[str, object]]:
    options_by_check: dict[str, list[str]] = {name: [] for name in names}
    for option in options:
        name, dot, setting = option.partition(".")
        if not dot or name.strip() not in options_by_check:
            raise SpecError(
                "--check-option belongs to no check that runs",
                expected="CHECK.NAME=VALUE with CHECK one of " + ", ".join(options_by_check),
                found=repr(option),
            )
        options_by_check[name.strip()].append(setting)
    return {
        name: parse_option_assignments(
            registry.load("checks", name).check,
            check_options,
            owner=f"the check {name}",
            flag="--check-option",
            hidden=("pictures",),
        )
        for name, check_options in options_by_check.items()
    }


def _find_and_open_image_files(
    dataset: Dataset,
    names: Sequence[str],
    root: str | Path | None,
    notes: list[str],
    *,
    opens_images: bool,
) -> ImageFiles | None:
    """Find the image files, and open them where a check needs pixels; None: no images."""
    if root is not None and not Path(root).expanduser().is_dir():
        raise FileError("there is no such folder of pictures", where=str(root))
    needs = {_load_check_info(name).needs for name in names} - {"tables"}
    if not needs:
        return None
    if not opens_images:
        skipped_names = ", ".join(
            name for name in names if _load_check_info(name).needs != "tables"
        )
        notes.append(f"Without pictures these were not checked: {skipped_names}.")
        return None
    try:
        image_files = locate_images(dataset, root)
    except NoImages as no_images:
        notes.append(str(no_images))
        return None
    notes.append(f"Pictures were looked for below {image_files.root}.")
    if image_files.n_siblings:
        notes.append(
            f"{image_files.n_siblings:,} picture(s) beside them belong to another part of the"
            f" release ({', '.join(dataset.info.sibling_image_globs)}), which was not loaded."
        )
    n_without_path = dataset.images.height - image_files.rows.height
    if n_without_path:
        notes.append(f"{n_without_path:,} image(s) have no path, or one that is an address.")
    if "pixels" not in needs:
        return image_files

    return inspect_images(image_files)
