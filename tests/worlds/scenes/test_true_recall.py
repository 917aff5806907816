"""The injected recall of groups of a scene: by hand, and by another integration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds import (
    Detector,
    Effect,
    Scene,
    SceneAttribute,
    confounded_scene,
    injected_recall,
    injected_recall_record,
)

TONE = SceneAttribute(name="tone", shares={"a": 0.75, "b": 0.25})
LIGHT = SceneAttribute(name="light", shares={"bright": 0.5, "dim": 0.5}, varies="image")
# A uniform overlap from .5 to 1: it reaches t with chance (1 - t) / .5, which is 1, .9, … .1 at the
# ten overlaps of average recall, .55 in the mean.
UNIFORM = {"overlap": 0.5, "concentration": 2.0}


def scene(**changes):
    return Scene(**({"clusters": 10, "attributes": (TONE, LIGHT)} | changes))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def of(truth, metric="recall_at_iou", threshold=0.5, **wanted):
    """Group to injected value (or another column) of one attribute."""
    at = threshold if metric == "recall_at_iou" else None
    rows = truth.filter(pl.col("metric") == metric, pl.col("threshold").eq_missing(at), **wanted)
    return dict(rows.select("group", "value").iter_rows())


def shares(truth, attribute):
    rows = truth.filter(metric="average_recall", attribute=attribute)
    return dict(rows.select("group", "share").iter_rows())


def test_recalls_by_hand():
    # Logit of .8 is log 4. Tone b costs log 4 (a chance of .5), b in dim light log 6 more (1/7).
    effects = (
        Effect({"tone": "b"}, -np.log(4)),
        Effect({"tone": "b", "light": "dim"}, -np.log(6)),
    )
    truth = injected_recall(
        scene(by=("tone", "light", "tone*light")),
        Detector(name="m", base_rate=0.8, effects=effects, **UNIFORM),
        (0.5, 0.8),
    )
    b = (0.5 + 1 / 7) / 2
    assert of(truth, attribute="tone") == pytest.approx({"a": 0.8, "b": b})
    assert of(truth, threshold=0.8, attribute="tone") == pytest.approx({"a": 0.32, "b": 0.4 * b})
    assert of(truth, "average_recall", attribute="tone") == pytest.approx(
        {"a": 0.44, "b": 0.55 * b}
    )
    assert of(truth, attribute="tone*light")["b × dim"] == pytest.approx(1 / 7)
    everyone = 0.75 * 0.8 + 0.25 * b
    assert of(truth, group="overall") == pytest.approx({"overall": everyone})
    gaps = truth.filter(metric="recall_at_iou", threshold=0.5, attribute="light")["difference"]
    assert gaps.to_list() == pytest.approx([0.25 * (0.5 - b), -0.25 * (0.5 - b)])
    assert shares(truth, "tone*light")["b × dim"] == pytest.approx(0.125)


def test_shares_of_sizes_and_crowding_by_hand():
    # A median side of 32 pixels halves people at COCO's border; 96 is log2(3) octaves above.
    truth = injected_recall(scene(side_px=32.0, people=(1, 4)), Detector(name="m"))
    assert shares(truth, "size") == pytest.approx(
        {"small": 0.5, "medium": norm.cdf(np.log2(3)) - 0.5, "large": norm.sf(np.log2(3))}
    )
    # Images of 1, 2, 3 and 4 people are equally many: of ten people one is alone, four in fours.
    assert shares(truth, "crowding") == pytest.approx({"alone": 0.1, "few": 0.5, "many": 0.4})
    assert shares(truth, "occluded") == pytest.approx({"false": 0.8, "true": 0.2})
    alone = injected_recall(scene(people=1), Detector(name="m"))
    assert shares(alone, "crowding") == pytest.approx({"alone": 1.0})


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 0.6), (-1.0, 0.6), (1.5, 1.2), (0.0, -0.4)])
def test_the_slope_over_sizes_is_that_of_an_integral(shift, slope):
    """Sides are log-normal and cut off at 8 and 512 pixels, 3 octaves either way of 64."""

    def found(octaves):
        return logistic(np.log(0.8 / 0.2) + slope * np.clip(octaves, -3, 3))

    def integral(low, high):
        cuts = sorted({low, high, *(c for c in (-3.0, 3.0) if low < c < high)})
        parts = [
            quad(lambda z: found(z) * norm.pdf(z, shift), a, b, epsabs=1e-12)[0]
            for a, b in pairwise(cuts)
        ]
        return sum(parts)

    effect = Effect({"tone": "b"}, shift)
    truth = injected_recall(
        scene(size_effects=(effect,), by=("tone", "tone*size")),
        Detector(name="m", base_rate=0.8, per_doubling=slope),
    )
    assert of(truth, attribute="tone")["b"] == pytest.approx(integral(-12, 12), abs=1e-5)
    small = integral(-12, -1) / norm.cdf(-1, shift)
    assert of(truth, attribute="tone*size")["b × small"] == pytest.approx(small, abs=1e-5)


def test_occlusion_hangs_on_attributes_by_hand():
    # .2 is a logit of -log 4; with log 4 more it is .5.
    truth = injected_recall(
        scene(occlusion_effects=(Effect({"tone": "b"}, np.log(4)),), by=("tone", "occluded")),
        Detector(name="m", base_rate=0.8, effects=(Effect({"occluded": "true"}, -np.log(4)),)),
    )
    assert of(truth, attribute="tone") == pytest.approx({"a": 0.8 * 0.8 + 0.2 * 0.5, "b": 0.65})
    assert of(truth, attribute="occluded") == pytest.approx({"false": 0.8, "true": 0.5})
    assert shares(truth, "occluded")["true"] == pytest.approx(0.75 * 0.2 + 0.25 * 0.5)


def test_overlaps_may_differ_where_recalls_do_not():
    detector = Detector(name="m", overlap_effects=(Effect({"tone": "b"}, -1.0),))
    truth = injected_recall(scene(), detector)
    assert of(truth, attribute="tone") == pytest.approx({"a": 0.8, "b": 0.8})
    found = of(truth, "average_recall", attribute="tone")
    assert found["b"] < found["a"] - 0.05


def test_the_record_names_what_lies_farthest_apart():
    record = injected_recall_record(*confounded_scene("size"))
    tone, light = (next(r for r in record if r["attribute"] == a) for a in ("tone", "light"))
    assert (tone["group_a"], tone["group_b"], tone["kind"]) == ("b", "a", "difference")
    truth = of(injected_recall(*confounded_scene("size")), "average_recall", attribute="tone")
    assert tone["value"] == pytest.approx(truth["b"] - truth["a"])
    assert light["value"] == 0.0
    assert light["note"] == "nothing was injected here"


def test_what_nobody_named_does_not_change_the_truth():
    many = tuple(SceneAttribute(name=f"x{k}", shares={"0": 0.5, "1": 0.5}) for k in range(30))
    wide = injected_recall(scene(attributes=(TONE, *many)), Detector(name="m"))
    narrow = injected_recall(scene(attributes=(TONE,)), Detector(name="m"))
    assert wide.height > narrow.height + 100
    assert wide.filter(pl.col("attribute").is_in(["tone", "size"])).equals(
        narrow.filter(pl.col("attribute").is_in(["tone", "size"]))
    )


def test_what_cannot_be_injected_is_refused():
    with pytest.raises(SpecError, match=r"no recall is injected at that overlap(?s:.*)0.3"):
        injected_recall(scene(), Detector(name="m"), (0.3,))
    many = tuple(SceneAttribute(name=f"x{k}", shares={"0": 0.5, "1": 0.5}) for k in range(20))
    every = "*".join(a.name for a in many)
    with pytest.raises(SpecError, match="too many combinations of values"):
        injected_recall(scene(attributes=many, by=(every,)), Detector(name="m"))
    with pytest.raises(UnknownNameError, match="ton"):
        injected_recall(scene(), Detector(name="m", effects=(Effect({"ton": "b"}, 1.0),)))
