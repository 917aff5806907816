"""Photo worlds without pixels: draw, answer, count, and the house's own intervals beside the truth.

People of a home share its light and its photos, so homes are the clusters, and one home counts in
several groups: groups' replicates are correlated, and differences use that, as an audit does.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.analyses import confounders
from isolux.core.containers import Run
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.stats.intervals import (
    Interval,
    has_fraction_nominal_coverage,
    logit_or_wilson_interval_at_level,
    mover_difference_interval,
)
from isolux.stats.multiplier_bootstrap import correlate_corresponding_rows
from isolux_worlds.photo_world.attribute_network import build_attribute_network
from isolux_worlds.photo_world.injected_effects import (
    compute_photo_injected_rates,
    compute_probability_correct,
    draw_correlated_outcomes,
)
from isolux_worlds.photo_world.people import draw_tree_and_codes
from isolux_worlds.photo_world.settings import preset
from isolux_worlds.populations.rates import RateWorlds
from tests.laws._worlds import bootstrap

LEVEL = 0.95
PER_BATCH = 50
LEAST_UNITS, LEAST_CLUSTERS = 50, 30
DARKER = ("6", "7", "8", "9", "10")


def answers(settings, model, names, seed):
    """Draw a world's people and one model's answers about them."""
    named = {name for effect in model.effects for name in effect.where}
    tree, codes = draw_tree_and_codes(settings, seed, {*names, *named})
    values = {n.name: n.values for n in build_attribute_network(settings) if n.name in codes}
    rate = np.broadcast_to(
        compute_probability_correct(model, values, codes), tree.subject_of_person.shape
    )
    subjects = len(tree.household_of_subject)
    right = draw_correlated_outcomes(rate, tree.subject_of_person, subjects, model, seed)
    return tree, codes, values, right


def accuracy_tables(settings, model, entry, seeds):
    """Count people and right answers of each group and home: ``[worlds, groups, homes]``."""
    names = entry.split("*")
    counted, held = [], []
    for seed in seeds:
        tree, codes, values, right = answers(settings, model, names, seed)
        group, groups = np.zeros(len(right), dtype=np.int64), 1
        for name in names:
            group = group * len(values[name]) + codes[name]
            groups *= len(values[name])
        home = tree.household_of_image[tree.image_of_person]
        cell = group * settings.households + home
        shape = (groups, settings.households)
        size = groups * settings.households
        counted.append(np.bincount(cell, minlength=size).reshape(shape))
        held.append(np.bincount(cell, weights=right, minlength=size).reshape(shape))
    return RateWorlds(np.stack(counted), np.stack(held).astype(np.int64))


def cover(name, model_name, entry, *, worlds, replicates):
    """Measure how often intervals of a preset's groups, and of their differences, hold the truth.

    Groups that an audit would not judge (fewer than 50 people or 30 homes, or an interval whose
    promise cannot be kept) are left out, and counted.
    """
    settings = preset(name)
    model = settings.model_named(model_name)
    truth = compute_photo_injected_rates(
        settings.model_copy(update={"by": (entry,)}), model
    ).filter(attribute=entry)
    rates = truth["value"].to_numpy()
    first, second = np.triu_indices(len(rates), 1)
    of_rates, of_gaps, unlike, judged = [], [], [], []
    for batch in range(-(-worlds // PER_BATCH)):
        each = min(PER_BATCH, worlds - batch * PER_BATCH)
        seeds = range(batch * PER_BATCH, batch * PER_BATCH + each)
        made = accuracy_tables(settings, model, entry, seeds)
        drawn = bootstrap(made, shared=True, replicates=replicates, seed=batch)
        clusters = drawn.clusters.astype(float)
        ends = logit_or_wilson_interval_at_level(drawn.value, drawn.se, clusters, LEVEL)
        good = (made.photos.sum(axis=-1) >= LEAST_UNITS) & (clusters >= LEAST_CLUSTERS)
        good &= has_fraction_nominal_coverage(drawn.value, drawn.se, clusters)
        of_rates.append(_inside(ends, rates)[good])
        a, b = (Interval(ends.low[:, k], ends.high[:, k]) for k in (first, second))
        one, two = (drawn.replicates[:, k].reshape(-1, replicates) for k in (first, second))
        rho = correlate_corresponding_rows(one, two).reshape(each, len(first))
        gap = mover_difference_interval(drawn.value[:, first], a, drawn.value[:, second], b, rho)
        both = good[:, first] & good[:, second]
        of_gaps.append(_inside(gap, rates[first] - rates[second])[both])
        apart = (gap.low > 0) | (gap.high < 0)
        unlike.append(apart[both])
        judged.append(good.mean())
    return {
        "world": name, "model": model_name, "groups": entry, "rates held, %": _mean(of_rates),
        "differences held, %": _mean(of_gaps), "judged, %": float(np.mean(judged)),
        "farthest apart": float(rates.max() - rates.min()),
        "differences without 0, %": _mean(unlike),
    }  # fmt: skip


def control(name, *, worlds, replicates, homes=300):
    """Measure the gap between darker and lighter tones as it stands, and at one mix of lights."""
    settings = preset(name).model_copy(update={"households": homes})
    model = settings.model_named("aurora")
    held = {"raw": [], "zero": []}
    raw, left = 0.0, 0.0
    for seed in range(worlds):
        run = _run(settings, model, seed, replicates)
        found = confounders.explain(run, explanatory=("lighting",), metric=["accuracy"],
                                    regression=False)  # fmt: skip
        (table,) = (t for caption, t in found.tables.items() if caption.startswith("Gaps"))
        row = table.row(0, named=True)
        sign = 1 if row["group"] == "darker" else -1
        raw += sign * row["unadjusted gap"] / worlds
        left += sign * row["gap"] / worlds
        held["raw"].append(sign * row["unadjusted gap"] < 0)
        held["zero"].append(row["gap_low"] <= 0 <= row["gap_high"])
    return {
        "world": name, "homes": homes, "as it stands": raw, "at one mix of lights": left,
        "darker tones worse off, %": float(np.mean(held["raw"])),
        "interval at one mix holds 0, %": float(np.mean(held["zero"])),
    }  # fmt: skip


def _run(settings, model, seed, replicates):
    tree, codes, values, right = answers(settings, model, ("skin_tone", "lighting"), seed)
    ids = pl.Series([f"p{i}" for i in range(len(right))])
    home = pl.Series(tree.household_of_image[tree.image_of_person]).cast(pl.String)
    darker = np.isin(values["skin_tone"], DARKER)[codes["skin_tone"]]
    told = {
        "tone": np.where(darker, "darker", "lighter"),
        "lighting": np.array(values["lighting"])[codes["lighting"]],
    }
    attributes = pl.concat(
        pl.DataFrame({"unit_kind": "instance", "unit_id": ids, "attribute": name,
                      "value": pl.Series(held.tolist())})
        for name, held in told.items()
    )  # fmt: skip
    scores = pl.DataFrame(
        {"model": model.name, "task": "classification", "metric": "accuracy",
         "unit_kind": "instance", "unit_id": ids, "cluster_id": home, "value": right * 1.0}
    )  # fmt: skip
    empty = (t.empty() for t in (GROUP_METRICS, DISPARITIES, FINDINGS))
    spec = {"data": "synthetic", "task": "classification", "by": ["tone"], "seed": seed,
            "replicates": replicates}  # fmt: skip
    record = {"spec": spec, "task": "classification"}
    return Run(record, SCORES.conform(scores), ATTRIBUTES.conform(attributes), *empty, evidence={})


def _inside(ends, truth):
    return (ends.low <= truth) & (truth <= ends.high)


def _mean(parts):
    return float(np.concatenate([p.ravel() for p in parts]).mean())
