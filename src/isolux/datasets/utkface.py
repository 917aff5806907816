"""UTKFace: faces whose file names say age, gender and race.

Zhang, Song and Qi (2017). There is no table: ``26_1_0_20170117180555824.jpg.chip.jpg`` is a
woman of 26 whom the codes call White. Reads a folder of such files, or a list of their names; no
picture is opened. A few published names lack a field; they are listed and left out.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.core.formatting import AND_MORE, join_first
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._relative_paths import IMAGE_NAME_PATTERN, list_files_of_folder_or_list
from isolux.datasets._tables import (
    build_clustered_dataset,
    convert_years_to_age_groups,
    melt_columns_to_attribute_rows,
)

GENDERS = {"0": "Male", "1": "Female"}
RACES = {"0": "White", "1": "Black", "2": "Asian", "3": "Indian", "4": "Others"}
AGE_EDGES = (13, 30, 45)
"""Where Fairness Indicators' released code parts the ages of this dataset."""

_MAX_AGE = 116  # years; the oldest face of the publisher's page
_FILE_NAME = r"^(?<age>[0-9]{1,3})_(?<gender>[01])_(?<race>[0-4])_[^_]*$"
_MAX_LISTED_NAMES = 20  # malformed names that a note spells out

INFO = DatasetInfo(
    title="UTKFace",
    summary="Over 20,000 faces of ages 0 to 116; age, gender and race are in the file names.",
    references=(
        Reference(
            key="utkface",
            citation="Zhang, Z., Song, Y., & Qi, H. (2017). Age progression/regression by"
            " conditional adversarial autoencoder. In Proceedings of the IEEE Conference on"
            " Computer Vision and Pattern Recognition (CVPR) (pp. 5810–5818).",
            url="https://susanqq.github.io/UTKFace/",
        ),
    ),
    licence="non-commercial research only; the pictures stay their owners'",
    training_allowed=True,
    withdrawal="the publisher removes a picture whose owner asks; no list of them comes with it",
    label_source="inferred",
    terms=(
        ("age", "apparent age"),
        ("age_group", "apparent age"),
        ("gender", "apparent gender presentation"),
        ("race", "apparent race"),
    ),
    assumptions=(
        "each face is another person: the dataset names no subjects",
        "the groups come from a model's estimates, checked by one annotator",
        "they are not what people say of themselves",
    ),
)


def load(path: str | Path) -> Dataset:
    r"""Load UTKFace from its file names.

    ``cluster`` of ``isolux.load`` may be an attribute. Not given: faces are clusters.

    Parameters
    ----------
    path : str or Path
        The folder of pictures (those in folders below it too), or a text file with a name a line.
        The dataset has no splits of its own: give each part's folder or list. A picture whose name
        does not say age, gender and race is left out, and the notes list it.

    Returns
    -------
    Dataset
        ``instances``: a face, its path as id. ``attributes``: ``age`` (years, as ``number`` too),
        ``age_group`` (``under 13``, ``13-29``, ``30-44``, ``45 and over``), ``gender`` (``Male``,
        ``Female``), ``race`` (``White``, ``Black``, ``Asian``, ``Indian``, ``Others``).

    Raises
    ------
    FileError
        No such file or folder, or no picture in it that is named so.
    TableError
        A name that is listed twice or leads out of the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "26_1_0_20170117180555824.jpg.chip.jpg").touch()
    ...     load(folder).attributes.select("attribute", "value").rows()
    [('age', '26'), ('age_group', '13-29'), ('gender', 'Female'), ('race', 'White')]
    """
    root = Path(path).expanduser()
    source = str(root)
    listing = list_files_of_folder_or_list(root, "list of UTKFace's file names")
    faces, notes = _parse_utkface_file_names(listing.names, source)
    return build_clustered_dataset(
        "utkface",
        INFO,
        instances=faces.select(instance_id="file", image_id="file", classes=pl.lit(["face"])),
        attributes=melt_columns_to_attribute_rows(
            faces, "file", ("age", "age_group", "gender", "race")
        ),
        images=faces.select(image_id="file", uri="file"),
        inputs={source: listing.digest},
        source=source,
        notes=notes,
        clusters={"face": None, "row": None},
    )


def _parse_utkface_file_names(names: pl.Series, source: str) -> tuple[pl.DataFrame, list[str]]:
    base = pl.col("base")
    # "…357jpg.chip.jpg" and "….pg" are among the published names: a suffix alone decides nothing.
    picture = base.str.strip_chars_end().str.contains(IMAGE_NAME_PATTERN)
    parsed = (
        names.to_frame("file")
        .filter(pl.col("file") != "")
        .with_columns(base=pl.col("file").str.replace(r"(?s)^.*[/\\]", ""))
        .with_columns(said=base.str.extract_groups(_FILE_NAME), picture=picture)
        .unnest("said")
        .with_columns(pl.col("age").cast(pl.Float64))
    )
    is_valid = (pl.col("age") <= _MAX_AGE).fill_null(value=False)
    malformed = parsed.filter(~is_valid, pl.col("picture") | base.str.contains(r"^[0-9]+_"))
    n_other_files = parsed.filter(~is_valid).height - malformed.height
    faces = parsed.filter(is_valid)
    if faces.is_empty():
        raise FileError(
            "no file is named as UTKFace names its pictures",
            expected="<age>_<gender>_<race>_<date>.jpg",
            found=repr(parsed["base"][0]) if parsed.height else "no file",
            where=source,
        )
    labelled = faces.select(
        "file",
        "base",
        "age",
        convert_years_to_age_groups(faces["age"], AGE_EDGES).alias("age_group"),
        pl.col("gender").replace_strict(GENDERS, return_dtype=pl.String),
        pl.col("race").replace_strict(RACES, return_dtype=pl.String),
    )
    return labelled, [
        *_build_utkface_notes(malformed, n_other_files),
        *_note_repeated_photos(labelled),
    ]


def _build_utkface_notes(malformed: pl.DataFrame, n_other_files: int) -> list[str]:
    notes = []
    if malformed.height:
        examples = join_first(malformed["file"], _MAX_LISTED_NAMES, AND_MORE)
        notes.append(
            f"{malformed.height:,} picture(s) are left out, as their names do not say age, gender"
            f" and race: {examples}."
        )
    if n_other_files:
        notes.append(f"{n_other_files:,} file(s) are not pictures and are passed over.")
    return notes


def _note_repeated_photos(faces: pl.DataFrame) -> list[str]:
    """Warn of pictures that are there both as taken and aligned, or in two folders."""
    photos = faces["base"].str.replace(r"(?i)(\.jpg)?\.chip\.jpg$", ".jpg").n_unique()
    if photos == faces.height:
        return []
    note = (
        f"{faces.height:,} files are of {photos:,} photos: some are here twice, as taken and"
        " aligned or in two folders, and are counted twice."
    )
    return [note]
