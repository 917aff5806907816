"""Ids without a partner, and ids that two rows share: rows that a join would lose or double.

A person whose image is not listed, an attribute of an unknown person, an image twice: each changes
counts without a word, in the group that it happens to fall in.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._problems import concatenate_problems, make_person_problems, make_problems
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES

INFO = CheckInfo(
    title="Ids and their partners",
    summary="Ids that occur twice, people without an image, attributes of unknown people.",
    references=(
        Reference(
            "codd-1970",
            "Codd, E. F. (1970). A relational model of data for large shared data banks."
            " Communications of the ACM 13(6), 377-387.",
            "1.3: primary and foreign keys",
            "https://doi.org/10.1145/362384.362685",
        ),
    ),
    assumptions=("Where a dataset lists no images, no image can be missing.",),
    needs="tables",
)

_ID_COLUMNS = {
    "instance": "instance_id",
    "image": "image_id",
    "subject": "subject_id",
    "household": "household_id",
}


def check(dataset: Dataset) -> pl.DataFrame:
    """List ids that occur twice or lack a partner.

    Parameters
    ----------
    dataset : Dataset

    Returns
    -------
    polars.DataFrame
        Table ``problems``, all of them errors.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "2"]}),
    ...     images=pl.DataFrame({"image_id": ["1"]}),
    ... )
    >>> check(two).select("problem", "unit_id", "found").rows()
    [('its image is not listed', 'b', "'2'")]
    """
    people, images = INSTANCES.conform(dataset.instances), IMAGES.conform(dataset.images)
    attributes = ATTRIBUTES.conform(dataset.attributes)
    problems = [
        _find_repeated_ids(people, "instance", "instance_id"),
        _find_repeated_ids(images, "image", "image_id"),
    ]
    if images.height:
        without_image = people.filter(~pl.col("image_id").is_in(images["image_id"].implode()))
        id_text = pl.format("'{}'", pl.col("image_id").fill_null("null"))
        expected = "an image_id of the table images"
        problems.append(
            make_person_problems(
                "ids", without_image, "its image is not listed", "error", expected, id_text
            )
        )
    for owner_type, column in _ID_COLUMNS.items():
        attribute_ids = (
            attributes.filter(unit_kind=owner_type).select("unit_id").unique(maintain_order=True)
        )
        if column not in people.columns or attribute_ids.is_empty():
            continue
        existing_ids = people[column].cast(pl.String)
        if owner_type == "image":
            existing_ids = existing_ids.append(images["image_id"])
        ids = existing_ids.drop_nulls().unique().implode()
        unmatched = attribute_ids.filter(~pl.col("unit_id").is_in(ids))
        problems.append(
            make_problems(
                "ids",
                unmatched,
                f"an attribute is of no {owner_type}",
                severity="error",
                unit_kind=owner_type,
                unit_id="unit_id",
                expected=f"the id of a known {owner_type}",
            )
        )
    return concatenate_problems(*problems)


def _find_repeated_ids(table: pl.DataFrame, unit_type: str, column: str) -> pl.DataFrame:
    counts = table.group_by(column, maintain_order=True).len().filter(pl.col("len") > 1)
    return make_problems(
        "ids",
        counts.drop_nulls(),
        "an id occurs several times",
        severity="error",
        unit_kind=unit_type,
        unit_id=column,
        expected="every id once",
        found=pl.format("{} rows", "len"),
    )
