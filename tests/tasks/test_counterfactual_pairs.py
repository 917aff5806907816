"""Differences within scenes by hand, against a paired t-test, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.tasks.counterfactual_pairs import score
from isolux_worlds.associations import write_changed
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="Pictures that a test numbered.", references=())


def scenes(rows, *, clustered=True):
    """Rows of scene, value and occupation, a picture each."""
    ids = [f"p{i}" for i in range(len(rows))]
    names = ("scene", "gender", "work")
    long = pl.DataFrame(
        [("instance", i, name, value) for i, row in zip(ids, rows, strict=True)
         for name, value in zip(names, row, strict=True)],
        schema=["unit_kind", "unit_id", "attribute", "value"], orient="row",
    )  # fmt: skip
    instances = pl.DataFrame(
        {"instance_id": ids, "image_id": ids,
         "cluster_id": [row[0] if clustered else None for row in rows]},
        schema_overrides={"cluster_id": pl.String},
    )  # fmt: skip
    return Dataset("made up", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(long))


def given(*values):
    ids = [f"p{i}" for i in range(len(values))]
    return pl.DataFrame({"model": "m", "instance_id": ids, "value": list(values)})


def values(found, metric, label=None):
    rows = found.units.filter(pl.col("metric") == metric, pl.col("label").eq_missing(label))
    return [r if v is None else v for v, r in rows.select("value", "reason").iter_rows()]


# Scene s: two women's pictures (1 and 3, mean 2) and a man's (6): middle 4, spread 4.
# Scene t: a woman's alone. Scene u: 5 and no number.
ROWS = [("s", "w", "nurse"), ("s", "w", "nurse"), ("s", "m", "nurse"), ("t", "w", "guard"),
        ("u", "w", "guard"), ("u", "m", "guard")]  # fmt: skip
NUMBERS = given(1.0, 3.0, 6.0, 2.0, 5.0, None)


def test_by_hand():
    every = ["within_scene", "within_scene_by_occupation", "spread_in_scene"]
    found = score(scenes(ROWS), NUMBERS, changed="gender", occupation="work", metrics=every)
    alone = "no other value in its scene"
    assert values(found, "within_scene") == [-3, -1, 2, alone, alone, "no prediction"]
    assert values(found, "within_scene_by_occupation", "nurse") == [-3, -1, 2]
    assert values(found, "spread_in_scene")[:3] == [4, 4, 4]
    assert any(isinstance(n, Caution) and "1 of 3 scenes" in n for n in found.notes)


def test_the_difference_of_groups_is_the_paired_difference():
    draw = np.random.default_rng(0)
    pairs = draw.normal(size=(40, 1)) * 5 + draw.normal(size=(40, 2)) * [0.5, 0.7] + [0.0, 0.4]
    rows = [(f"s{i}", g, "x") for i in range(40) for g in "wm"]
    found = score(scenes(rows), given(*pairs.ravel()), changed="gender", metrics=["within_scene"])
    by_value = np.array(found.units["value"].to_list()).reshape(40, 2)
    difference = by_value[:, 1] - by_value[:, 0]
    np.testing.assert_allclose(difference, pairs[:, 1] - pairs[:, 0])
    ours = difference.mean() / (difference.std(ddof=1) / 40**0.5)
    assert ours == pytest.approx(stats.ttest_rel(pairs[:, 1], pairs[:, 0]).statistic)


def test_scenes_that_lack_a_value_are_left_out():
    # w and m get the same number in every scene, n gets 1 more. Held against scenes of w and n,
    # whose mean is .5 higher, the women would seem .25 below the men.
    kinds = ["wmn"] * 10 + ["wm"] * 10 + ["wn"] * 10 + ["w?"]
    rows = [(f"s{i}", g, "x") for i, kind in enumerate(kinds) for g in kind]
    rows = [(s, "unknown" if g == "?" else g, work) for s, g, work in rows]
    numbers = given(*(int(s[1:]) + (g == "n") for s, g, _ in rows))
    found = score(scenes(rows), numbers, changed="gender")
    mean = {
        g: np.mean([v for (_, own, _), v in zip(rows, values(found, "within_scene"), strict=True)
                    if own == g and not isinstance(v, str)])
        for g in "wmn"
    }  # fmt: skip
    assert mean == pytest.approx({"w": -1 / 3, "m": -1 / 3, "n": 2 / 3})
    assert values(found, "within_scene")[30:50] == ["its scene lacks a value"] * 20
    (told,) = (note for note in found.notes if isinstance(note, Caution))
    assert told.startswith("30 of 31 scenes have pictures of two values or more (m). 20 of them")


def test_where_every_scene_lacks_a_value_two_values_have_to_be_named():
    rows = [("s", "w", "x"), ("s", "m", "x"), ("t", "w", "x"), ("t", "n", "x")]
    with pytest.raises(SpecError, match="not one scene has pictures of every value") as caught:
        score(scenes(rows), given(1.0, 2.0, 3.0, 4.0), changed="gender")
    assert "'w': 2, 'm': 1, 'n': 1" in str(caught.value)


def test_scenes_must_be_clusters():
    loose = scenes(ROWS, clustered=False)
    with pytest.raises(SpecError, match="pictures of one scene count as unrelated"):
        score(loose, NUMBERS, changed="gender", scene="scene")
    with pytest.raises(SpecError, match="nothing says which pictures are of one scene"):
        score(loose, NUMBERS, changed="gender")


def test_scenes_of_one_value_alone_are_refused():
    rows = [("s", "w", "x"), ("s", "w", "x"), ("t", "m", "x")]
    with pytest.raises(SpecError, match="not one scene has pictures of two values"):
        score(scenes(rows), given(1.0, 2.0, 3.0), changed="gender")


def test_an_occupation_must_be_named():
    with pytest.raises(SpecError, match="nothing says which occupation"):
        score(scenes(ROWS), NUMBERS, changed="gender", metrics=["within_scene_by_occupation"])


def test_by_the_command_line_a_injected_association_is_found_and_its_absence_is_not(
    monkeypatch, capsys, tmp_path
):
    found = {}
    for name, size in (("injected", 0.3), ("absent", 0.0)):
        files = write_changed(tmp_path / name, association=size, seed=1)
        out = tmp_path / f"{name} run"
        ran = run(
            monkeypatch, capsys, "audit", f"table:{files['pictures']}", "--task",
            "counterfactual_pairs", "--changed", "gender", "--cluster", "scene", "--occupation",
            "occupation", "--predictions", files["scores"], "--score-column", "score",
            "--by", "gender", "--out", out,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        rows = pl.read_parquet(out / "disparities.parquet").filter(
            pl.col("metric") == "within_scene_by_occupation", pl.col("kind") == "difference"
        )
        found[name] = {label: (p, value) for label, p, value in rows.select(
            "label", "p_adjusted", "value").iter_rows()}  # fmt: skip
    assert max(found["injected"][work][0] for work in ("nurse", "plumber")) < 0.001
    assert found["injected"]["teacher"][0] > 0.05
    assert min(p for p, _ in found["absent"].values()) > 0.05
