"""VisoGender: people in pictures of 23 occupations, alone with an object or with another person.

Hall et al. (2023). The authors publish two tables of addresses and labels, ``OO_Visogender_…tsv``
(occupation and object: one person) and ``OP_Visogender_…tsv`` (occupation and participant: two),
dated by their names; which is which is read off the columns, as one was published in the other's
folder. No picture comes with them: those that were saved below the folder by their id
(``OO_1.jpg``) are found. Tables for ``--task pronoun_resolution``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._tables import build_clustered_dataset, melt_columns_to_attribute_rows
from isolux.io.cell_parsing import as_text
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.refusals import refuse_cells, refuse_repeats, require_columns

GENDER_BY_WORD = {
    "masculine": "masculine",
    "man": "masculine",
    "feminine": "feminine",
    "woman": "feminine",
    "neutral": "neutral",
}
"""The tables' words, of 2023 and of later, and what they become."""

_ADDRESS_COLUMN = "URL type (Type NA if can't find)"
_COLUMNS = {
    "idx": "IDX",
    "sector": "Sector",
    "specialisation": "Specialisation",
    "occupation": "Occupation",
}
_GENDER_COLUMNS = ("Occupation_perceived_gender", "Occupation_Gender")
_OTHER_GENDER_COLUMNS = ("Participant_perceived_gender", "Participant_Gender")
_COMPANION_COLUMNS = {"OO": "Object", "OP": "Participant"}
_PEOPLE_PHRASES = {"OO": "one person", "OP": "two people"}
_DATE = re.compile(r"(\d{2})(\d{2})(\d{4})\.tsv$")
_BLANK_WORDS = ("", "na", "n/a")
_ATTRIBUTES = (
    "gender",
    "other_gender",
    "occupation",
    "sector",
    "specialisation",
    "beside",
    "people",
    "error_code",
)

INFO = DatasetInfo(
    title="VisoGender",
    summary="690 pictures of people in 23 occupations, alone or with another person, with their"
    " perceived gender.",
    references=(
        Reference(
            key="visogender",
            citation="Hall, S. M., Gonçalves Abrantes, F., Zhu, H., Sodunke, G., Shtedritski, A.,"
            " & Kirk, H. R. (2023). VisoGender: A dataset for benchmarking gender bias in"
            " image-text pronoun resolution. In Advances in Neural Information Processing Systems"
            " 36, Datasets and Benchmarks.",
            url="https://github.com/oxai/visogender",
        ),
    ),
    licence="CC BY 4.0 for the labels; each picture has its own; for evaluation alone",
    training_allowed=False,
    training_terms="This dataset is strictly not to be used for training under any circumstances.",
    withdrawal="the authors remove a picture on request, by a form that their page links",
    label_source="perceived",
    terms=(
        ("gender", "perceived gender of the person of the occupation"),
        ("other_gender", "perceived gender of the other person"),
        ("beside", "the object or the other person's role"),
        ("people", "how many people the picture shows"),
    ),
    assumptions=(
        "labels follow the query tags by which pictures were found, and the authors' judgement",
        "they are not what people say of themselves",
        "pictures of one address are one picture; others are independent of one another",
    ),
)


def load(path: str | Path) -> Dataset:
    r"""Load VisoGender's tables.

    ``cluster`` of ``isolux.load`` may be ``picture`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The folder that holds the tables, as published or in one; of several dates the latest is
        read. Or one of them.

    Returns
    -------
    Dataset
        ``instances``: the person of the occupation; ids as published (``OO_1``, ``OP_1``), the
        picture's address as cluster. ``attributes``: ``gender`` (``feminine``, ``masculine``,
        perhaps ``neutral``), ``other_gender`` (of two people), ``occupation``, ``sector``,
        ``specialisation``, ``beside``, ``people``, ``error_code`` where there is one. ``images``:
        the picture saved under its id below the folder, else its address.

    Raises
    ------
    FileError
        No such table there.
    TableError, UnknownNameError
        A column that is missing, a gender of another word, an id twice; with its row.

    Examples
    --------
    >>> import tempfile
    >>> head = ("IDX", "Sector", "Specialisation", "Occupation", "Object",
    ...         "URL type (Type NA if can't find)", "Licence", "Occupation_perceived_gender")
    >>> row = ("OO_1", "office", "legal", "judge", "desk", "https://a.org/1.jpg", "Yes", "feminine")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "OO_Visogender_02102023.tsv"
    ...     _ = file.write_text("\t".join(head) + "\n" + "\t".join(row) + "\n")
    ...     load(folder).values_of("occupation").select("unit_id", "value").row(0)
    ('OO_1', 'judge')
    """
    root_or_file = Path(path).expanduser()
    tables, notes = _read_latest_tables(root_or_file)
    faces = pl.concat([table.faces for table in tables], how="vertical")
    source, ids = str(root_or_file), faces["id"]
    refuse_cells(ids.is_null(), ids.alias(""), "a row has no id", "a cell in IDX", source)
    refuse_repeats(ids.alias(""), "two rows have the same id", "every IDX once", source)
    root = root_or_file if root_or_file.is_dir() else root_or_file.parent
    faces = faces.with_columns(uri=_find_image_paths_or_urls(root, faces))
    attribute_names = [name for name in _ATTRIBUTES if faces[name].is_not_null().any()]
    return build_clustered_dataset(
        "visogender",
        INFO,
        instances=faces.select(
            instance_id="id", image_id="id", cluster_id="picture", classes=pl.lit(["person"])
        ),
        attributes=melt_columns_to_attribute_rows(faces, "id", attribute_names),
        images=faces.select(image_id="id", uri="uri"),
        inputs={str(table.file): sha256_file(table.file) for table in tables},
        source=source,
        notes=(*notes, *_build_visogender_notes(faces)),
        cluster="picture",
        clusters={"picture": "cluster_id", "row": None, "person": None},
    )


@dataclass(frozen=True, slots=True)
class _VisogenderTable:
    file: Path
    table_type: str
    faces: pl.DataFrame


def _read_latest_tables(root_or_file: Path) -> tuple[list[_VisogenderTable], list[str]]:
    """Read the latest table of each kind that is asked for."""
    files = (
        [root_or_file]
        if root_or_file.is_file()
        else sorted(root_or_file.rglob("*.tsv"))
        if root_or_file.is_dir()
        else []
    )
    frames = [(file, read_table(file)) for file in files]
    candidates_by_type: dict[str, list[tuple[tuple[int, ...], Path, pl.DataFrame]]] = {
        "OO": [],
        "OP": [],
    }
    for file, frame in frames:
        for table_type, column in _COMPANION_COLUMNS.items():
            if {"IDX", "Occupation", column} <= set(frame.columns):
                candidates_by_type[table_type].append((_parse_date_of_file_name(file), file, frame))
    tables, notes = [], []
    for table_type, candidates in candidates_by_type.items():
        if not candidates:
            continue
        _, file, frame = max(candidates, key=lambda candidate: (candidate[0], str(candidate[1])))
        tables.append(
            _VisogenderTable(
                file, table_type, _build_visogender_faces(frame, table_type, str(file))
            )
        )
        if n_older := len(candidates) - 1:
            notes.append(f"{file.name} is read; {n_older} older table(s) of its kind are not.")
    if not tables:
        raise FileError(
            "there is no table of VisoGender's",
            expected="OO_Visogender_….tsv or OP_Visogender_….tsv, with columns IDX, Occupation and"
            " Object or Participant",
            found=", ".join(file.name for file in files[:4]) or "no .tsv file",
            where=str(root_or_file),
        )
    if missing_phrases := [
        _PEOPLE_PHRASES[table_type]
        for table_type in candidates_by_type
        if not candidates_by_type[table_type]
    ]:
        notes.append(f"There is no table of pictures of {missing_phrases[0]}.")
    return tables, notes


def _parse_date_of_file_name(file: Path) -> tuple[int, ...]:
    """Read the date at the end of a name, as year, month, day; none is the oldest."""
    date_match = _DATE.search(file.name)
    return tuple(int(digits) for digits in reversed(date_match.groups())) if date_match else ()


def _build_visogender_faces(frame: pl.DataFrame, table_type: str, source: str) -> pl.DataFrame:
    texts = {name: _read_text_column(frame, column, source) for name, column in _COLUMNS.items()}
    gender = _read_gender_column(frame, _GENDER_COLUMNS, source)
    null_column = pl.Series([None] * frame.height, dtype=pl.String)
    other_gender = (
        _read_gender_column(frame, _OTHER_GENDER_COLUMNS, source)
        if table_type == "OP"
        else null_column
    )
    errors = (
        _read_text_column(frame, "Error codes", source)
        if "Error codes" in frame.columns
        else null_column
    )
    address = _read_text_column(frame, _ADDRESS_COLUMN, source)
    address = address.set(
        address.str.to_lowercase().is_in(_BLANK_WORDS).fill_null(value=True), None
    )
    return pl.DataFrame(
        {
            "id": texts["idx"],
            "gender": gender,
            "other_gender": other_gender,
            "occupation": texts["occupation"].str.replace_all("_", " "),
            "sector": texts["sector"],
            "specialisation": texts["specialisation"],
            "beside": _read_text_column(
                frame, _COMPANION_COLUMNS[table_type], source
            ).str.replace_all("_", " "),
            "people": pl.Series([_PEOPLE_PHRASES[table_type]] * frame.height, dtype=pl.String),
            "error_code": errors,
            "address": address,
            # One picture is offered in several sizes: what follows the question mark says which.
            "picture": pl.Series(
                [
                    (text or "").partition("?")[0] if text and "gstatic" not in text else text
                    for text in address
                ],
                dtype=pl.String,
            ).fill_null(texts["idx"]),
        }
    )


def _read_text_column(frame: pl.DataFrame, column: str, source: str) -> pl.Series:
    require_columns(frame, (column,), source)
    cells = as_text(frame[column]).str.strip_chars()
    return cells.set((cells == "").fill_null(value=False), None)


def _read_gender_column(frame: pl.DataFrame, names: tuple[str, ...], source: str) -> pl.Series:
    gender_column = next((name for name in names if name in frame.columns), names[0])
    cells = _read_text_column(frame, gender_column, source).str.to_lowercase()
    is_unknown_word = ~cells.is_in(list(GENDER_BY_WORD)).fill_null(value=True)
    problem = "{n} cell(s) hold a perceived gender that VisoGender does not have"
    refuse_cells(
        is_unknown_word, cells, problem, ", ".join(GENDER_BY_WORD), source, column=gender_column
    )
    return cells.replace_strict(GENDER_BY_WORD, default=None, return_dtype=pl.String)


def _find_image_paths_or_urls(root: Path, faces: pl.DataFrame) -> pl.Series:
    """Give each picture that was saved below the folder its path, the others their address."""
    ids = set(faces["id"])
    saved_paths = {
        file.stem: file.relative_to(root).as_posix()
        for file in sorted(root.rglob("*"))
        if file.suffix.lower() in IMAGE_SUFFIXES and file.stem in ids
    }
    rows = faces.select("id", "address").iter_rows()
    return pl.Series([saved_paths.get(name, address) for name, address in rows], dtype=pl.String)


def _build_visogender_notes(faces: pl.DataFrame) -> list[str]:
    notes = []
    n_addresses = int(faces["uri"].str.contains("://").fill_null(value=False).sum())
    if n_addresses:
        notes.append(
            f"{n_addresses:,} of {faces.height:,} pictures are addresses alone: a model runs on"
            " those that are saved below the folder by their id (OO_1.jpg)."
        )
    if n_without_image := faces["uri"].null_count():
        notes.append(f"{n_without_image:,} row(s) have no picture.")
    shared = faces.height - faces["picture"].n_unique()
    if shared:
        notes.append(f"{shared:,} row(s) are of a picture that another row is of, too.")
    if n_with_error := int(faces["error_code"].is_not_null().sum()):
        notes.append(
            f'{n_with_error:,} row(s) have an error code; --only "error_code=…" tells them apart.'
        )
    return notes
