"""Units of a project that can be reviewed, with their facts: subjects, photos, people, answers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.curation.annotation import read_answers
from isolux.curation.annotation.stages import STAGES
from isolux.curation.project import Project, read_images, read_instances, read_subjects
from isolux.vocabulary.errors import UnknownNameError

__all__ = ["KINDS", "facts_of_units", "units_of"]

KINDS = ("subject", "image", "instance", *STAGES)
_PLACES = ("x", "y", "w", "h", "origin", "file", "sha256", "width", "height")


def units_of(project: Project, kind: str) -> pl.DataFrame:
    """List the units of a kind that stand."""
    if kind not in KINDS:
        raise UnknownNameError("kind of unit", kind, KINDS)
    if kind == "image":
        found = read_images(project).select("image_id", unit_id="image_id")
    elif kind in ("subject", "instance"):
        people = read_instances(project)
        image = pl.lit(None, dtype=pl.String) if kind == "subject" else pl.col("image_id")
        found = people.select(unit_id=f"{kind}_id", image_id=image)
    else:
        stands = {"image": read_images(project)["image_id"],
                  "instance": read_instances(project)["instance_id"]}  # fmt: skip
        said = read_answers(project, kind).select("image_id", unit_id="instance_id")
        still = stands[STAGES[kind].unit_kind]
        found = said.filter(pl.col("unit_id").is_in(still.implode()))
    return (
        found.drop_nulls("unit_id").unique("unit_id").select("unit_id", "image_id").sort("unit_id")
    )


def facts_of_units(project: Project, by: Sequence[str]) -> pl.DataFrame:
    """Give facts of subjects, photos and people by the ids of people, photos and subjects alike."""
    people = read_instances(project, everything=True)
    for other, key in ((read_subjects(project), "subject_id"),
                       (read_images(project, everything=True), "image_id")):  # fmt: skip
        new = [c for c in other.columns if c not in people.columns or c == key]
        people = people.join(other.select(new), on=key, how="left", maintain_order="left")
    for name in by:
        if name not in people.columns or name in _PLACES:
            known = [c for c in people.columns if c not in _PLACES]
            raise UnknownNameError("fact", name, known, where="the project")
    named = {name: pl.col(name).cast(pl.String) for name in by}
    held = people.select(
        "instance_id", "image_id", "subject_id", **{f"_{n}": e for n, e in named.items()}
    )
    parts = [
        held.drop_nulls(key)
        .group_by(unit_id=pl.col(key), maintain_order=True)
        .agg(
            pl.col("subject_id").drop_nulls().first().alias("_subject"),
            *(_one_of(f"_{name}").alias(name) for name in by),
        )
        for key in ("instance_id", "image_id", "subject_id")
    ]
    found = pl.concat(parts).unique("unit_id", keep="first", maintain_order=True)
    return found.rename({"_subject": "subject_id"}).select("unit_id", "subject_id", *by)


def _one_of(name: str) -> pl.Expr:
    said = pl.col(name).drop_nulls()
    return pl.when(said.n_unique() == 1).then(said.first())
