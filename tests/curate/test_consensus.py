"""Consensus: FairFace's rule by hand, models of annotators, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux_curate.labels import find_consensus_labels


def said(*rows: str, **columns: list[int]) -> pl.DataFrame:
    """``"a x cat"``: of item a, annotator x said cat."""
    frame = pl.DataFrame(
        [row.split(" ") for row in rows], schema=["instance_id", "annotator", "label"],
        orient="row",
    )  # fmt: skip
    return frame.with_columns(**{k: pl.Series(v) for k, v in columns.items()})


def labels(found) -> dict[str, tuple[str | None, str]]:
    rows = found.labels.select("instance_id", "label", "status").iter_rows()
    return {item: (label, status) for item, label, status in rows}


def test_two_of_three_agree_or_three_more_are_asked():
    """a: 2 of 3; b: all differ; c: six answers, 2 : 2 : 2; d: one answer; e: 4 of 6."""
    given = said(
        "a x cat", "a y cat", "a z dog", "b x cat", "b y dog", "b z owl",
        "c u cat", "c v cat", "c w dog", "c x dog", "c y owl", "c z owl", "d x cat",
        "e u cat", "e v cat", "e w cat", "e x cat", "e y owl", "e z dog",
    )  # fmt: skip
    assert labels(find_consensus_labels(given)) == {
        "a": ("cat", "agreed"), "b": (None, "needs more votes"), "c": (None, "discard"),
        "d": (None, "needs more votes"), "e": ("cat", "agreed"),
    }  # fmt: skip


def test_the_last_round_counts_alone():
    """The first three differed and two of the new three agree; of b the new three differ too."""
    given = said(
        "a u cat", "a v dog", "a w owl", "a x dog", "a y dog", "a z cat",
        "b u cat", "b v dog", "b w owl", "b x cat", "b y dog", "b z owl",
        round=[1, 1, 1, 2, 2, 2] * 2,
    )  # fmt: skip
    found = find_consensus_labels(given)
    assert labels(found) == {"a": ("dog", "agreed"), "b": (None, "discard")}
    assert found.labels["chance"].round(3).to_list() == [0.667, 0.333]
    assert found.chances.row(0) == pytest.approx(("a", 1 / 3, 0.5, 1 / 6))


def test_shares_of_votes_and_how_often_each_agrees():
    given = said("a x cat", "a y cat", "a z dog", "b x owl", "b y owl", "b z owl")
    found = find_consensus_labels(given)
    assert found.annotators.select("annotator", "answers", "right").rows() == [
        ("x", 2, 1.0), ("y", 2, 1.0), ("z", 2, 0.5),
    ]  # fmt: skip
    assert found.chances.columns == ["instance_id", "cat", "dog", "owl"]


@pytest.mark.parametrize("method", ["dawid-skene", "glad"])
def test_models_weigh_annotators_and_say_how_sure(method):
    """x and y are right in 95 %, z says what comes: where x and y agree against z, they stand."""
    rng = np.random.default_rng(0)
    rows = []
    for item in range(200):
        truth = int(rng.integers(2))
        for who, skill in (("x", 0.95), ("y", 0.95), ("z", 0.5)):
            rows.append(f"i{item} {who} {truth if rng.random() < skill else 1 - truth}")
    found = find_consensus_labels(said(*rows), method=method)
    right = dict(found.annotators.select("annotator", "right").iter_rows())
    assert min(right["x"], right["y"]) > 0.88
    assert right["z"] < 0.65
    low, high = found.annotators.filter(annotator="z").select("low", "high").row(0)
    assert low < 0.5 < high + 0.05
    assert high - low < 0.3
    assert found.notes == ()


def test_what_is_not_sure_has_no_label(monkeypatch):
    monkeypatch.setattr("isolux_curate.labels.MIN_LABEL_CHANCE", 0.99999)
    rng = np.random.default_rng(1)
    rows = [f"i{k} {who} {rng.integers(2)}" for k in range(60) for who in "xy"]
    found = find_consensus_labels(said(*rows), method="dawid-skene")
    unsure = found.labels.filter(pl.col("chance") <= 0.99999)
    assert unsure["label"].null_count() == unsure.height
    assert unsure["status"].unique().to_list() in (["needs more votes"], [])


def test_annotators_who_share_nothing_are_a_caution():
    rows = [f"i{k} {'xy'[k % 2]} {k % 3}" for k in range(40)]
    told = find_consensus_labels(said(*rows), method="dawid-skene").notes[0]
    assert isinstance(told, Caution)
    assert "2 of 2 annotators share fewer than 10 items" in told


@pytest.mark.parametrize("method", ["dawid-skene", "glad"])
def test_of_two_annotators_no_one_knows_who_errs(method):
    """They agree on 30 items, answers 0 and 1 by turns, and differ on 6."""
    rows = [f"i{k} {who} {k % 2}" for k in range(30) for who in "xy"]
    rows += [f"d{k} {who} {int(who == 'x') ^ (k > 1)}" for k in range(6) for who in "xy"]
    found = find_consensus_labels(said(*rows), method=method)
    assert found.annotators.select("right", "low", "high").unique().rows() == [(None, None, None)]
    assert "2 of 2 annotators share items with one other alone (x, y)" in found.notes[0]
    status = labels(found)
    assert {status[f"d{k}"] for k in range(6)} == {(None, "needs more votes")}
    assert [status[f"i{k}"] for k in range(2)] == [("0", "agreed"), ("1", "agreed")]
    more = [*rows, *(f"i{k} z {k % 2}" for k in range(30)), *(f"d{k} z 1" for k in range(6))]
    found = find_consensus_labels(said(*more), method=method)
    assert found.notes == ()
    assert found.annotators["right"].null_count() == 0


@pytest.mark.parametrize("method", ["dawid-skene", "glad"])
def test_one_answer_for_all_items_says_nothing_about_annotators(method):
    found = find_consensus_labels(said(*(f"i{k} {w} yes" for k in range(20) for w in "xyz")),
                                  method=method)  # fmt: skip
    assert found.annotators.select("right", "low", "high").unique().rows() == [(None, None, None)]
    assert found.notes == ("All answers are the same: how often annotators err cannot be known.",)
    assert found.labels["status"].unique().to_list() == ["agreed"]


@pytest.mark.parametrize(
    ("given", "settings", "words"),
    [
        (said("a x cat"), {"method": "mean"}, "not a method"),
        (said("a x cat"), {"min_votes": 4}, "min_votes from 1"),
        (said("a x cat").with_columns(label=pl.lit(None, dtype=pl.String)), {}, "no answers"),
        (said("a x cat", "a x dog"), {}, "several answers.*'x' about 'a': 'cat' and 'dog'"),
        (said(*(f"i{k} x w{k}" for k in range(501))), {}, "501 different answers"),
    ],
)
def test_what_does_not_fit_is_refused(given, settings, words):
    with pytest.raises(SpecError, match=f"(?s){words}"):
        find_consensus_labels(given, **settings)


def test_an_answer_named_as_the_item_keeps_its_column():
    found = find_consensus_labels(said("a x instance_id", "a y instance_id"))
    assert found.chances.columns == ["instance_id", "instance_id (answer)"]


@pytest.mark.parametrize("method", ["dawid-skene", "glad"])
def test_a_tie_of_two_answers_goes_to_neither(monkeypatch, method):
    monkeypatch.setattr("isolux_curate.labels.MIN_LABEL_CHANCE", 0.3)
    # x and y agree on 20 items; on t x says cat and y dog, on u the other way round: 1/2 each.
    rows = [(f"i{k}", who, ("cat", "dog")[k % 2]) for k in range(20) for who in "xy"]
    rows += [("t", "x", "cat"), ("t", "y", "dog"), ("u", "x", "dog"), ("u", "y", "cat")]
    said = pl.DataFrame(rows, schema=["instance_id", "annotator", "label"], orient="row")
    labels = find_consensus_labels(said, method=method).labels
    ties = labels.filter(pl.col("instance_id").is_in(["t", "u"]))
    assert ties.select("label", "status").rows() == [(None, "needs more votes")] * 2
    assert labels["label"].null_count() == 2
