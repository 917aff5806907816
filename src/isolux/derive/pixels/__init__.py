"""Light, contrast and sharpness: of the picture, and of each person in it.

ICON² (section 4) asks whether a gap between groups is one of how they were photographed. Where a
dataset has pictures, this measures them: the light that reached the camera, how much it differs
across the picture and how sharp its edges are; the same on the person (inside their mask, else
their box), in what is around them, and the step between the two. Definitions, units and doubts are
in ``docs/methods/pixels.md``.

The light that comes from a person is the light that falls on them times what skin, hair and clothes
send back. A darker person in the same light has a lower ``person_luminance``; controlling for it
takes away a part of what is asked about. ``surroundings_luminance`` is of the same light and not
of the person.

References
----------
.. [1] Peli, E. (1990). Contrast in complex images. Journal of the Optical Society of America A
   7(10), 2032–2040.
.. [2] Pertuz, S., Puig, D., & Garcia, M. A. (2013). Analysis of focus measure operators for
   shape-from-focus. Pattern Recognition 46(5), 1415–1432.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import TableError
from isolux.core.info import DerivedInfo, Reference
from isolux.core.tables import INSTANCES
from isolux.derive._attribute_columns import build_attribute_rows_of_columns, read_person_boxes_xyxy
from isolux.derive._colour import LINEAR_LIGHT, TO_XYZ, luminance_to_lightness
from isolux.derive._image_reader import (
    OTHER_SIZE,
    ImageMeasurements,
    ImageWithPeople,
    measure_people_in_images,
)
from isolux.geometry.masks import Masks, masks_from_coco, masks_from_counts

FloatArray = npt.NDArray[np.float64]
Map = npt.NDArray[np.float32]

MAX_LUMINANCE = {"dark": 0.18 / 8, "dim": 0.18 / 2}
"""Upper ends of luminance: three stops and one stop below middle grey (.18); above: bright."""

INFO = DerivedInfo(
    title="Light, contrast and sharpness",
    summary="How light, how rich in contrast and how sharp a picture is, and each person in it.",
    references=(
        Reference(
            "iec-srgb",
            "IEC 61966-2-1:1999. Multimedia systems and equipment: colour measurement and "
            "management. Default RGB colour space sRGB.",
            "luminance of stored values",
        ),
        Reference(
            "peli-1990",
            "Peli, E. (1990). Contrast in complex images. Journal of the Optical Society of "
            "America A, 7(10), 2032–2040.",
            "root mean square contrast",
            "https://doi.org/10.1364/JOSAA.7.002032",
        ),
        Reference(
            "pertuz-2013",
            "Pertuz, S., Puig, D., & Garcia, M. A. (2013). Analysis of focus measure operators "
            "for shape-from-focus. Pattern Recognition, 46(5), 1415–1432.",
            "variance of the Laplacian",
            "https://doi.org/10.1016/j.patcog.2012.11.011",
        ),
    ),
    assumptions=(
        "Pictures are sRGB; a camera's exposure and a photo editor stand between light and pixels.",
        (
            "A person's luminance is of their skin, hair and clothes too, and not of the light "
            "alone: controlling a gap between skin tones for it takes away a part of the gap."
        ),
        "Sharpness also rises with noise, with texture and where a picture was enlarged less.",
        "Pictures of 3,200 pixels or more on the longer side are made smaller first.",
    ),
    attributes=(
        ("luminance", "mean luminance of the picture, 0 (black) to 1 (white)."),
        ("light", "dark (below .0225 of luminance), dim (below .09) or bright: the picture."),
        ("contrast", "standard deviation of the picture's lightness L*, 0 to 50."),
        ("sharpness", "standard deviation of the Laplacian of the picture's lightness L*."),
        ("person_luminance", "mean luminance inside the person's mask, else box, 0 to 1."),
        ("person_light", "dark, dim or bright (as light): inside the person's mask, else box."),
        ("person_sharpness", "sharpness inside the person's mask, else box."),
        ("surroundings_luminance", "mean luminance around the box, half its sides wide, 0 to 1."),
        (
            "contrast_to_surroundings",
            "lightness L* of the person minus that around them; below 0: darker, as when backlit.",
        ),
    ),
)

(
    _LUMINANCE,
    _CONTRAST,
    _SHARPNESS,
    _PERSON_LUMINANCE,
    _PERSON_LIGHTNESS,
    _PERSON_SHARPNESS,
    _SURROUNDINGS,
    _CONTRAST_TO_SURROUNDINGS,
    _HAS_ANNOTATED_SIZE,
) = range(9)
_NO_BOX = "no box"
_OUTSIDE_IMAGE = "no pixel of the picture inside the box"
_NO_SURROUNDINGS = "no pixel of the picture around the box"
_TOO_SMALL = "picture of fewer than 3 pixels a side"


def derive(dataset: Dataset) -> pl.DataFrame:
    """Measure light, contrast and sharpness of each person's picture, and of the person.

    Parameters
    ----------
    dataset : Dataset
        Its images have paths below ``root``. Persons are measured in ``mask_counts`` or
        ``mask_polygons`` where they have one, else in their box; without either only the picture
        is.

    Returns
    -------
    polars.DataFrame
        Table ``attributes`` (see ``INFO.attributes`` for units), and the column ``reason``: why
        there is no value (no such picture, damaged, no box, …).

    Raises
    ------
    SpecError
        No picture at all: no paths, no folder, or nothing there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from isolux.core.info import DatasetInfo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 6), (118, 118, 118)).save(Path(folder) / "grey.png")
    ...     one = Dataset(
    ...         name="one person",
    ...         info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...         instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["grey.png"]}),
    ...         root=folder,
    ...     )
    ...     derive(one).select("attribute", "value").head(3).rows()
    [('luminance', '0.1812'), ('light', 'bright'), ('contrast', '0')]
    """
    people = INSTANCES.conform(dataset.instances)
    boxes, masks = read_person_boxes_xyxy(people), find_mask_columns(people)

    def measure(image: ImageWithPeople) -> FloatArray:
        return _measure_light_of_image(image, boxes, masks)

    measurements = measure_people_in_images(dataset, people, measure, 9, "light and sharpness")
    person_reason = _build_missing_reasons(measurements, boxes, masks)
    light = _classify_luminance(pl.col("_number"))
    columns = [
        ("luminance", _LUMINANCE, None, measurements.reason),
        ("light", _LUMINANCE, light, measurements.reason),
        ("contrast", _CONTRAST, None, measurements.reason),
        ("sharpness", _SHARPNESS, None, _fill_missing_reasons(measurements.reason, _TOO_SMALL)),
        (
            "person_luminance",
            _PERSON_LUMINANCE,
            None,
            _fill_missing_reasons(person_reason, _OUTSIDE_IMAGE),
        ),
        (
            "person_light",
            _PERSON_LUMINANCE,
            light,
            _fill_missing_reasons(person_reason, _OUTSIDE_IMAGE),
        ),
        (
            "person_sharpness",
            _PERSON_SHARPNESS,
            None,
            _fill_missing_reasons(person_reason, _OUTSIDE_IMAGE),
        ),
        (
            "surroundings_luminance",
            _SURROUNDINGS,
            None,
            _fill_missing_reasons(person_reason, _NO_SURROUNDINGS),
        ),
        (
            "contrast_to_surroundings",
            _CONTRAST_TO_SURROUNDINGS,
            None,
            _fill_missing_reasons(person_reason, _NO_SURROUNDINGS),
        ),
    ]
    return build_attribute_rows_of_columns(people, measurements.values, columns)


def _measure_light_of_image(
    image: ImageWithPeople, boxes: FloatArray, masks: PersonMasks
) -> FloatArray:
    """Measure one picture and its people: ``[n, 9]``."""
    from isolux.derive.pixels.light_kernels import (
        compute_luminance_and_lightness,
        measure_image_light,
        measure_people_light,
    )

    values = np.full((len(image.rows), 9), np.nan)
    luminance, lightness = compute_luminance_and_lightness(image.pixels, *_build_luminance_tables())
    values[:, :3] = measure_image_light(luminance, lightness)
    values[:, _HAS_ANNOTATED_SIZE] = float(image.has_annotated_size)
    if image.has_annotated_size:
        factor = round(1 / image.scale)
        size = image.pixels.shape[0] * factor, image.pixels.shape[1] * factor
        runs = masks.read_mask_runs_of_size(image.rows, size)
        people_values = measure_people_light(
            luminance,
            lightness,
            boxes[image.rows] * image.scale,
            runs.edges,
            runs.starts,
            runs.height,
            factor,
        )
        values[:, _PERSON_LUMINANCE : _PERSON_LUMINANCE + 4] = people_values[:, :4]
        values[:, _CONTRAST_TO_SURROUNDINGS] = people_values[:, 1] - people_values[:, 4]
    return values


@cache
def _build_luminance_tables() -> tuple[Map, Map]:
    """Light of each stored value by channel, and L* of 4,097 luminances, the last twice."""
    linear = LINEAR_LIGHT[None, :] * TO_XYZ[1][:, None]
    # 4,096 steps are finer than the 256 stored values; the last twice, to read between two.
    steps = np.append(np.linspace(0.0, 1.0, 4097), 1.0)
    return linear.astype(np.float32), luminance_to_lightness(steps).astype(np.float32)


def _classify_luminance(number: pl.Expr) -> pl.Expr:
    return (
        pl.when(number < MAX_LUMINANCE["dark"])
        .then(pl.lit("dark"))
        .when(number < MAX_LUMINANCE["dim"])
        .then(pl.lit("dim"))
        .when(number.is_not_null())
        .then(pl.lit("bright"))
    )


def _build_missing_reasons(
    measurements: ImageMeasurements, boxes: FloatArray, masks: PersonMasks
) -> npt.NDArray[np.object_]:
    """Say why nothing was measured of a person whose picture is there, if that is the reason."""
    reason = measurements.reason.copy()
    has_reason = reason != None  # noqa: E711  (element by element)
    reason[~has_reason & np.isnan(boxes).any(axis=1) & ~masks.has] = _NO_BOX
    reason[~has_reason & (measurements.values[:, _HAS_ANNOTATED_SIZE] == 0.0)] = OTHER_SIZE
    return reason


def _fill_missing_reasons(
    reason: npt.NDArray[np.object_], default_reason: str
) -> npt.NDArray[np.object_]:
    return np.where(reason == None, default_reason, reason)  # noqa: E711


# Masks of people as runs, read picture by picture: run lengths first, then polygons.


@dataclass(frozen=True, slots=True)
class MaskRuns:
    """Runs of foreground of some people (``geometry.masks.Masks``); who has none has no run."""

    edges: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    height: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PersonMasks:
    """The columns that hold masks, and who has one: ``[n]``."""

    counts: pl.DataFrame | None
    polygons: pl.Series | None
    has: npt.NDArray[np.bool_]

    def read_mask_runs_of_size(
        self, rows: npt.NDArray[np.int64], size: tuple[int, int]
    ) -> MaskRuns:
        """Read the masks of a picture's people; one of another size than the picture is left out.

        ``size`` is the picture's (height, width) to within what halving rounded.
        """
        edges = [np.empty(0, np.int32)]
        counts, height = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows), np.int64)
        for k, row in enumerate(rows.tolist()):
            if not self.has[row]:
                continue
            mask_runs = self._read_mask_of_size(row, size)
            if mask_runs is not None:
                edges.append(mask_runs[0])
                counts[k + 1], height[k] = len(mask_runs[0]), mask_runs[1]
        return MaskRuns(np.concatenate(edges), np.cumsum(counts), height)

    def _read_mask_of_size(
        self, row: int, size: tuple[int, int]
    ) -> tuple[npt.NDArray[np.int32], int] | None:
        if self.counts is not None and self.counts["mask_counts"][row] is not None:
            text, height, width = self.counts.row(row)
            if (
                height is None
                or width is None
                or not (0 <= size[0] - height < 8 and 0 <= size[1] - width < 8)
            ):
                return None
            masks = masks_from_counts([text], np.array([height]), np.array([width]))
        elif self.polygons is not None:
            masks = _rasterise_polygons_json(self.polygons[row], size)
        else:
            return None
        return masks.edges, int(masks.height[0])


def find_mask_columns(people: pl.DataFrame) -> PersonMasks:
    """Find the columns of masks; read nothing yet."""
    names = ("mask_counts", "mask_height", "mask_width")
    counts = people.select(names) if set(names) <= set(people.columns) else None
    polygons = people["mask_polygons"] if "mask_polygons" in people.columns else None
    has = np.zeros(people.height, dtype=np.bool_)
    if counts is not None:
        has |= counts["mask_counts"].is_not_null().to_numpy()
    if polygons is not None:
        has |= polygons.is_not_null().to_numpy()
    return PersonMasks(counts, polygons, has)


def _rasterise_polygons_json(polygons_json: str, image_size_hw: tuple[int, int]) -> Masks:
    try:
        return masks_from_coco(
            [json.loads(polygons_json)], np.array([image_size_hw[0]]), np.array([image_size_hw[1]])
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TableError(
            "a person's mask is not a list of polygons", found=repr(polygons_json[:80])
        ) from error
