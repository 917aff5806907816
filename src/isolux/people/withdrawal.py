"""People who withdrew their consent: taken out before anything is counted or computed.

A list of them is read from a file of the user's; whoever stands on it is removed together with
every photo that shows them, so that neither their labels nor their pixels are used. What is
written says how many they were and never who: not in notes, not in tables, and no hash of the
list, as the hash of a short list of ids tells the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from isolux.io.frames import read_table
from isolux.io.ids import ids_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError, TableError
from isolux.vocabulary.tables import ATTRIBUTES, INSTANCES

__all__ = ["WithdrawnList", "read_withdrawn", "unnamed", "without_withdrawn"]

_COLUMNS = ("subject_id", "instance_id", "image_id", "household_id")
_PLAIN = (".txt", ".lst")
_TELLING = 4  # characters from which a word in a note is taken for an id and not for a number
_HIDDEN = "(withdrawn)"


@dataclass(frozen=True, slots=True)
class WithdrawnList:
    """Ids of who withdrew, and the column they stand in; None: a plain list, subjects' if any."""

    ids: frozenset[str]
    column: str | None = None


def read_withdrawn(path: str | Path) -> WithdrawnList:
    r"""Read a list of who withdrew.

    Parameters
    ----------
    path : str or Path
        Text (.txt, .lst) with an id in each line (empty lines and lines that begin with ``#`` are
        passed over); or a table (CSV, TSV, JSON lines, Parquet, Arrow) with one of the columns
        ``subject_id``, ``instance_id``, ``image_id``, ``household_id``; or with one column alone,
        named as an attribute of the dataset is (``subject``).

    Raises
    ------
    FileError
        No such file, or it names nobody: an empty list would withdraw nobody in silence.
    TableError
        None of these columns among several, or more than one of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "withdrawn.txt"
    ...     _ = file.write_text("# since May\ns7\n\ns9\n")
    ...     sorted(read_withdrawn(file).ids)
    ['s7', 's9']
    """
    path = Path(path).expanduser()
    if path.suffix.lower() in _PLAIN:
        found = WithdrawnList(frozenset(_lines(path)))
    else:
        table = read_table(path)
        named = [name for name in _COLUMNS if name in table.columns]
        named = named or table.columns[: len(table.columns) == 1]
        if len(named) != 1:
            raise TableError(
                "this list of withdrawn people cannot be read",
                expected="one of the columns " + ", ".join(_COLUMNS),
                found=f"{len(named)} of them" if named else "none of them",
                where=str(path),
                hint="a plain list of ids is a text file, .txt",
            )
        ids = ids_of(table, named[0], str(path))
        found = WithdrawnList(frozenset(ids.to_list()), named[0])
    if not found.ids:
        raise FileError(
            "this list of withdrawn people is empty",
            expected="an id in each line",
            where=str(path),
            hint="leave --withdrawn out if nobody withdrew",
        )
    return found


def without_withdrawn(dataset: Dataset, listed: WithdrawnList) -> Dataset:
    """Remove who withdrew, and every photo that shows them.

    Parameters
    ----------
    dataset : Dataset
    listed : WithdrawnList

    Returns
    -------
    Dataset
        Without those people, without those photos (the others in them go too, and are counted),
        and without the attributes of either. ``withdrawn`` holds the ids that must not be written
        anywhere. A note says how many went, and how many ids of the list name nobody here.

    Raises
    ------
    SpecError
        The list names a column that the dataset lacks, or everyone withdrew.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> three = Dataset(
    ...     name="three people",
    ...     info=DatasetInfo(title="Three people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b", "c"], "image_id": ["1", "1", "2"]}),
    ... )
    >>> left = without_withdrawn(three, WithdrawnList(frozenset({"a"})))
    >>> left.instances["instance_id"].to_list(), left.notes
    (['c'], ('1 person withdrew; with them went 1 photo and 1 other person in it.',))
    """
    instances = INSTANCES.conform(dataset.instances)
    column = listed.column or _plain_column(instances)
    ids = pl.Series(sorted(listed.ids), dtype=pl.String)
    own = _named_so(dataset, instances, column)
    withdrew = instances["instance_id"].is_in(
        own.filter(own["id"].is_in(ids.implode()))["who"].implode()
    )
    photos = instances.filter(withdrew)["image_id"].unique()
    goes = withdrew | instances["image_id"].is_in(photos.implode()).fill_null(value=False)
    if instances.height and goes.all():
        raise SpecError(
            "nobody is left: everyone withdrew, or stands in a photo with who did",
            where=dataset.name,
        )
    gone, kept = instances.filter(goes), instances.filter(~goes)
    units = _units_gone(gone, kept, photos)
    images = dataset.images
    if "image_id" in images.columns:
        images = images.filter(~pl.col("image_id").is_in(photos.implode()))
    unknown = len(ids) - int(ids.is_in(own["id"].implode()).sum())
    hidden = _ids(units, listed)
    note = _note(instances.filter(withdrew), gone, photos, unknown)
    return replace(
        dataset,
        instances=kept,
        images=images,
        attributes=_without(dataset.attributes, units),
        notes=(*unnamed(dataset.notes, hidden), note),
        withdrawn=hidden,
    )


def unnamed(notes: Iterable[str], withdrawn: frozenset[str]) -> list[str]:
    """Blot the ids of who withdrew out of sentences.

    Examples
    --------
    >>> unnamed(["no face in s0007.jpg"], frozenset({"s0007.jpg"}))
    ['no face in (withdrawn)']
    """
    telling = sorted((i for i in withdrawn if len(i) >= _TELLING), key=len, reverse=True)
    found = list(notes)
    for start in range(0, len(telling), 1_000):
        words = "|".join(re.escape(word) for word in telling[start : start + 1_000])
        pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
        found = [type(note)(pattern.sub(_HIDDEN, note)) for note in found]  # a caution stays one
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise FileError(
            "this list is no text", expected="UTF-8", found=error.reason, where=str(path)
        ) from error
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise FileError("the file cannot be read", found=found, where=str(path)) from error
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _named_so(dataset: Dataset, instances: pl.DataFrame, column: str) -> pl.DataFrame:
    """Give each person's id in that column: ``who``, ``id``; an attribute can hold it too."""
    if column in _COLUMNS and column in instances.columns:
        own = instances.select(who="instance_id", id=pl.col(column).cast(pl.String)).drop_nulls()
        if own.height or instances.is_empty():
            return own
    rows = dataset.instance_attributes().filter(pl.col("attribute") == column)
    if rows.is_empty():
        raise SpecError(
            f"the list of withdrawn people goes by {column!r}, which this dataset has not",
            expected="one of "
            + ", ".join(c for c in _COLUMNS if c in instances.columns)
            + ", or an attribute's name",
            found=column,
            where=dataset.name,
        )
    return rows.select(who="unit_id", id="value").drop_nulls()


def _plain_column(instances: pl.DataFrame) -> str:
    subjects = instances["subject_id"]
    return "subject_id" if subjects.is_not_null().any() else "instance_id"


def _units_gone(gone: pl.DataFrame, kept: pl.DataFrame, photos: pl.Series) -> dict[str, pl.Series]:
    """Ids of each kind of unit that nothing is left of."""
    units = {"instance": gone["instance_id"], "image": photos}
    for kind in ("subject", "household"):
        column = f"{kind}_id"
        if column in gone.columns:
            ids = gone[column].drop_nulls().unique()
            units[kind] = ids.filter(~ids.is_in(kept[column].drop_nulls().implode()))
    return units


def _without(attributes: pl.DataFrame, units: dict[str, pl.Series]) -> pl.DataFrame:
    rows = ATTRIBUTES.conform(attributes)
    for kind, ids in units.items():
        of_them = (pl.col("unit_kind") == kind) & pl.col("unit_id").is_in(ids.implode())
        rows = rows.filter(~of_them)
    return rows


def _ids(units: dict[str, pl.Series], listed: WithdrawnList) -> frozenset[str]:
    return listed.ids.union(*(ids.cast(pl.String).to_list() for ids in units.values()))


def _note(withdrew: pl.DataFrame, gone: pl.DataFrame, photos: pl.Series, unknown: int) -> str:
    """Say how many went, in people where the dataset tells them apart."""
    subjects = withdrew["subject_id"].drop_nulls().n_unique()
    others = gone.height - withdrew.height
    said = f"{_many(subjects or withdrew.height, 'person', 'people')} withdrew"
    if len(photos):
        said += f"; with them went {_many(len(photos), 'photo', 'photos')}"
    if others:
        where = "it" if len(photos) == 1 else "them"
        said += f" and {_many(others, 'other person', 'other people')} in {where}"
    if unknown:
        said += f". {_many(unknown, 'id', 'ids')} of the list"
        said += " names nobody here" if unknown == 1 else " name nobody here"
    return f"{said}."


def _many(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"
