"""Distinct photos with their homes and true labels, and which of them are hits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.tasks._ids import refuse_no_match
from isolux.tasks._truth import instances_with_truth

_DUPLICATE_PHOTO, _MISSING_PREDICTION = "the same photo as another row", "no prediction"
_MAX_LISTED = 5
_CAUTION_SHARE = 0.1  # of the photos, with fewer than top_k labels, or none
_MIN_PHOTOS, _MIN_Z = 30, 3.0  # photos for the check, and standard deviations above chance


def read_photos(
    dataset: Dataset, target: str | None, unknown_values: Collection[str], household: str | None
) -> pl.DataFrame:
    """Read the photos with their true labels and households, merging rows of one image."""
    truth = instances_with_truth(dataset, target, {}, unknown_values)
    rows = truth.select("unit_id", "cluster_id", "truth").with_columns(
        image=INSTANCES.conform(dataset.instances)["image_id"],
        household=_read_households(dataset, household),
    )
    # The usual case: one row a photo.
    if not rows["image"].is_duplicated().any():
        return rows.with_columns(photo="unit_id").drop("image")
    of_image = rows.group_by("image").agg(
        # The smallest id represents the photo, whatever the order of rows.
        pl.col("unit_id").min().alias("photo"),
        # Dollar Street lists some photos several times with different labels: any of them is a hit
        # (Goyal et al. 2022, section 3.2).
        pl.col("truth").explode().drop_nulls().unique().sort().alias("every"),
        pl.col("household").drop_nulls().unique().sort().alias("homes"),
    )
    conflicts = of_image.filter(pl.col("homes").list.len() > 1)
    if conflicts.height:
        raise TableError(
            f"{conflicts.height:,} photo(s) are said to be of two homes",
            expected="one home for each image",
            found=f"{conflicts['image'][0]!r} of"
            f" {', '.join(conflicts['homes'][0].to_list()[:_MAX_LISTED])}",
        )
    all_labels = pl.when(pl.col("every").list.len() > 0).then("every")
    return rows.join(of_image, on="image", how="left", maintain_order="left").select(
        "unit_id", "cluster_id", "photo", truth=all_labels, household=pl.col("homes").list.first()
    )


def _read_households(dataset: Dataset, household: str | None) -> pl.Series:
    """Return each row's household: a named attribute, ``household_id``, or the cluster."""
    instances = dataset.instances
    attribute_names = set(dataset.attributes["attribute"].unique())
    if household is None and "household_id" in instances.columns:
        return instances["household_id"].cast(pl.String)
    name = household or ("household" if "household" in attribute_names else None)
    if name is not None:
        dataset.values_of(name)  # refuses an unknown attribute, and lists the others
        household_rows = dataset.instance_attributes().filter(attribute=name).drop_nulls("value")
        first_households = household_rows.unique(
            "unit_id", keep="first", maintain_order=True
        ).select("unit_id", "value")
        ids = instances.select(unit_id=pl.col("instance_id").cast(pl.String))
        return ids.join(first_households, on="unit_id", how="left", maintain_order="left")["value"]
    # The cluster is the home where nothing else is named: photos of a home are not independent.
    clusters = INSTANCES.conform(instances)["cluster_id"]
    if instances.height and clusters.is_null().all():
        raise SpecError(
            "nothing says in whose home a photo was taken",
            expected="--household ATTRIBUTE (household=…), or --cluster COLUMN",
            found="no home and no cluster",
        )
    return clusters


def join_labels(table: pl.DataFrame, photos: pl.DataFrame) -> pl.DataFrame:
    """Join the predicted labels to the photos, under the row that represents each."""
    photo_by_instance = photos.select("photo", instance_id="unit_id")
    label_rows = table.join(photo_by_instance, on="instance_id", how="inner", maintain_order="left")
    refuse_no_match(
        "no prediction is for a photo of the dataset",
        table["instance_id"],
        photos["unit_id"],
        n_matched=label_rows.height,
        expected="ids such as ",
        source=None,
    )
    return label_rows


def score_photos(
    photos: pl.DataFrame, label_rows: pl.DataFrame, models: Sequence[str], top_k: int
) -> pl.DataFrame:
    """Score every photo for every model: 1 if one of the first labels is true of it."""
    distinct_photos = photos.filter(unit_id=pl.col("photo"))
    true_labels = (
        distinct_photos.select("photo", label="truth").explode("label").drop_nulls("label")
    )
    # Goyal et al. (2022, section 3.2) count a hit among the first five labels, by rank.
    first_labels = label_rows.filter(pl.col("rank") <= top_k)
    hit_photos = (
        first_labels.join(true_labels, on=["photo", "label"], how="semi")
        .select("model", "photo")
        .unique()
    )
    predicted_photos = label_rows.select("model", "photo").unique()
    key_columns = ["model", "photo"]
    photo_rows = (
        pl.DataFrame({"model": models}, schema={"model": pl.String})
        .join(photos, how="cross", maintain_order="left_right")
        .join(
            predicted_photos.with_columns(asked=True),
            on=key_columns,
            how="left",
            maintain_order="left",
        )
        .join(
            hit_photos.with_columns(found=True), on=key_columns, how="left", maintain_order="left"
        )
    )
    reason = (
        # A repeated photo is excluded for every model, so it goes before missing predictions.
        pl.when(pl.col("unit_id") != pl.col("photo"))
        .then(pl.lit(_DUPLICATE_PHOTO))
        .when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        # Without a home a photo cannot be averaged within one.
        .when(pl.col("household").is_null())
        .then(pl.lit("no home"))
        .when(pl.col("asked").is_null())
        .then(pl.lit(_MISSING_PREDICTION))
    )
    hit_value = pl.when(reason.is_null()).then(
        pl.col("found").fill_null(value=False).cast(pl.Float64)
    )
    return photo_rows.select(
        "model", "unit_id", "cluster_id", "household", hit=hit_value, reason=reason
    )


def caution_on_invalid_incomes(dataset: Dataset) -> list[Caution]:
    """Caution where homes have an income of 0 or less, which bins treat as the lowest."""
    incomes = dataset.attributes.filter(attribute="income")
    n_invalid = int((incomes["number"] <= 0).sum()) if "number" in incomes.columns else 0
    text = (
        f"{n_invalid:,} photos have an income of 0 or less, which bins take for the lowest: if it"
        " means that none is known, leave them out (--only 'income>0')."
    )
    return [Caution(text)] if n_invalid else []


def caution_on_missing_predictions(outcomes: pl.DataFrame) -> list[Caution]:
    """Caution where many photos have no prediction, if ``scores`` has no rows that say so."""
    notes = []
    for (model,), model_rows in outcomes.sort("model").group_by(["model"], maintain_order=True):
        n_missing = int((model_rows["reason"] == _MISSING_PREDICTION).sum())
        n_scorable = n_missing + model_rows["reason"].null_count()
        text = (
            f"{n_missing:,} of {n_scorable:,} photos have no prediction of {model!r}: every number"
            " is about the others alone. Is the file whole?"
        )
        notes += (
            [Caution(text)]
            if n_scorable >= _MIN_PHOTOS and n_missing >= _CAUTION_SHARE * n_scorable
            else []
        )
    return notes


def build_warnings(
    outcomes: pl.DataFrame, photos: pl.DataFrame, label_rows: pl.DataFrame, top_k: int
) -> list[Caution]:
    """Caution where labels are few, or no better than random ones."""
    notes: list[Caution] = []
    first_labels = label_rows.filter(pl.col("rank") <= top_k).drop_nulls("label")
    for (model,), model_rows in outcomes.sort("model").group_by(["model"], maintain_order=True):
        model_labels = first_labels.filter(model=model)
        scored_photos = model_rows.filter(pl.col("reason").is_null())
        # A model with three labels a photo has fewer chances than one with five.
        n_few = int((model_labels.group_by("photo").len()["len"] < top_k).sum())
        text = (
            f"{n_few:,} of {scored_photos.height:,} photos have fewer than {top_k} labels by"
            f" {model!r}: fewer labels are fewer chances of a hit. Compare with models of as many"
            " alone, or say --top-k."
        )
        notes += [Caution(text)] if n_few >= _CAUTION_SHARE * max(scored_photos.height, 1) else []
        notes += _caution_on_chance_hits(str(model), scored_photos, photos, model_labels)
    return notes


def _caution_on_chance_hits(
    model: str, scored_photos: pl.DataFrame, photos: pl.DataFrame, model_labels: pl.DataFrame
) -> list[Caution]:
    """Compare hits with those expected if labels were assigned to photos at random."""
    if scored_photos.height < _MIN_PHOTOS:
        return []
    # If the model's labels were permuted among photos, the probability of a hit would be at most
    # the summed frequencies of the photo's true labels.
    # A label that a photo has twice can hit only once.
    label_counts = model_labels.unique(["photo", "label"]).group_by("label").agg(n=pl.len())
    true_labels = scored_photos.select("unit_id", "hit").join(photos, on="unit_id").explode("truth")
    hit_probability = (
        true_labels.join(label_counts, left_on="truth", right_on="label", how="left")
        .group_by("unit_id")
        .agg(p=(pl.col("n").fill_null(0).sum() / model_labels["photo"].n_unique()).clip(0.0, 1.0))
    )["p"].to_numpy()
    hits_sd = float(np.sqrt((hit_probability * (1 - hit_probability)).sum()))
    n_hits = float(scored_photos["hit"].sum())
    text = (
        f"The labels of {model!r} are true of {n_hits / scored_photos.height:.0%} of the photos,"
        f" and dealt to photos at random of {hit_probability.mean():.0%}. Are they of these photos?"
    )
    # Without variance every photo hits for certain, or none can; nothing is to be compared.
    is_chance = hits_sd > 0.0 and n_hits - hit_probability.sum() <= _MIN_Z * hits_sd
    return [Caution(text)] if is_chance else []


def note_homes(outcomes: pl.DataFrame) -> list[str]:
    """Note the number of homes and photos, and rows of one photo."""
    notes: list[str] = []
    # Photos and homes are the same for all models.
    first_model_rows = outcomes.filter(model=pl.col("model").first())
    photos_per_home = (
        first_model_rows.filter(pl.col("reason").is_null())
        .group_by("household")
        .agg(n=pl.len())["n"]
    )
    if len(photos_per_home):
        n_single = int((photos_per_home == 1).sum())
        single_phrase = f", {n_single:,} of them by one photo" if n_single else ""
        notes.append(
            f"{int(photos_per_home.sum()):,} photos of {len(photos_per_home):,} homes are"
            f" judged{single_phrase}; each home"
            " counts once in the hit rate of homes, however many photos it has."
        )
    n_duplicates = int((first_model_rows["reason"] == _DUPLICATE_PHOTO).sum())
    if n_duplicates:
        notes.append(
            f"{n_duplicates:,} row(s) are of a photo that another row has too: each photo counts"
            " once, and any of its labels is right."
        )
    return notes
