"""Whether each person was found, and nothing else: a column, or a list of who was found or missed.

Where a question is whether people are detected at all, there are no answers to be right or wrong.
The result is the table predictions without ``label``: ``model, instance_id, detected``.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.io.frames import FORMATS, read_table, refuse_unless_file
from isolux.io.ids import IdFrom, id_column, ids_of
from isolux.io.text import decodable
from isolux.predictions._attributes import one_value_each
from isolux.predictions._detections import model_name
from isolux.predictions._join import join
from isolux.predictions._labels.confidences import whether_detected
from isolux.predictions._labels.reading import models_of_rows
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError
from isolux.vocabulary.notes import Caution

_COLUMNS = ("model", "instance_id", "detected")


def detected_from_attributes(
    dataset: Dataset, column: str, *, model: str | None = None
) -> pl.DataFrame:
    """Take whether people were found from an attribute of the dataset.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> people = Dataset(
    ...     name="x",
    ...     info=DatasetInfo(title="x", summary="x", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ...     attributes=pl.DataFrame({"unit_id": ["a", "b"], "attribute": "seen",
    ...                              "value": ["yes", "no"]}),
    ... )
    >>> detected_from_attributes(people, "seen").rows()
    [('seen', 'a', True), ('seen', 'b', False)]
    """
    wide = one_value_each(dataset, column)
    seen = whether_detected(wide["value"].alias(column), dataset.where)
    return _table(wide["instance_id"], seen, model or column)


def read_detected(
    path: str | Path,
    column: str,
    *,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    model: str | None = None,
    model_column: str | None = None,
    sheet: str | None = None,
    format: str | None = None,  # noqa: A002
) -> pl.DataFrame:
    """Read from a file with a row a person whether each was found."""
    frame = read_table(path, format=format, sheet=sheet)
    if column not in frame.columns:
        raise UnknownNameError("column", column, frame.columns, where=str(path))
    ids = ids_of(frame, id_column(frame, id, str(path), what="an answer"), str(path))
    table = _table(ids, whether_detected(frame[column], str(path)), model or _called(path))
    models = models_of_rows(frame, model_column, model, str(path))
    if models is not None:
        table = table.with_columns(models.fill_null(_called(path)).alias("model"))
    again = table.select("model", "instance_id").is_duplicated()
    if again.any():
        raise TableError(
            "a person is in several rows",
            expected="one row a person",
            found=repr(ids.filter(again)[0]),
            where=str(path),
        )
    return table


def found_or_missed(
    dataset: Dataset,
    path: str | Path,
    *,
    found: bool,
    id: str | None = None,  # noqa: A002
    id_from: IdFrom = "column",
    model: str | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    r"""Take a list of the people whom a model found, or missed; the others are the opposite.

    Examples
    --------
    >>> import tempfile
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> people = Dataset(
    ...     name="x",
    ...     info=DatasetInfo(title="x", summary="x", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.txt"
    ...     _ = file.write_text("b\nb\n")
    ...     table, notes = found_or_missed(people, file, found=False)
    >>> table.rows()
    [('net', 'a', True), ('net', 'b', False)]
    >>> notes
    ('1 of 2 people are on the list of missed people; the others count as found.',)
    """
    ids = _listed(path, id).unique(maintain_order=True)
    called = model or _called(path)
    met, notes = join(dataset, _table(ids, pl.Series([found] * len(ids)), called), id_from=id_from)
    strangers = [Caution(note) for note in notes if "have no person" in note]
    people = dataset.instances["instance_id"].cast(pl.String)
    if ids.name in people:
        raise TableError(
            "the first row of this list is a person, and not the column's name",
            expected="a column with a name, such as id", found=repr(ids.name), where=str(path),
            hint="give the column a name; a list without one is a text file (.txt) with one id "
            "per line",
        )  # fmt: skip
    on_list = people.is_in(met["instance_id"].implode())
    word, other = ("found", "missed") if found else ("missed", "found")
    said = (
        f"{int(on_list.sum()):,} of {len(people):,} people are on the list of {word} people; the "
        f"others count as {other}."
    )
    return _table(people, on_list if found else ~on_list, called), (said, *strangers)


def _listed(path: str | Path, column: str | None) -> pl.Series:
    file = Path(path).expanduser()
    if file.name.lower().endswith(tuple(s for known in FORMATS.values() for s in known)):
        frame = read_table(file)
        alone = frame.columns[0] if len(frame.columns) == 1 else None
        named = column or alone or id_column(frame, None, str(path), what="a line")
        return ids_of(frame, named, str(path)).alias(named)
    refuse_unless_file(file)
    lines = decodable(file.read_bytes(), str(path)).decode().splitlines()
    ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not ids:
        raise FileError("this list names nobody", expected="an id a line", where=str(path))
    return pl.Series(ids, dtype=pl.String)


def _called(path: str | Path) -> str:
    return model_name(path).removesuffix(".lst")


def _table(ids: pl.Series, detected: pl.Series, model: str) -> pl.DataFrame:
    frame = pl.DataFrame({"instance_id": ids.cast(pl.String), "detected": detected})
    return frame.select(pl.lit(model).alias("model"), "instance_id", "detected").select(_COLUMNS)
