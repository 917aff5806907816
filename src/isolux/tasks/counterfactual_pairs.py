"""Counterfactual pairs: how a model's number for a scene changes with one attribute of the person.

As in SocialCounterfactuals (Howard et al. 2024): images of one scene that differ only in a
perceived attribute, and a number of each from a model (its similarity to "a doctor", a likeability,
whether the answer was correct). Each image's number is centred on its scene's mean, so that effects
of scenes cancel; differences between groups are then paired, by occupation if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Direction, Metric, Reference, TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import to_polars
from isolux.tasks._numbers.numeric_predictions import (
    read_metric_name,
    read_unit_numbers,
)
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._truth import instances_with_truth

HOWARD = Reference(
    "social-counterfactuals",
    "Howard, P., Madasu, A., Le, T., Lujan Moreno, G., Bhiwandiwalla, A., & Lal, V. (2024). "
    "SocialCounterfactuals: Probing and mitigating intersectional social biases in vision-language "
    "models with counterfactual examples. In Proceedings of CVPR 2024.",
    "section 3: sets of pictures that differ in social attributes alone",
    "https://arxiv.org/abs/2312.00825",
)
# Reasons of images that cannot be compared within their scene.
_NO_PAIR = "no other value in its scene"
_MISSING_VALUE = "its scene lacks a value"
_SELECTION_ADVICE = (
    'compare two values in all scenes that have both: --only "ATTRIBUTE=VALUE,VALUE"'
)


_number_metric = partial(
    Metric,
    direction="none",
    low=None,
    high=None,
    unit="own unit",  # of each run: what --unit says, or none
    reference=HOWARD,
)
INFO = TaskInfo(
    title="Counterfactual pairs",
    summary=(
        "How a model's answer about a scene changes if only one attribute of the person is changed."
    ),
    references=(HOWARD,),
    assumptions=(
        "Pictures of a scene differ in that attribute alone; whatever else changed counts too.",
        "Scenes are independent of one another; the pictures of one are not.",
        "Which way is better is what --better says; without it, neither is.",
    ),
    metrics=(
        _number_metric(
            name="within_scene",
            title="Number within its scene",
            definition="A picture's number minus the mean over the values in its scene, for scenes "
            "with every value; groups differ by the paired difference.",
        ),
        _number_metric(
            name="within_scene_by_occupation",
            title="Number within its scene",
            definition="The same, of scenes of one occupation.",
        ),
        _number_metric(
            name="spread_in_scene",
            title="Spread within scenes",
            definition="Largest less smallest mean of a value within the picture's scene. Above 0 "
            "for any model whose numbers vary.",
            low=0.0,
        ),
    ),
    defaults=("within_scene",),
    predictions="numbers",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    changed: str | None = None,
    scene: str | None = None,
    occupation: str | None = None,
    better: Direction = "none",
    unit: str = "",
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Hold each picture's number against those of its scene with another value of the attribute.

    Parameters
    ----------
    dataset : Dataset
        Units are its pictures. Clusters must be scenes, or hold whole ones (``--cluster scene``):
        without, pairs would count as unrelated pictures.
    predictions : frame
        ``model, instance_id, value`` (or ``score``): a number a picture.
    changed : str, optional
        The attribute that differs within a scene; default: ``classes``.
    scene : str, optional
        The attribute that names the scene; default: the clusters.
    occupation : str, optional
        The attribute that names the occupation: each gets its own row (column ``label``).
    better : {"higher", "lower", "none"}
        Which way is better.
    unit : str
        What the number is measured in, for sentences.
    unknown_values : sequence of str
        Values that mean "not known", compared without case.
    metrics : sequence of str
        Default: ``within_scene``, and with an occupation ``within_scene_by_occupation``; also
        ``spread_in_scene``.
    model : str, optional
        What to call the model if there is no number to say so.

    Returns
    -------
    Scores
        ``units``: a row for each model, metric (and label) and picture, in the number's unit; null
        with the reason "no prediction", "unknown value", "unknown scene", "no other value in its
        scene" or "its scene lacks a value": where scenes differ in the values that they have, so
        do their means, and groups would differ by which scenes they are in.

    Raises
    ------
    SpecError
        No scenes; clusters that are not scenes; not one scene with two values, or with all.
    TableError, UnknownNameError, JoinError
        Numbers that cannot be read, or of other pictures; no such attribute.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> pictures = Dataset(
    ...     name="one scene",
    ...     info=DatasetInfo(title="One scene", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"],
    ...         "cluster_id": ["s", "s"], "classes": [["woman"], ["man"]]}),
    ... )
    >>> fit = pl.DataFrame({"model": "m", "instance_id": ["a", "b"], "value": [0.25, 0.75]})
    >>> score(pictures, fit, metrics=["within_scene"]).units.select("unit_id", "value").rows()
    [('a', -0.25), ('b', 0.25)]
    """
    frame = to_polars(predictions)
    read_metric_name(frame)
    names = _select_metrics(metrics, occupation)
    numbers, notes = read_unit_numbers(dataset, frame, model)
    images = _read_images(dataset, changed, scene, occupation, unknown_values)
    rows = numbers.join(images, on="unit_id", how="left", maintain_order="left")
    # Before any value is computed: intervals of unpaired differences are far too wide here, and
    # look like an absence of effects.
    _check_clusters(rows)
    centred = _add_scene_means(rows)
    _check_pairs(centred)
    reported_metrics = tuple(
        # A spread is not better high or low: it measures how much the attribute matters.
        replace(m, direction=better if m.name != "spread_in_scene" else "none", unit=unit)
        for m in INFO.metrics
        if m.name in names
    )
    return Scores(
        units=stack_scores([_build_scores(centred, name) for name in names]),
        info=replace(INFO, metrics=reported_metrics),
        notes=(*_describe_pairs(centred), *notes),
    )


def _select_metrics(metrics: Sequence[str], occupation: str | None) -> tuple[str, ...]:
    """Select the metrics; those by occupation need that attribute."""
    occupation_metrics = () if occupation is None else ("within_scene_by_occupation",)
    names = read_metrics(INFO, metrics) or (*INFO.defaults, *occupation_metrics)
    if "within_scene_by_occupation" in names and occupation is None:
        raise SpecError(
            "nothing says which occupation each scene is of",
            expected="occupation, the attribute that names it",
            found="none",
        )
    return names


def _read_images(
    dataset: Dataset,
    changed: str | None,
    scene: str | None,
    occupation: str | None,
    unknown_values: Sequence[str],
) -> pl.DataFrame:
    """List the images with value, scene and occupation, null where unknown."""
    first_value = pl.col("truth").list.first()
    images = instances_with_truth(dataset, changed, {}, unknown_values)
    images = images.select("unit_id", "cluster_id", changed=first_value)
    for name, attribute in (("scene", scene), ("occupation", occupation)):
        if attribute is None or not dataset.instances.height:
            default_column = (
                # Without a named scene the clusters are the scenes, as in a file with one cluster
                # per scene.
                pl.col("cluster_id") if name == "scene" else pl.lit(None, dtype=pl.String)
            )
            images = images.with_columns(default_column.alias(name))
            continue
        truth = instances_with_truth(dataset, attribute, {}, unknown_values)
        named_values = truth.select("unit_id", first_value.alias(name))
        images = images.join(named_values, on="unit_id", how="left", maintain_order="left")
    if images.height and images["scene"].is_null().all():
        raise SpecError(
            "nothing says which pictures are of one scene",
            expected="scene, the attribute that names it, and --cluster of the same name",
            found="none",
        )
    return images.drop("cluster_id")


def _check_clusters(rows: pl.DataFrame) -> None:
    """Refuse a scene whose images are in several clusters: differences would not be paired."""
    scene_rows = rows.drop_nulls("scene")
    split_scenes = scene_rows.group_by("scene", maintain_order=True).agg(
        n=pl.len(),
        alone=pl.col("cluster_id").is_null().any(),
        clusters=pl.col("cluster_id").n_unique(),
    )
    split_scenes = split_scenes.filter(
        # An image without a cluster is resampled alone; that is right only for a scene of one
        # image.
        (pl.col("clusters") > 1) | (pl.col("alone") & (pl.col("n") > 1))
    )
    if split_scenes.height:
        raise SpecError(
            "pictures of one scene count as unrelated",
            expected="clusters that hold whole scenes: --cluster with the scene's attribute",
            found=f"the scene {split_scenes['scene'][0]!r} in several clusters, or in none",
            where="cluster",
        )


def _add_scene_means(rows: pl.DataFrame) -> pl.DataFrame:
    """Add each scene's mean, over values with equal weight, and reasons of unscored images."""
    is_usable = pl.all_horizontal(pl.col("value", "changed", "scene").is_not_null())
    keys = ["model", "scene"]
    # Values get equal weight in a scene's mean, however many images each has.
    means = (
        rows.filter(is_usable)
        .group_by([*keys, "changed"])
        .agg(pl.col("value").mean())
        .group_by(keys)
        .agg(
            values=pl.len(),
            # Sorted before averaging, so that the last digit does not depend on the order of rows.
            middle=pl.col("value").sort().mean(),
            spread=pl.col("value").max() - pl.col("value").min(),
        )
    )
    scene_rows = rows.join(means, on=keys, how="left", maintain_order="left")
    # Values that occur in any scene with a pair; complete scenes have all of them.
    paired_values = pl.col("changed").filter(is_usable & (pl.col("values") > 1))
    return scene_rows.with_columns(
        reason=pl.when(pl.col("value").is_null())
        .then(pl.lit("no prediction"))
        .when(pl.col("changed").is_null())
        .then(pl.lit("unknown value"))
        .when(pl.col("scene").is_null())
        .then(pl.lit("unknown scene"))
        .when(pl.col("values") < 2)
        .then(pl.lit(_NO_PAIR))
        # An incomplete scene would compare its values with a mean over fewer values than elsewhere.
        .when(pl.col("values") < paired_values.n_unique().over("model"))
        .then(pl.lit(_MISSING_VALUE))
    )


def _check_pairs(centred: pl.DataFrame) -> None:
    """Refuse data without any scene that has the values to compare."""
    scored = centred.drop_nulls("value")
    if not scored.height or not centred["reason"].is_not_null().all():
        return
    incomplete_rows = centred.filter(reason=_MISSING_VALUE)
    if incomplete_rows.height:
        scenes = incomplete_rows.group_by("changed").agg(n=pl.col("scene").n_unique())
        scene_counts = scenes.sort("n", "changed", descending=[True, False]).rows()
        raise SpecError(
            "not one scene has pictures of every value",
            expected="scenes with a picture of each value, so that differences are paired",
            found="scenes with " + ", ".join(f"{value!r}: {n:,}" for value, n in scene_counts),
            where="scene",
            hint=_SELECTION_ADVICE,
        )
    raise SpecError(
        "not one scene has pictures of two values",
        expected="scenes whose pictures differ in the attribute changed",
        found=str(centred["reason"].drop_nulls()[0]),
        where="scene",
    )


def _build_scores(centred: pl.DataFrame, name: str) -> pl.DataFrame:
    """Build the rows of one metric."""
    by_occupation = name == "within_scene_by_occupation"
    score_expr = (
        # Centring removes the scene's own level: the difference of two values is then paired.
        pl.col("spread") if name == "spread_in_scene" else pl.col("value") - pl.col("middle")
    )
    rows = centred.drop_nulls("occupation") if by_occupation else centred
    label = pl.col("occupation") if by_occupation else None
    return score_rows(rows, "counterfactual_pairs", name, score_expr, label=label)


def _describe_pairs(centred: pl.DataFrame) -> list[str]:
    """Count scenes with and without pairs; a caution where most have none or a value is missing."""
    notes: list[str] = []
    valid_rows = centred.filter(pl.col("scene").is_not_null(), pl.col("value").is_not_null())
    for (model,), model_rows in valid_rows.group_by("model", maintain_order=True):
        scene_flags = model_rows.group_by("scene").agg(
            alone=~pl.col("reason").fill_null(_MISSING_VALUE).eq(_MISSING_VALUE).any(),
            lacks=(pl.col("reason") == _MISSING_VALUE).any(),
        )
        n, (n_unpaired, n_incomplete) = (
            scene_flags.height,
            scene_flags.select("alone", "lacks").sum().row(0),
        )
        text = f"{n - n_unpaired:,} of {n:,} scenes have pictures of two values or more ({model})."
        if n_incomplete:
            text += (
                f" {n_incomplete:,} of them lack a value that others have, and are left out:"
                f" {_SELECTION_ADVICE}."
            )
        notes.append(Caution(text) if n_unpaired > n / 2 or n_incomplete else text)
    return notes
