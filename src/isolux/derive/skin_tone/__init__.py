"""Skin tone from pixels: the individual typology angle (ITA) of a face's skin, and its six classes.

ITA = arctan((L* − 50) / b*) · 180 / π, of CIELAB under D65: 90 is white, −90 black, and skin lies
along the way between (Chardon et al. 1991). FairFace (section 3, Figures 5 and 6) uses it as
Diversity in Faces does: pixels of skin, the angle of each, and the peak of their histogram in each
region of the face, averaged (``ita_peak``). ``ita`` is the median of all of them, which needs no
bins, moves less in small faces and is not thrown from one half of a face to the other by a shadow.

It measures light that reached a camera, not skin. In half the light the same skin is up to a class
or two darker, and warm light draws every skin towards 0, as b* grows; FairFace says so ("skin color
is heavily affected by illumination and light conditions") and annotates race instead. Read it
next to ``luminance`` and never as what a person is. ``docs/methods/pixels.md`` shows how far it
moves.

The formula's arctan jumps from −90 to 90 where b* passes 0: a dark skin in bluish light would be
called very light. Here the angle goes on past 90; where the median does, there is no value.

References
----------
.. [1] Chardon, A., Cretois, I., & Hourseau, C. (1991). Skin colour typology and suntanning
   pathways. International Journal of Cosmetic Science 13(4), 191–208.
.. [2] Merler, M., Ratha, N., Feris, R. S., & Smith, J. R. (2019). Diversity in Faces.
   arXiv:1901.10436.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError
from isolux.core.info import DerivedInfo, Reference
from isolux.core.tables import INSTANCES
from isolux.derive._attribute_columns import (
    BOX,
    build_attribute_rows_of_columns,
    read_person_boxes_xyxy,
)
from isolux.derive._colour import linear_rgb_to_lab
from isolux.derive._image_reader import OTHER_SIZE, ImageWithPeople, measure_people_in_images
from isolux.derive.skin_tone.pixels import (
    FACE_IN_PICTURE,
    SkinPixels,
    extract_cheek_and_chin_skin,
    extract_unclipped_skin_in_mask,
)
from isolux.geometry.masks import masks_from_counts
from isolux.io.images import read_image
from isolux.io.paths import resolve_inside

FloatArray = npt.NDArray[np.float64]

ITA_CLASSES = (
    (55.0, "very light"),
    (41.0, "light"),
    (28.0, "intermediate"),
    (10.0, "tan"),
    (-30.0, "brown"),
)
"""Degrees above which ITA has each class; at or below the last it is dark."""

_MIN_PIXELS, _MIN_SHARE = 20, 0.2  # fewer, and a median is that of noise or of hair
_BIN_DEGREES, _WINDOW_BINS = 1.0, 5  # degrees; bins that are averaged before the peak is looked for
_BLUISH_LIGHT = "bluish light: b* is not above 0"
_TOO_LITTLE_SKIN = "too little skin where the face should be"

_FAIRFACE = citations.FAIRFACE.with_location("section 2: skin color or race?; Figures 5 and 6")

INFO = DerivedInfo(
    title="Skin tone (ITA)",
    summary="The individual typology angle of a face's skin as the picture shows it.",
    references=(
        Reference(
            "chardon-1991",
            "Chardon, A., Cretois, I., & Hourseau, C. (1991). Skin colour typology and suntanning "
            "pathways. International Journal of Cosmetic Science, 13(4), 191–208.",
            "the angle and its classes",
            "https://doi.org/10.1111/j.1467-2494.1991.tb00561.x",
        ),
        Reference(
            "diversity-in-faces",
            "Merler, M., Ratha, N., Feris, R. S., & Smith, J. R. (2019). Diversity in Faces. "
            "arXiv:1901.10436.",
            "skin color",
            "https://arxiv.org/abs/1901.10436",
        ),
        _FAIRFACE,
    ),
    assumptions=(
        (
            "The light decides as much as the skin: dim or warm light makes every skin darker by "
            "this angle, exposure moves it, and a gap along it may be one of light."
        ),
        "Pictures are sRGB, white-balanced for daylight (D65); make-up counts as skin.",
        "Where no mask of skin is at hand, cheeks and chin are fixed parts of the face's box.",
        "Where a dataset has no boxes, each picture is taken for one face in the middle of it.",
        "It is of the photo, and not what people say of themselves or what annotators perceive.",
    ),
    attributes=(
        (
            "ita",
            (
                "individual typology angle, degrees, higher is lighter: median of skin's pixels, "
                "which show the light as much as the skin."
            ),
        ),
        (
            "ita_class",
            (
                "very light (ITA above 55), light (41), intermediate (28), tan (10), brown (−30) "
                "or dark; of the photo's light as much as of the skin."
            ),
        ),
        (
            "ita_peak",
            (
                "the angle as Diversity in Faces takes it: peak of the histogram in each region, "
                "averaged; degrees."
            ),
        ),
        ("skin_share", "share of the pixels looked at that were taken for skin, 0 to 1."),
    ),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Measure the individual typology angle of each face.

    Parameters
    ----------
    dataset : Dataset
        Its images have paths below ``root``; instances have masks of the part ``skin``, boxes of
        faces, or a picture each that is a face (``regions``).

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``ita`` and ``ita_peak`` (degrees, −90 to 90, higher is lighter),
        ``ita_class`` (six words), ``skin_share`` (0 to 1), and the column ``reason``: why there is
        no value (no picture, too little skin, bluish light, …).

    Raises
    ------
    SpecError
        No picture at all, or nothing that says where faces are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from isolux.core.info import DatasetInfo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (60, 60), (160, 126, 86)).save(Path(folder) / "face.png")
    ...     one = Dataset(
    ...         name="one face",
    ...         info=DatasetInfo(title="One face", summary="An example.", references=()),
    ...         instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["face.png"]}),
    ...         root=folder,
    ...     )
    ...     derive(one).select("attribute", "value").head(2).rows()
    [('ita', '10.88'), ('ita_class', 'tan')]
    """
    people = INSTANCES.conform(dataset.instances)
    faces = locate_face_skin(dataset)
    face_reason = np.full(people.height, None, dtype=object)

    def measure(image: ImageWithPeople) -> FloatArray:
        values = np.full((len(image.rows), 3), np.nan)
        for k, row in enumerate(image.rows.tolist()):
            skin = faces.extract_skin_or_reason(image, row)
            if isinstance(skin, str):
                face_reason[row] = skin
            else:
                values[k], face_reason[row] = _summarise_skin_ita(skin)
        return values

    measurements = measure_people_in_images(dataset, people, measure, 3, "skin tone")
    reason = np.where(measurements.reason == None, face_reason, measurements.reason)  # noqa: E711
    columns = [
        ("ita", 0, None, reason),
        ("ita_class", 0, _classify_ita_expression(pl.col("_number")), reason),
        ("ita_peak", 1, None, reason),
        ("skin_share", 2, None, reason),
    ]
    return build_attribute_rows_of_columns(people, measurements.values, columns)


def compute_ita_degrees(linear_rgb: FloatArray) -> FloatArray:
    """Give the individual typology angle of each colour, degrees.

    Shapes: ``linear_rgb`` [..., 3]; returns [...].
    """
    lab = linear_rgb_to_lab(linear_rgb)
    return np.degrees(np.arctan2(lab[..., 0] - 50.0, lab[..., 2]))


def _summarise_skin_ita(skin: SkinPixels) -> tuple[FloatArray, str | None]:
    """Give median, averaged peak and share of one face's skin; NaN with a reason."""
    if skin.n < _MIN_PIXELS or skin.share < _MIN_SHARE:
        return np.array([np.nan, np.nan, skin.share]), _TOO_LITTLE_SKIN
    angles = [compute_ita_degrees(region) for region in skin.regions]
    median_angle = float(np.median(np.concatenate(angles)))
    peak = float(np.mean([_find_histogram_peak_angle(region_angles) for region_angles in angles]))
    angle_pair = [np.nan if abs(angle) >= 90.0 else angle for angle in (median_angle, peak)]
    return np.array([*angle_pair, skin.share]), _BLUISH_LIGHT if np.isnan(
        angle_pair
    ).any() else None


def _find_histogram_peak_angle(angles: FloatArray) -> float:
    """Find the peak of a region's histogram: the mean of the angles in its highest five bins."""
    bins = (
        np.floor(angles / _BIN_DEGREES).astype(np.int64) + 180
    )  # angles lie from −180 to 180 degrees
    counts = np.convolve(np.bincount(bins, minlength=361), np.ones(_WINDOW_BINS), "same")
    peak_centre = (np.argmax(counts) - 180 + 0.5) * _BIN_DEGREES
    angles_near_peak = angles[np.abs(angles - peak_centre) <= _WINDOW_BINS * _BIN_DEGREES / 2]
    return float(angles_near_peak.mean())


def _classify_ita_expression(number: pl.Expr) -> pl.Expr:
    word: pl.Expr = pl.when(number.is_not_null()).then(pl.lit("dark"))
    for min_angle, name in reversed(ITA_CLASSES):
        word = pl.when(number > min_angle).then(pl.lit(name)).otherwise(word)
    return word


# Where a dataset says that the skin of faces is: masks, boxes, or the whole picture.

_FACE_BOX = ("face_box_x", "face_box_y", "face_box_w", "face_box_h")
_SKIN_PATTERN = re.compile(r"(?i)(?:\d+\.\s*)?(?:face[ _])?skin")
_NO_FACE = "no face's box and no mask of skin"


@dataclass(frozen=True, slots=True)
class FaceRegions:
    """Where each one's skin is looked for.

    Parameters
    ----------
    boxes : [n, 4] float
        Left, upper, right, lower, annotated pixels; NaN: none.
    fills_image : [n] bool
        The picture is the face.
    skin_runs : list of dict or None, files : list of str or None
        A mask of the skin as run lengths, or its picture below ``root``; None where there is
        neither.
    root : Path or None
    """

    boxes: npt.NDArray[np.float64]
    fills_image: npt.NDArray[np.bool_]
    skin_runs: list[dict[str, Any] | None]
    skin_files: list[str | None]
    root: Path | None

    def extract_skin_or_reason(self, image: ImageWithPeople, row: int) -> SkinPixels | str:
        """Take the skin of one person from their picture, or say why there is none."""
        mask = self._read_skin_mask(row)
        if mask is not None:
            return extract_unclipped_skin_in_mask(image.pixels, mask)
        if self.fills_image[row]:
            height, width = image.pixels.shape[:2]
            left, upper, right, lower = FACE_IN_PICTURE
            box = (left * width, upper * height, right * width, lower * height)
            return extract_cheek_and_chin_skin(image.pixels, box)
        if np.isnan(self.boxes[row]).any():
            return _NO_FACE
        if not image.has_annotated_size:
            return OTHER_SIZE
        return extract_cheek_and_chin_skin(image.pixels, self.boxes[row] * image.scale)

    def _read_skin_mask(self, row: int) -> npt.NDArray[np.bool_] | None:
        skin_runs, file = self.skin_runs[row], self.skin_files[row]
        if skin_runs is not None:
            shape = np.array([skin_runs["height"]]), np.array([skin_runs["width"]])
            masks = masks_from_counts([skin_runs["counts"]], *shape)
            flat_mask = np.zeros(int(shape[0][0] * shape[1][0]), dtype=np.bool_)
            for first, end in masks.edges.reshape(-1, 2):
                flat_mask[first:end] = True
            return flat_mask.reshape(int(shape[1][0]), int(shape[0][0])).T
        if file is not None and self.root is not None:
            return np.asarray(read_image(resolve_inside(self.root, file)).max(axis=2) > 0)
        return None


def locate_face_skin(dataset: Dataset) -> FaceRegions:
    """Find where the skin of each one's face is."""
    people = INSTANCES.conform(dataset.instances)
    boxes = _read_face_boxes_xyxy(people)
    runs, files = _select_skin_mask_runs(people), _list_skin_mask_files(people)
    root = None if dataset.root is None else Path(dataset.root)
    if root is not None:
        files = [file if file is None or _is_file_inside(root, file) else None for file in files]
    has_mask = np.array([r is not None or f is not None for r, f in zip(runs, files, strict=True)])
    has_regions = bool(has_mask.any() or not np.isnan(boxes).all())
    fills_image = not has_regions and _is_image_of_one_face(people)
    if people.height and not has_regions and not fills_image:
        raise SpecError(
            "skin tone cannot be computed: nothing says where the faces are",
            expected="boxes of faces, masks of their skin, or pictures of one face each",
            found="none of these",
            where=dataset.name,
        )
    return FaceRegions(boxes, np.full(people.height, fills_image), runs, files, root)


def _read_face_boxes_xyxy(people: pl.DataFrame) -> npt.NDArray[np.float64]:
    """Take the face's own box; the box of an instance whose class is face in its place."""
    face_boxes = read_person_boxes_xyxy(people, _FACE_BOX)
    is_face = people["classes"].list.contains("face").fill_null(value=False).to_numpy()
    lacks_face_box = np.isnan(face_boxes).any(axis=1) & is_face
    face_boxes[lacks_face_box] = read_person_boxes_xyxy(people, BOX)[lacks_face_box]
    return face_boxes


def _is_image_of_one_face(people: pl.DataFrame) -> bool:
    """Tell whether pictures are faces: no boxes, one person a picture, no class but ``face``."""
    has_boxes = not np.isnan(read_person_boxes_xyxy(people, BOX)).all()
    has_other_class = people["classes"].drop_nulls().list.contains("face").not_().any()
    return not has_boxes and not has_other_class and not people["image_id"].is_duplicated().any()


def _select_skin_mask_runs(people: pl.DataFrame) -> list[dict[str, Any] | None]:
    if "part_masks" not in people.columns:
        return [None] * people.height
    return [
        next(
            (
                mask_part
                for mask_part in parts_of_person or ()
                if _SKIN_PATTERN.fullmatch(str(mask_part["part"]))
            ),
            None,
        )
        for parts_of_person in people["part_masks"].to_list()
    ]


def _list_skin_mask_files(people: pl.DataFrame) -> list[str | None]:
    """Name the picture of the part ``skin``; FHIBE's lies next to the one that holds all parts."""
    files: list[str | None] = [None] * people.height
    if "part_mask_uri" in people.columns:
        uris = people["part_mask_uri"].to_list()
        files = [
            None if uri is None else str(PurePosixPath(uri).with_name("skin.png")) for uri in uris
        ]
    if "part_mask_files" in people.columns:
        for row, parts_of_person in enumerate(people["part_mask_files"].to_list()):
            skin_uris = (
                mask_part["uri"]
                for mask_part in parts_of_person or ()
                if _SKIN_PATTERN.fullmatch(str(mask_part["part"]))
            )
            files[row] = next(skin_uris, files[row])
    return files


def _is_file_inside(root: Path, file: str) -> bool:
    try:
        return resolve_inside(root, file).is_file()
    except FileError:
        return False
