"""A synthetic world as FHIBE's own release: whole photos and aligned faces, a table of each.

``data/processed/fhibe_downsampled/fhibe_downsampled.csv`` (77 columns, a row for each person in
each photo), ``data/processed/fhibe_face_crop_align/fhibe_face_crop_align.csv`` (75 columns, a row
for each face that is seen), ``data/raw/fhibe_downsampled/<subject>/<photo>/`` with the photo, its
JSON and its faces. Ids are UUIDs made from the world's names. FHIBE's people speak for themselves:
only the apparent colour of the skin is what annotators saw. Xiang et al. (2025).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from isolux_worlds.layouts._files import (
    PaintedPicture,
    build_deterministic_uuid,
    write_bytes_below,
    write_images_and_add_visible_people,
)
from isolux_worlds.layouts._layout import Ids, LayoutWriter, Way
from isolux_worlds.layouts.fhibe.faces import (
    SIDE_PX,
    Face,
    format_keypoint_cells,
    format_segment_cells,
    write_aligned_face_or_none,
)
from isolux_worlds.layouts.fhibe.self_reports import NAMES, build_fhibe_answers
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = [
    "BODY",
    "FACE",
    "LAYOUT",
    "add_annotator_columns",
    "format_cells_as_python",
    "ids",
    "write",
]

_QA = "_QAannotator_id"
_QUESTIONS = (
    "apparent_skin_color",
    "hairstyle",
    "apparent_hair_type",
    "apparent_hair_color",
    "facial_hairstyle",
    "apparent_facial_haircolor",
    "apparent_left_eye_color",
    "apparent_right_eye_color",
    "facial_marks",
    "action_body_pose",
    "action_subject_object_interaction",
    "action_subject_subject_interaction",
)
_SHARED = (
    "image_id",
    "filepath",
    "json_path",
    "subject_id",
    "is_primary",
    "image_height",
    "image_width",
    "aperture_value",
    "camera" + _QA,
    "camera_distance",
    "camera_position",
    "focal_length",
    "iso_speed_ratings",
    "lighting",
    "lighting" + _QA,
    "location_country",
    "location_region",
    "manufacturer",
    "model",
    "scene",
    "shutter_speed_value",
    "user_date_captured",
    "user_hour_captured",
    "user_hour_captured" + _QA,
    "weather",
    "weather" + _QA,
    "consent",
    "subject_position",
    "age",
    "nationality",
    "ancestry",
    "pronoun",
    "natural_skin_color",
    "apparent_skin_color",
    "hairstyle",
    "natural_hair_type",
    "apparent_hair_type",
    "natural_hair_color",
    "apparent_hair_color",
    "facial_hairstyle",
    "natural_facial_haircolor",
    "apparent_facial_haircolor",
    "natural_left_eye_color",
    "apparent_left_eye_color",
    "natural_right_eye_color",
    "apparent_right_eye_color",
    "facial_marks",
    "action_body_pose",
    "action_subject_object_interaction",
    "action_subject_subject_interaction",
    *(name + _QA for name in _QUESTIONS),
    "keypoints",
    "keypoints_annotator_id",
    "keypoints" + _QA,
    "segments",
    "segments_annotator_id",
    "segments" + _QA,
    "head_pose",
    "head_pose_annotator_id",
    "head_pose" + _QA,
    "other_face",
    "camera_position" + _QA,
)
FACE = (*_SHARED, "CelebA", "multiple_subjects")
"""The 75 columns of the aligned faces."""
BODY = (*_SHARED, "person_bbox", "face_bbox", "face_bbox_annotator_id", "face_bbox" + _QA)
"""The 77 columns of the whole photos."""


def add_annotator_columns(rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """Add the columns that name annotators."""
    of_answer, of_check = (
        build_deterministic_uuid("annotator"),
        build_deterministic_uuid("quality annotator"),
    )
    annotator_columns = {
        name: pl.lit(f"['{of_check}']" if name.endswith(_QA) else of_answer)
        for name in columns
        if name.endswith("annotator_id")
    }
    return rows.with_columns(**annotator_columns)


def format_cells_as_python(rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """Write every cell as Python prints it, in the order of ``columns``."""
    written = []
    for name in columns:
        dtype = rows.schema[name]
        cell = pl.col(name)
        if isinstance(dtype, pl.List):
            cell = pl.concat_str(pl.lit("['"), cell.list.join("', '"), pl.lit("']"))
        elif dtype == pl.Boolean:
            cell = pl.when(cell).then(pl.lit("True")).otherwise(pl.lit("False"))
        written.append(cell.alias(name))
    return rows.select(written)


_RAW = "data/raw/fhibe_downsampled"
_PROCESSED = "data/processed"
_LITERAL = ("keypoints", "segments", "person_bbox", "face_bbox", "other_face")
_OF_IMAGES = (
    "image_height",
    "image_width",
    "aperture_value",
    "camera_distance",
    "camera_position",
    "focal_length",
    "iso_speed_ratings",
    "lighting",
    "location_country",
    "location_region",
    "manufacturer",
    "model",
    "scene",
    "shutter_speed_value",
    "user_date_captured",
    "user_hour_captured",
    "weather",
)


def ids(world: PhotoWorld) -> Ids:
    """Name photos by a UUID, people by those of the photo and of the subject."""
    image_names = _build_fhibe_ids(world)
    images = image_names.unique("image_id", maintain_order=True)
    return Ids(
        images.select("image_id", native="photo", number=pl.int_range(1, pl.len() + 1)),
        image_names.select("person_id", native="person", native_image="photo"),
    )


def write(
    world: PhotoWorld, root: Path, pictures: Iterator[PaintedPicture] | None = None
) -> PhotoWorld:
    """Write the world as FHIBE; see ``facet.write``. Without pictures there are no faces."""
    image_names = _build_fhibe_ids(world)
    folders = dict(image_names.select("image_id", "folder").iter_rows())
    path = pl.format("{}/main_{}.png", "folder", "photo")
    paths = dict(image_names.select("image_id", path).iter_rows())
    names = dict(image_names.select("person_id", "person").iter_rows())
    faces: list[Face] = []

    def write_faces(picture: PaintedPicture) -> None:
        folder = folders[picture.image_id]
        for k, person in enumerate(picture.people.iter_rows(named=True), start=1):
            if face := write_aligned_face_or_none(
                picture, k, person, folder, names[person["person_id"]], root
            ):
                faces.append(face)

    world = write_images_and_add_visible_people(world, root, pictures, paths, write_faces)
    rows = _build_fhibe_rows(world, image_names)
    _write_fhibe_csv(rows, BODY, "fhibe_downsampled", root)
    _write_fhibe_json_files(rows, root)
    if pictures is not None:
        of_faces = _build_aligned_face_rows(rows, faces)
        _write_fhibe_csv(of_faces, FACE, "fhibe_face_crop_align", root)
        _write_fhibe_json_files(of_faces.drop("person_bbox", "face_bbox"), root)
    return world


def _build_fhibe_ids(world: PhotoWorld) -> pl.DataFrame:
    """Give every person their photo's, subject's and own id, and the photo's folder."""
    people = world.people.select("person_id", "image_id", "subject_id", "layer")
    for column, new in (("image_id", "photo"), ("subject_id", "subject")):
        uuids = {
            name: build_deterministic_uuid(world.seed, column, name)
            for name in people[column].unique()
        }
        name = pl.col(column).replace_strict(uuids, default=None, return_dtype=pl.String)
        people = people.with_columns(name.alias(new))
    primary = pl.col("person_id").sort_by("layer", descending=True).first().over("image_id")
    of_primary = pl.col("subject").sort_by("layer", descending=True).first().over("image_id")
    return people.with_columns(
        is_primary=pl.col("person_id") == primary,
        folder=pl.format("{}/{}/{}", pl.lit(_RAW), of_primary, "photo"),
        person=pl.format("{}_{}", "photo", "subject"),
    )


def _build_fhibe_rows(world: PhotoWorld, image_names: pl.DataFrame) -> pl.DataFrame:
    """Make a row for each person in each photo, lists as lists, joints and parts as text."""
    sized = world.sized_people()
    names = image_names.select(
        image_id="photo",
        filepath=pl.format("{}/main_{}.png", "folder", "photo"),
        json_path=pl.format("{}/main_annos_{}.json", "folder", "photo"),
        subject_id="subject",
        **{name: name for name in ("is_primary", "person_id", "folder", "person")},
    )
    boxes = {
        "person_bbox": _build_box_expression("box"),
        "face_bbox": _build_box_expression("face"),
    }
    size_columns = sized.select(image_width="width", image_height="height", **boxes)
    facts = pl.concat([names, size_columns, build_fhibe_answers(world)], how="horizontal")
    return facts.with_columns(
        format_keypoint_cells(sized), format_segment_cells(sized), other_face=pl.lit("[]")
    )


def _build_box_expression(prefix: str) -> pl.Expr:
    corners = [pl.col(f"{prefix}_{axis}").round(2) for axis in "xywh"]
    return pl.format("[{}, {}, {}, {}]", *corners)


def _build_aligned_face_rows(rows: pl.DataFrame, faces: list[Face]) -> pl.DataFrame:
    """Give each aligned face its row: its person's answers, its own joints and parts."""
    cells = dict.fromkeys(("keypoints", "segments", "CelebA"), pl.String())
    face_cells = pl.DataFrame(faces, schema={"person_id": pl.Int64, **cells}, orient="row")
    other_columns = rows.drop("keypoints", "segments")
    face_rows = other_columns.join(face_cells, on="person_id", how="inner", maintain_order="left")
    stem = "{}/faces_crop_and_align_"
    return face_rows.with_columns(
        image_id="person",
        filepath=pl.format(stem + "{}.png", "folder", "person"),
        json_path=pl.format(stem + "annos_{}.json", "folder", "person"),
        image_width=pl.lit(SIDE_PX),
        image_height=pl.lit(SIDE_PX),
    )


def _write_fhibe_csv(rows: pl.DataFrame, columns: tuple[str, ...], name: str, root: Path) -> None:
    cells = format_cells_as_python(add_annotator_columns(rows, columns), columns)
    write_bytes_below(root, f"{_PROCESSED}/{name}/{name}.csv", cells.write_csv().encode())


def _write_fhibe_json_files(rows: pl.DataFrame, root: Path) -> None:
    """Write the JSON of each photo, or of each face: what the table says, in JSON's own types."""
    drop = ("folder", "person", "filepath", "person_id", "CelebA", "multiple_subjects")
    facts = rows.drop(*drop, strict=False)
    for people in facts.partition_by("json_path", maintain_order=True):
        subjects = [_convert_row_to_fhibe_json(row) for row in people.iter_rows(named=True)]
        image_annotation = {
            "image_id": people["image_id"][0],
            **{name: subjects[0][name] for name in _OF_IMAGES},
            "humans_per_image": people.height,
        }
        image_columns = (*_OF_IMAGES, "image_id", "json_path")
        of_people = [
            {k: v for k, v in subject.items() if k not in image_columns} for subject in subjects
        ]
        content = msgspec.json.encode(
            {"image_annotation": image_annotation, "subject_annotation": of_people}
        )
        write_bytes_below(root, people["json_path"][0], content)


def _convert_row_to_fhibe_json(row: dict[str, Any]) -> dict[str, Any]:
    """Take joints, polygons and boxes over as the JSON that they are, but for the quotes."""
    literal = {
        name: msgspec.Raw(str(row[name]).replace("'", '"').encode())
        for name in _LITERAL
        if name in row
    }
    return {**row, **literal}


_FACES = ("--data-option", "release=face")
_PSNR = ("--metric", "psnr")  # LPIPS and identity need networks that are not here


def _build_face_way(task: str, protocol: str, *options: str, predictor: str = "") -> Way:
    name = f"fhibe:{protocol}"
    return Way(task, protocol=name, options=(*_FACES, *options), pictures=True, predictor=predictor)


_PROTOCOLS = (
    Way("detection", protocol="fhibe:detection"),
    Way(
        "segmentation",
        protocol="fhibe:segmentation",
        options=("--data-option", "segments=true"),
        pictures=True,
    ),
    Way("keypoints", protocol="fhibe:keypoints", options=("--data-option", "keypoint_set=coco")),
    Way("face_detection", protocol="fhibe:face_detection", options=("--data-option", "box=face")),
    _build_face_way("face_parsing", "face_parsing", "--format", "part_masks"),
    _build_face_way("face_verification", "face_verification"),
    _build_face_way("face_verification", "face_verification_hard"),
    _build_face_way("reconstruction", "reconstruction", *_PSNR),
    _build_face_way("super_resolution", "super_resolution", *_PSNR, predictor="reconstruction"),
    Way("answers", protocol="fhibe:zero_shot", predictor="zero_shot"),
    Way("answers", protocol="fhibe:question_answering", predictor="question_answering"),
)
LAYOUT = LayoutWriter(
    "photos and aligned faces; what people say of themselves; joints and parts",
    write,
    ids,
    ways=(
        Way("detection"),
        Way("face_detection", options=("--data-option", "box=face")),
        Way("keypoints", options=("--data-option", "keypoint_set=coco")),
        Way("face_verification", options=("--data-option", "release=face"), pictures=True),
        Way(
            "face_parsing",
            options=("--format", "part_masks", "--data-option", "release=face"),
            pictures=True,
        ),
    ),
    names=NAMES,
    protocols=_PROTOCOLS,
)
