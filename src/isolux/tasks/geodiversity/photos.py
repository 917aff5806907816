"""Photos, each once and with its home, and which of them are hits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from isolux.tasks._ids import refuse_no_match
from isolux.tasks._truth import instances_with_truth
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES

_SAME, _MISSING = "the same photo as another row", "no prediction"
_SHOWN = 5
_FEW = 0.1  # of the photos, with fewer labels than are looked at, or none
_LEAST, _CHANCE = 30, 3.0  # photos, and standard deviations above chance


def photos_at_home(
    dataset: Dataset, target: str | None, unknown_values: Collection[str], household: str | None
) -> pl.DataFrame:
    """List the photos with what is true of them and whose they are."""
    truth = instances_with_truth(dataset, target, {}, unknown_values)
    rows = truth.select("unit_id", "cluster_id", "truth").with_columns(
        image=INSTANCES.conform(dataset.instances)["image_id"],
        household=_homes(dataset, household),
    )
    if not rows["image"].is_duplicated().any():
        return rows.with_columns(photo="unit_id").drop("image")
    of_image = rows.group_by("image").agg(
        pl.col("unit_id").min().alias("photo"),
        pl.col("truth").explode().drop_nulls().unique().sort().alias("every"),
        pl.col("household").drop_nulls().unique().sort().alias("homes"),
    )
    torn = of_image.filter(pl.col("homes").list.len() > 1)
    if torn.height:
        raise TableError(
            f"{torn.height:,} photo(s) are said to be of two homes",
            expected="one home for each image",
            found=f"{torn['image'][0]!r} of {', '.join(torn['homes'][0].to_list()[:_SHOWN])}",
        )
    whole = pl.when(pl.col("every").list.len() > 0).then("every")
    return rows.join(of_image, on="image", how="left", maintain_order="left").select(
        "unit_id", "cluster_id", "photo", truth=whole, household=pl.col("homes").list.first()
    )


def _homes(dataset: Dataset, household: str | None) -> pl.Series:
    instances = dataset.instances
    known = set(dataset.attributes["attribute"].unique())
    if household is None and "household_id" in instances.columns:
        return instances["household_id"].cast(pl.String)
    name = household or ("household" if "household" in known else None)
    if name is not None:
        dataset.values_of(name)  # which names those there are
        of = dataset.instance_attributes().filter(attribute=name).drop_nulls("value")
        one = of.unique("unit_id", keep="first", maintain_order=True).select("unit_id", "value")
        ids = instances.select(unit_id=pl.col("instance_id").cast(pl.String))
        return ids.join(one, on="unit_id", how="left", maintain_order="left")["value"]
    clusters = INSTANCES.conform(instances)["cluster_id"]
    if instances.height and clusters.is_null().all():
        raise SpecError(
            "nothing says in whose home a photo was taken",
            expected="--household ATTRIBUTE (household=…), or --cluster COLUMN",
            found="no home and no cluster",
        )
    return clusters


def labels_of(table: pl.DataFrame, photos: pl.DataFrame) -> pl.DataFrame:
    """Keep the labels of these photos, under the row that stands for each."""
    whose = photos.select("photo", instance_id="unit_id")
    known = table.join(whose, on="instance_id", how="inner", maintain_order="left")
    refuse_no_match(
        "no prediction is for a photo of the dataset",
        table["instance_id"],
        photos["unit_id"],
        n_matched=known.height,
        expected="ids such as ",
        where=None,
    )
    return known


def hits(
    photos: pl.DataFrame, known: pl.DataFrame, models: Sequence[str], top_k: int
) -> pl.DataFrame:
    """Judge every photo under every model."""
    own = photos.filter(pl.col("unit_id") == pl.col("photo"))
    true = own.select("photo", label="truth").explode("label").drop_nulls("label")
    first = known.filter(pl.col("rank") <= top_k)
    hit = first.join(true, on=["photo", "label"], how="semi").select("model", "photo").unique()
    asked = known.select("model", "photo").unique()
    on = ["model", "photo"]
    every = (
        pl.DataFrame({"model": models}, schema={"model": pl.String})
        .join(photos, how="cross", maintain_order="left_right")
        .join(asked.with_columns(asked=True), on=on, how="left", maintain_order="left")
        .join(hit.with_columns(found=True), on=on, how="left", maintain_order="left")
    )
    reason = (
        pl.when(pl.col("unit_id") != pl.col("photo"))
        .then(pl.lit(_SAME))
        .when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        .when(pl.col("household").is_null())
        .then(pl.lit("no home"))
        .when(pl.col("asked").is_null())
        .then(pl.lit(_MISSING))
    )
    value = pl.when(reason.is_null()).then(pl.col("found").fill_null(value=False).cast(pl.Float64))
    return every.select("model", "unit_id", "cluster_id", "household", hit=value, reason=reason)


def odd_incomes(dataset: Dataset) -> list[Caution]:
    """Caution where homes have an income of 0 or less: bins take them for the poorest."""
    incomes = dataset.attributes.filter(pl.col("attribute") == "income")
    odd = int((incomes["number"] <= 0).sum()) if "number" in incomes.columns else 0
    text = (
        f"{odd:,} photos have an income of 0 or less, which bins take for the lowest: if it means"
        " that none is known, leave them out (--only 'income>0')."
    )
    return [Caution(text)] if odd else []


def missing_told(judged: pl.DataFrame) -> list[Caution]:
    """Caution where many photos have no prediction; of rows in ``scores`` every task says it."""
    notes = []
    for (model,), own in judged.sort("model").group_by(["model"], maintain_order=True):
        missing = int((own["reason"] == _MISSING).sum())
        asked = missing + own["reason"].null_count()
        text = (
            f"{missing:,} of {asked:,} photos have no prediction of {model!r}: every number is"
            " about the others alone. Is the file whole?"
        )
        notes += [Caution(text)] if asked >= _LEAST and missing >= _FEW * asked else []
    return notes


def doubts(
    judged: pl.DataFrame, photos: pl.DataFrame, known: pl.DataFrame, top_k: int
) -> list[Caution]:
    """Caution where labels may be too few, of other photos, or in other words."""
    notes: list[Caution] = []
    first = known.filter(pl.col("rank") <= top_k).drop_nulls("label")
    for (model,), own in judged.sort("model").group_by(["model"], maintain_order=True):
        told = first.filter(pl.col("model") == model)
        scored = own.filter(pl.col("reason").is_null())
        few = int((told.group_by("photo").len()["len"] < top_k).sum())
        text = (
            f"{few:,} of {scored.height:,} photos have fewer than {top_k} labels by {model!r}:"
            " fewer labels are fewer chances of a hit. Compare with models of as many alone, or"
            " say --top-k."
        )
        notes += [Caution(text)] if few >= _FEW * max(scored.height, 1) else []
        notes += _by_chance(str(model), scored, photos, told)
    return notes


def _by_chance(
    model: str, scored: pl.DataFrame, photos: pl.DataFrame, told: pl.DataFrame
) -> list[Caution]:
    """Hold the hits against those of labels that were dealt to the photos at random."""
    if scored.height < _LEAST:
        return []
    shares = told.unique(["photo", "label"]).group_by("label").agg(n=pl.len())
    true = scored.select("unit_id", "hit").join(photos, on="unit_id").explode("truth")
    chance = (
        true.join(shares, left_on="truth", right_on="label", how="left")
        .group_by("unit_id")
        .agg((pl.col("n").fill_null(0).sum() / told["photo"].n_unique()).clip(0.0, 1.0).alias("p"))
    )["p"].to_numpy()
    spread = float(np.sqrt((chance * (1 - chance)).sum()))
    found = float(scored["hit"].sum())
    text = (
        f"The labels of {model!r} are true of {found / scored.height:.0%} of the photos, and dealt"
        f" to photos at random of {chance.mean():.0%}. Are they of these photos?"
    )
    is_chance = spread > 0.0 and found - chance.sum() <= _CHANCE * spread
    return [Caution(text)] if is_chance else []


def homes_told(judged: pl.DataFrame) -> list[str]:
    """Say how many homes there are and what they rest on."""
    notes: list[str] = []
    first = judged.filter(pl.col("model") == pl.col("model").first())
    sizes = first.filter(pl.col("reason").is_null()).group_by("household").agg(n=pl.len())["n"]
    if len(sizes):
        alone = int((sizes == 1).sum())
        of_one = f", {alone:,} of them by one photo" if alone else ""
        notes.append(
            f"{int(sizes.sum()):,} photos of {len(sizes):,} homes are judged{of_one}; each home"
            " counts once in the hit rate of homes, however many photos it has."
        )
    again = int((first["reason"] == _SAME).sum())
    if again:
        notes.append(
            f"{again:,} row(s) are of a photo that another row has too: each photo counts once,"
            " and any of its labels is right."
        )
    return notes
