"""WIDER FACE with demographics: faces in crowds, and what annotators perceived of those in view.

Reads WIDER FACE's ground truth (Yang et al. 2016; MATLAB or text) and, if given, perceived
gender, age and Fitzpatrick skin type of a part of its faces. Every face takes part in matching;
where demographics are at hand only faces that have them are judged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import JoinError
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, check
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._files import (
    Inputs,
    build_recursive_patterns,
    find_first_file_or_none,
    find_single_file,
)
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._tables import (
    build_clustered_dataset,
    build_rows_of_one_attribute,
    left_join_in_order,
)
from isolux.datasets.widerface.files import (
    LABEL_WORDS,
    parse_difficulty_mat,
    parse_ground_truth_mat,
    parse_ground_truth_text,
)
from isolux.io.cell_parsing import as_text
from isolux.io.refusals import refuse_cells, refuse_repeats, require_columns

NOT_SURE = "Not Sure"
DEMOGRAPHIC_VALUES: dict[str, tuple[str, ...]] = {
    "perceived_gender": ("Male", "Female", NOT_SURE),
    "perceived_age": ("Young Adult", "Adult", "Middle age", "Senior", NOT_SURE),
    "perceived_skin": ("I", "II", "III", "IV", "V", "VI", NOT_SURE),
}
_LEVELS = ("easy", "medium", "hard")

INFO = DatasetInfo(
    title="WIDER FACE with demographics",
    summary="Faces in crowds of 61 kinds of events; perceived gender, age and skin type.",
    references=(
        citations.WIDER_FACE,
        Reference(
            key="widerface-demographics",
            citation="Amazon Science. WIDER FACE demographics: perceived gender, age and skin"
            " type of faces of WIDER FACE [data set].",
            url="https://github.com/amazon-science/widerface-demographics",
        ),
    ),
    licence="images for research use; demographics CC BY-NC 4.0",
    training_allowed=None,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    noun="faces",
    terms=(
        ("perceived_gender", "perceived gender presentation"),
        ("perceived_age", "perceived age"),
        ("perceived_skin", "perceived skin type (Fitzpatrick)"),
        ("difficulty", "WIDER FACE's difficulty (easy is part of medium, medium of hard)"),
        ("invalid", "marked as invalid by WIDER FACE"),
    ),
    assumptions=(
        "images are independent of one another, faces in one image are not",
        "the groups come from annotators' judgements, not from what people say about themselves",
    ),
)


def load(
    path: str | Path,
    *,
    split: str = "val",
    judge: Literal["annotated", "all"] = "annotated",
    not_sure: Literal["keep", "leave out"] = "keep",
) -> Dataset:
    r"""Load WIDER FACE, with its demographics where they lie next to it.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``event``, ``face``.

    Parameters
    ----------
    path : str or Path
        A folder with ``wider_face_val.mat`` or ``wider_face_val_bbx_gt.txt``, and perhaps
        ``demographics_val.csv``, ``wider_easy_val.mat``, ``wider_medium_val.mat``,
        ``wider_hard_val.mat`` (also in folders of theirs); or one of the first two.
    split : str
        ``val`` or ``train``, as in the files' names.
    judge : {"annotated", "all"}
        Whether faces without demographics are judged. They take part in matching either way.
        Without a file of demographics all are judged.
    not_sure : {"keep", "leave out"}
        Whether faces are judged of whom annotators were not sure in gender, age or skin.

    Returns
    -------
    Dataset
        ``instances``: a face, ``<event>/<image>.jpg_<face>``, its box in pixels, ``face_index``
        from 0, ``judged``, ``easy``, ``medium``, ``hard`` (null without their lists).
        ``attributes``: ``perceived_gender``, ``perceived_age``, ``perceived_skin``, ``blur``,
        ``expression``, ``illumination``, ``invalid``, ``occlusion``, ``pose``, ``difficulty``.

    Raises
    ------
    FileError, TableError, JoinError
        A damaged file, a code or word that the dataset does not have, a face that is not there;
        with the row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wider_face_val_bbx_gt.txt"
    ...     _ = file.write_text("0--Parade/a.jpg\n1\n44 33 12 14 2 0 0 0 1 0\n")
    ...     dataset = load(folder)
    >>> dataset.instances["instance_id"][0], dataset.values_of("blur")["value"][0]
    ('0--Parade/a.jpg_0', 'heavy')
    """
    check_literal_settings(load, judge=judge, not_sure=not_sure)
    names = (f"wider_face_{split}.mat", f"wider_face_{split}_bbx_gt.txt")
    file = find_single_file(path, build_recursive_patterns(*names), "WIDER FACE ground truth")
    root_or_file = Path(path).expanduser()
    root = file.parent if root_or_file.is_file() else root_or_file
    inputs, source = Inputs(), str(file)
    reader = parse_ground_truth_mat if file.suffix.lower() == ".mat" else parse_ground_truth_text
    face_rows = reader(inputs.read(file), source)
    faces = face_rows.drop_nulls("face_index").with_columns(
        pl.col("box_w", "box_h").clip(lower_bound=0.0),
        instance_id=pl.format("{}_{}", "image_id", "face_index"),
        event=pl.col("image_id").str.replace("/.*$", ""),
    )
    faces = _add_difficulty_levels(check_box_columns(faces, source), root, split, inputs)
    demographics = _read_perceived_demographics_or_none(faces, root, split, inputs)
    scored_faces, notes = _flag_scored_faces(faces, demographics, judge, not_sure)
    images = face_rows.select("image_id").unique(maintain_order=True)
    return build_clustered_dataset(
        "widerface",
        INFO,
        instances=scored_faces.select(
            "instance_id",
            "image_id",
            *BOX_COLUMNS,
            (pl.col("box_w") * pl.col("box_h")).alias("area"),
            "face_index",
            "judged",
            *_LEVELS,
            "event",
            classes=pl.lit(["face"]),
        ),
        attributes=_build_widerface_attribute_rows(faces, demographics),
        images=images.with_columns(uri=pl.format("WIDER_{}/images/{}", pl.lit(split), "image_id")),
        inputs=inputs,
        source=source,
        notes=(*_note_faces_with_negative_boxes(face_rows), *notes),
        cluster="image",
        clusters={"image": "image_id", "face": None},
    )


def _note_faces_with_negative_boxes(face_rows: pl.DataFrame) -> tuple[str, ...]:
    n = face_rows.filter((pl.col("box_w") < 0) | (pl.col("box_h") < 0)).height
    return (f"{n:,} box(es) of a negative size are taken as having no area.",) if n else ()


def _add_difficulty_levels(
    faces: pl.DataFrame, root: Path, split: str, inputs: Inputs
) -> pl.DataFrame:
    """Mark the faces of the lists easy, medium and hard; null where a list is not at hand."""
    for level in _LEVELS:
        name = f"wider_{level}_{split}.mat"
        file = find_first_file_or_none(root, build_recursive_patterns(name))
        if file is None:
            faces = faces.with_columns(pl.lit(None, dtype=pl.Boolean).alias(level))
            continue
        level_faces = parse_difficulty_mat(inputs.read(file), str(file)).unique()
        unmatched = level_faces.join(faces, on=["image_id", "face_index"], how="anti")
        if unmatched.height:
            image, face = unmatched.row(0)
            raise JoinError(
                f"the list {level} names {unmatched.height:,} face(s) that the ground truth lacks",
                found=f"face {face} of {image!r}, counted from 0",
                where=str(file),
            )
        flagged = level_faces.with_columns(pl.lit(value=True).alias(level))
        faces = left_join_in_order(faces, flagged, ["image_id", "face_index"])
        faces = faces.with_columns(pl.col(level).fill_null(value=False))
    return faces


def _read_perceived_demographics_or_none(
    faces: pl.DataFrame, root: Path, split: str, inputs: Inputs
) -> pl.DataFrame | None:
    """Read what annotators perceived: ``instance_id`` and a column for each attribute."""
    name = f"demographics_{split}.csv"
    file = find_first_file_or_none(root, build_recursive_patterns(name))
    if file is None:
        return None
    source = str(file)
    table = inputs.read_table(file)
    require_columns(table, ("file", "face", *DEMOGRAPHIC_VALUES), source)
    index = as_text(table["face"]).cast(pl.Int64, strict=False)
    problem = "a face's place is not a whole number ({n} cell(s))"
    refuse_cells(index.is_null(), table["face"], problem, "0, 1, …", source)
    ids = table.select(
        instance_id=pl.format("{}_{}", pl.col("file").str.strip_prefix("images/"), index)
    )["instance_id"]
    is_known_face = ids.is_in(faces["instance_id"].implode()).fill_null(value=False)
    refuse_cells(
        ~is_known_face,
        table["face"],
        "{n} face(s) with demographics are not in the ground truth",
        "images/<event>/<image>.jpg, and a place among its boxes counted from 0",
        source,
        format_found=lambda row: f"face {table['face'][row]} of {table['file'][row]!r}",
    )
    refuse_repeats(ids, "a face is listed twice ({n} cell(s))", "each face once", source, "face")
    texts = [as_text(table[column]) for column in DEMOGRAPHIC_VALUES]
    for text in texts:
        words = DEMOGRAPHIC_VALUES[text.name]
        is_unknown_word = ~text.is_in(words).fill_null(value=True)
        problem = "a word that the dataset does not have ({n} cell(s))"
        refuse_cells(is_unknown_word, text, problem, ", ".join(words), source)
    return pl.DataFrame([ids, *texts])


def _flag_scored_faces(
    faces: pl.DataFrame, demographics: pl.DataFrame | None, judge: str, not_sure: str
) -> tuple[pl.DataFrame, list[str]]:
    """Fill ``judged``, and say how many faces are not."""
    if demographics is None:
        return faces.with_columns(judged=pl.lit(value=True)), []
    notes = []
    annotated = pl.col("instance_id").is_in(demographics["instance_id"].implode())
    is_scored = annotated if judge == "annotated" else pl.lit(value=True)
    if judge == "annotated":
        notes.append(
            f"{demographics.height:,} of {faces.height:,} faces have demographics and are judged;"
            " the others take part in matching."
        )
    if not_sure == "leave out":
        uncertain_faces = demographics.filter(
            pl.any_horizontal(pl.col(n) == NOT_SURE for n in DEMOGRAPHIC_VALUES)
        )
        is_scored = is_scored & ~pl.col("instance_id").is_in(
            uncertain_faces["instance_id"].implode()
        )
        notes.append(
            f"{uncertain_faces.height:,} faces are not judged, as annotators were not sure of"
            " gender, age or skin."
        )
    return faces.with_columns(judged=is_scored), notes


def _build_widerface_attribute_rows(
    faces: pl.DataFrame, demographics: pl.DataFrame | None
) -> pl.DataFrame:
    attribute_tables = [
        build_rows_of_one_attribute(faces["instance_id"], name, faces[name]) for name in LABEL_WORDS
    ]
    if demographics is not None:
        attribute_tables += [
            build_rows_of_one_attribute(demographics["instance_id"], n, demographics[n])
            for n in DEMOGRAPHIC_VALUES
        ]
    for level in _LEVELS:
        ids = faces.filter(pl.col(level))["instance_id"]
        words = pl.Series([level] * len(ids), dtype=pl.String)
        attribute_tables.append(build_rows_of_one_attribute(ids, "difficulty", words))
    return check(pl.concat(attribute_tables), ATTRIBUTES)
