"""BDD100K's categories by today's names: what a file of 2018 or a detector of COCO's calls them."""

from __future__ import annotations

from typing import Literal

import polars as pl

from isolux.vocabulary.errors import SpecError

Categories = Literal["as-named", "bdd100k"]
BDD100K_NAMES = {"bike": "bicycle", "motor": "motorcycle", "person": "pedestrian"}
"""Names of the 2018 release to those of today; BDD100K's loader goes by the same."""


def renamed(labels: pl.Series, categories: Categories) -> pl.Series:
    """Give labels as the file names them, or by BDD100K's names of today.

    Examples
    --------
    >>> renamed(pl.Series(["bike", "car", None]), "bdd100k").to_list()
    ['bicycle', 'car', None]
    """
    if categories not in ("as-named", "bdd100k"):
        raise SpecError(
            "categories cannot be set to that",
            expected="as-named or bdd100k",
            found=repr(categories),
        )
    return labels.replace(BDD100K_NAMES) if categories == "bdd100k" else labels
