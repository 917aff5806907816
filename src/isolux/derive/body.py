"""Hair and face as the picture shows them: from part masks or polygons, and from the face's box.

FHIBE's error models use "features derived from pixel-level annotations, such as the number of
visible keypoints or visible head hair, or the absence of it (categorized as the binary attribute
'bald')" (Methods, direct error modelling). Keypoints are in ``occlusion``; this is the rest.
"""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DerivedInfo
from isolux.core.tables import INSTANCES
from isolux.derive._attribute_columns import build_attribute_rows

_FACE_COLUMNS = ("face_box_w", "face_box_h")
_PART_COLUMNS = ("part_masks", "segments")
_HAIR_PATTERN = r"(?i)^(?:\d+\.\s*)?(?:head[ _])?hair$"
"""What datasets call it: FHIBE's ``6. Head hair``, CelebAMask-HQ's and FACET's ``hair``."""
_CLASS_NAME_PATTERN = r"""['"]class_name['"]\s*:\s*['"]([^'"]*)['"]"""

INFO = DerivedInfo(
    title="Hair and face",
    summary="Whether head hair can be seen, and how large the face is in the picture.",
    references=(citations.FHIBE.with_location("Methods: direct error modelling"),),
    assumptions=(
        "A person whose annotated parts include no hair counts as showing none, also under a hat.",
        "FHIBE calls that 'bald'; it is of the picture, and not of the person.",
    ),
    attributes=(
        ("bald", "yes: parts are annotated and no head hair is among them, hidden or absent."),
        ("face_height", "height of the face's box, pixels."),
        ("face_area", "area of the face's box, square pixels."),
        ("face_to_body", "height of the face's box by that of the person's, 0 to 1."),
    ),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Say whether each person's head hair can be seen, and how large their face is.

    Parameters
    ----------
    dataset : Dataset
        Instances with ``part_masks`` or ``segments``, or with ``face_box_w`` and ``face_box_h``;
        what the dataset has is computed.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``bald`` (yes, no), ``face_height``, ``face_area``, and with boxes of
        people ``face_to_body``; null for who has no annotated part, no face or no box.

    Raises
    ------
    SpecError
        The dataset has neither parts nor boxes of faces.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "1"],
    ...         "segments": ["[{'class_name': '6. Head hair'}]", "[{'class_name': '9. Left eye'}]"],
    ...         "face_box_w": [20.0, None], "face_box_h": [30.0, None]}),
    ... )
    >>> derive(two).select("attribute", "value").rows()
    [('bald', 'no'), ('bald', 'yes'), ('face_height', '30'), ('face_height', None),
     ('face_area', '600'), ('face_area', None)]
    """
    people = INSTANCES.conform(dataset.instances)
    available = [
        c
        for c in (*_PART_COLUMNS, *_FACE_COLUMNS)
        if c in people.columns and people[c].is_not_null().any()
    ]
    tables = []
    if set(_PART_COLUMNS) & set(available):
        part_names = pl.coalesce(
            *(
                _select_body_part_names(people, column)
                for column in _PART_COLUMNS
                if column in available
            )
        )
        people = people.with_columns(_parts=part_names)
        has_hair = pl.col("_parts").list.eval(pl.element().str.contains(_HAIR_PATTERN)).list.any()
        bald_text = pl.when(has_hair).then(pl.lit("no")).when(has_hair.not_()).then(pl.lit("yes"))
        tables.append(build_attribute_rows(people, "bald", text=bald_text, number=None))
    if set(_FACE_COLUMNS) <= set(available):
        face_width, face_height = (pl.col(c).cast(pl.Float64) for c in _FACE_COLUMNS)
        has_face = (face_width > 0) & (face_height > 0)
        tables.append(
            build_attribute_rows(people, "face_height", number=pl.when(has_face).then(face_height))
        )
        tables.append(
            build_attribute_rows(
                people, "face_area", number=pl.when(has_face).then(face_width * face_height)
            )
        )
        if "box_h" in people.columns:
            has_face_and_box = has_face & (pl.col("box_h") > 0)
            share = pl.when(has_face_and_box).then((face_height / pl.col("box_h")).clip(0.0, 1.0))
            tables.append(build_attribute_rows(people, "face_to_body", number=share))
    if not tables and people.height:
        raise SpecError(
            "hair and face cannot be looked at",
            expected="instances with part_masks or segments, or with face_box_w and face_box_h",
            found="none of them",
            where=dataset.name,
        )
    return pl.concat(tables) if tables else build_attribute_rows(people, "face_height", number=None)


def _select_body_part_names(people: pl.DataFrame, column: str) -> pl.Expr:
    """List the names of each one's parts; null where none is annotated."""
    if people.schema[column] == pl.String:
        names = pl.col(column).str.extract_all(_CLASS_NAME_PATTERN)
        names = names.list.eval(pl.element().str.extract(_CLASS_NAME_PATTERN, 1))
    else:
        names = pl.col(column).list.eval(pl.element().struct.field("part"))
    return pl.when(names.list.len() > 0).then(names)
