"""People who are in several splits: what was learned from them is then "recognised" in the test.

A split by photo puts one person's photos on both sides. Scores of those people say how well they
are remembered, and if one group has more photos a person than another the groups differ by that.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._problems import make_problems, read_splits
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference
from isolux.core.tables import INSTANCES

INFO = CheckInfo(
    title="One person, one split",
    summary="Subjects whose photos are in more than one split.",
    references=(
        Reference(
            "kapoor-leakage",
            "Kapoor, S. and Narayanan, A. (2023). Leakage and the reproducibility crisis in"
            " machine-learning-based science. Patterns 4(9), 100804.",
            "L1.4 and L3: duplicates, and no clean separation of training and test",
            "https://doi.org/10.1016/j.patter.2023.100804",
        ),
    ),
    assumptions=("A split is an attribute or a column of that name; subjects have ids.",),
    needs="tables",
)


def check(dataset: Dataset, *, attribute: str = "split") -> pl.DataFrame:
    """List subjects whose people have several values of the split.

    Parameters
    ----------
    dataset : Dataset
        With ``subject_id``; nothing is found where there is none, or no split.
    attribute : str
        The attribute, or the column of instances, that names the split.

    Returns
    -------
    polars.DataFrame
        Table ``problems``, all of them errors.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two photos",
    ...     info=DatasetInfo(title="Two photos", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "2"],
    ...                             "subject_id": ["s", "s"], "split": ["train", "test"]}),
    ... )
    >>> check(two).select("unit_id", "found").rows()
    [('s', 'test, train')]
    """
    people = INSTANCES.conform(dataset.instances)
    owners = people.select("instance_id", "subject_id").drop_nulls()
    splits = read_splits(dataset, attribute)
    in_several_splits = (
        owners.join(splits.drop_nulls(), on="instance_id")
        .group_by("subject_id", maintain_order=True)
        .agg(pl.col("part").unique().sort())
        .filter(pl.col("part").list.len() > 1)
    )
    return make_problems(
        "splits",
        in_several_splits,
        "a person is in several splits",
        severity="error",
        unit_kind="subject",
        unit_id="subject_id",
        expected="one split for all photos",
        found=pl.col("part").list.join(", "),
        hint="split by subject, not by photo",
    )
