"""Counterfactual pairs: what a model says of one scene when only an attribute is changed.

As in SocialCounterfactuals (Howard et al. 2024): pictures of one scene that differ in a perceived
attribute alone, and a number that a model gives each (its fit to "a doctor", a likeability, whether
it was answered right). Each picture's number is held against its own scene's, so what scenes have
in common cancels; differences between groups are then paired, by occupation if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from isolux.tasks._numbers.reading import (
    codes_of_models,
    measured_name,
    numbers_of_units,
)
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._truth import instances_with_truth
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.info import Direction, Metric, Reference, TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import to_polars

HOWARD = Reference(
    "social-counterfactuals",
    "Howard, P., Madasu, A., Le, T., Lujan Moreno, G., Bhiwandiwalla, A., & Lal, V. (2024). "
    "SocialCounterfactuals: Probing and mitigating intersectional social biases in vision-language "
    "models with counterfactual examples. In Proceedings of CVPR 2024.",
    "section 3: sets of pictures that differ in social attributes alone",
    "https://arxiv.org/abs/2312.00825",
)
_ALONE = "no other value in its scene"
_LACKS = "its scene lacks a value"
_ONLY = 'compare two values in all scenes that have both: --only "ATTRIBUTE=VALUE,VALUE"'


_metric = partial(
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
        _metric(
            name="within_scene",
            title="Number within its scene",
            definition="A picture's number minus the mean over the values in its scene, for scenes "
            "with every value; groups differ by the paired difference.",
        ),
        _metric(
            name="within_scene_by_occupation",
            title="Number within its scene",
            definition="The same, of scenes of one occupation.",
        ),
        _metric(
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
    >>> from isolux.vocabulary.info import DatasetInfo
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
    measured_name(frame)
    names = _named(metrics, occupation)
    numbers, notes = numbers_of_units(dataset, frame, model)
    pictures = _pictures(dataset, changed, scene, occupation, unknown_values)
    rows = numbers.join(pictures, on="unit_id", how="left", maintain_order="left")
    _refuse_clusters(rows)
    judged = _within(rows)
    _refuse_no_pairs(judged)
    kept = tuple(
        replace(m, direction=better if m.name != "spread_in_scene" else "none", unit=unit)
        for m in INFO.metrics
        if m.name in names
    )
    return Scores(
        units=stack_scores([_scores(judged, name) for name in names]),
        info=replace(INFO, metrics=kept),
        notes=(*codes_of_models(numbers), *_on_pairs(judged), *notes),
    )


def _named(metrics: Sequence[str], occupation: str | None) -> tuple[str, ...]:
    more = () if occupation is None else ("within_scene_by_occupation",)
    names = read_metrics(INFO, metrics) or (*INFO.defaults, *more)
    if "within_scene_by_occupation" in names and occupation is None:
        raise SpecError(
            "nothing says which occupation each scene is of",
            expected="occupation, the attribute that names it",
            found="none",
        )
    return names


def _pictures(
    dataset: Dataset,
    changed: str | None,
    scene: str | None,
    occupation: str | None,
    unknown: Sequence[str],
) -> pl.DataFrame:
    """List the pictures with value, scene and occupation, null where not known."""
    first = pl.col("truth").list.first()
    found = instances_with_truth(dataset, changed, {}, unknown)
    found = found.select("unit_id", "cluster_id", changed=first)
    for name, attribute in (("scene", scene), ("occupation", occupation)):
        if attribute is None or not dataset.instances.height:
            own = pl.col("cluster_id") if name == "scene" else pl.lit(None, dtype=pl.String)
            found = found.with_columns(own.alias(name))
            continue
        other = instances_with_truth(dataset, attribute, {}, unknown)
        named = other.select("unit_id", first.alias(name))
        found = found.join(named, on="unit_id", how="left", maintain_order="left")
    if found.height and found["scene"].is_null().all():
        raise SpecError(
            "nothing says which pictures are of one scene",
            expected="scene, the attribute that names it, and --cluster of the same name",
            found="none",
        )
    return found.drop("cluster_id")


def _refuse_clusters(rows: pl.DataFrame) -> None:
    """Refuse a scene whose pictures count as independent: differences would not be paired."""
    known = rows.filter(pl.col("scene").is_not_null())
    torn = known.group_by("scene", maintain_order=True).agg(
        n=pl.len(),
        alone=pl.col("cluster_id").is_null().any(),
        clusters=pl.col("cluster_id").n_unique(),
    )
    torn = torn.filter((pl.col("clusters") > 1) | (pl.col("alone") & (pl.col("n") > 1)))
    if torn.height:
        raise SpecError(
            "pictures of one scene count as unrelated",
            expected="clusters that hold whole scenes: --cluster with the scene's attribute",
            found=f"the scene {torn['scene'][0]!r} in several clusters, or in none",
            where="cluster",
        )


def _within(rows: pl.DataFrame) -> pl.DataFrame:
    """Take each scene's mean over its values, each value counting once, off its numbers."""
    usable = pl.all_horizontal(pl.col("value", "changed", "scene").is_not_null())
    scenes = ["model", "scene"]
    means = (
        rows.filter(usable)
        .group_by([*scenes, "changed"])
        .agg(pl.col("value").mean())
        .group_by(scenes)
        .agg(
            values=pl.len(),
            middle=pl.col("value").sort().mean(),
            spread=pl.col("value").max() - pl.col("value").min(),
        )
    )
    joined = rows.join(means, on=scenes, how="left", maintain_order="left")
    paired = pl.col("changed").filter(usable & (pl.col("values") > 1))
    return joined.with_columns(
        reason=pl.when(pl.col("value").is_null())
        .then(pl.lit("no prediction"))
        .when(pl.col("changed").is_null())
        .then(pl.lit("unknown value"))
        .when(pl.col("scene").is_null())
        .then(pl.lit("unknown scene"))
        .when(pl.col("values") < 2)
        .then(pl.lit(_ALONE))
        .when(pl.col("values") < paired.n_unique().over("model"))
        .then(pl.lit(_LACKS))
    )


def _refuse_no_pairs(judged: pl.DataFrame) -> None:
    scored = judged.filter(pl.col("value").is_not_null())
    if not scored.height or not judged["reason"].is_not_null().all():
        return
    lacking = judged.filter(pl.col("reason") == _LACKS)
    if lacking.height:
        scenes = lacking.group_by("changed").agg(n=pl.col("scene").n_unique())
        counted = scenes.sort("n", "changed", descending=[True, False]).rows()
        raise SpecError(
            "not one scene has pictures of every value",
            expected="scenes with a picture of each value, so that differences are paired",
            found="scenes with " + ", ".join(f"{value!r}: {n:,}" for value, n in counted),
            where="scene",
            hint=_ONLY,
        )
    raise SpecError(
        "not one scene has pictures of two values",
        expected="scenes whose pictures differ in the attribute changed",
        found=str(judged["reason"].drop_nulls()[0]),
        where="scene",
    )


def _scores(judged: pl.DataFrame, name: str) -> pl.DataFrame:
    by_work = name == "within_scene_by_occupation"
    value = pl.col("spread") if name == "spread_in_scene" else pl.col("value") - pl.col("middle")
    rows = judged.filter(pl.col("occupation").is_not_null()) if by_work else judged
    label = pl.col("occupation") if by_work else None
    return score_rows(rows, "counterfactual_pairs", name, value, label=label)


def _on_pairs(judged: pl.DataFrame) -> list[str]:
    """Count scenes and those left out; most of them, or a value that scenes lack, is a caution."""
    notes: list[str] = []
    known = judged.filter(pl.col("scene").is_not_null(), pl.col("value").is_not_null())
    for (model,), part in known.group_by("model", maintain_order=True):
        of_scene = part.group_by("scene").agg(
            alone=~pl.col("reason").fill_null(_LACKS).eq(_LACKS).any(),
            lacks=(pl.col("reason") == _LACKS).any(),
        )
        n, (alone, lacks) = of_scene.height, of_scene.select("alone", "lacks").sum().row(0)
        text = f"{n - alone:,} of {n:,} scenes have pictures of two values or more ({model})."
        if lacks:
            text += f" {lacks:,} of them lack a value that others have, and are left out: {_ONLY}."
        notes.append(Caution(text) if alone > n / 2 or lacks else text)
    return notes
