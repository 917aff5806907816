"""Given pairs and embeddings: what is compared, what is counted once, and what groups get."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_curve

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import ATTRIBUTES, GROUP_METRICS, INSTANCES, MEMBERSHIP, check
from isolux.groups.measure import measure_groups
from isolux.stats.weights import build_random_generator, draw_multinomial_weights
from isolux.tasks.face_verification import score

INFO = DatasetInfo(title="Made up", summary="Faces that a test made up.", references=())
SMALL = ComparisonSettings(min_units=1, min_clusters=1, replicates=200)
ALL = (
    "tar_at_far",
    "true_match_rate",
    "false_match_rate",
    "false_non_match_rate",
    "verification_auc",
    "equal_error_rate",
)


def faces(subjects, attributes=(), **columns):
    """Images ``f0, f1, …`` of subjects; attributes are (name, values, numbers)."""
    ids = [f"f{i}" for i in range(len(subjects))]
    instances = pl.DataFrame(
        {"instance_id": ids, "image_id": ids, "subject_id": subjects, **columns},
        schema_overrides={"subject_id": pl.String},
    )
    rows = [
        {"unit_kind": "instance", "unit_id": i, "attribute": name, "value": v, "number": x}
        for name, values, numbers in attributes
        for i, v, x in zip(ids, values, numbers or [None] * len(ids), strict=True)
    ]
    return Dataset(
        "made up", INFO, INSTANCES.conform(instances), pl.DataFrame(rows, schema=ATTRIBUTES.schema)
    )


def compared(pairs, model="m"):
    names = [(model, f"f{i}", f"f{j}", s) for i, j, s in pairs]
    schema = {"model": pl.String, "instance_id": pl.String, "other_id": pl.String, "score": pl.Float64}  # noqa: E501  # fmt: skip
    return pl.DataFrame(names, schema=schema, orient="row")


def vectors(rows, model="m"):
    return pl.DataFrame(
        {
            "model": model,
            "instance_id": [f"f{i}" for i in range(len(rows))],
            "embedding": pl.Series(np.asarray(rows, dtype=float).tolist()),
        }
    )


def members(**groups):
    rows = [("g", name, [name], f"f{i}") for name, inside in groups.items() for i in inside]
    return pl.DataFrame(rows, schema=MEMBERSHIP.schema, orient="row")


def listed(scores):
    """The evidence, one row a pair, ids as text."""
    held = scores.evidence["pairs"]
    lists = ["other_id", "similarity", "genuine", *(["draw"] if "draw" in held.columns else [])]
    return held.explode(lists).with_columns(pl.col("other_id").cast(pl.String))


def measured(scores, membership, spec=SMALL):
    return check(measure_groups(scores, membership, spec).to_table(), GROUP_METRICS)


def value(rows, metric, group):
    row = rows.filter((pl.col("metric") == metric) & (pl.col("group") == group))
    return row["value"].item()


# Four images of subjects a, a, b, b: genuine .9 and .6; impostors .7, .5, .3, .1.
FOUR = faces(["a", "a", "b", "b"])
SIX = [(0, 1, 0.9), (2, 3, 0.6), (0, 2, 0.7), (0, 3, 0.5), (1, 2, 0.3), (1, 3, 0.1)]


def test_rates_by_hand():
    # One impostor of four may pass (.7), so the threshold lies just above .5: both accepted.
    rows = measured(score(FOUR, compared(SIX), far=0.25, metrics=ALL), members())
    found = {m: value(rows, m, "overall") for m in ALL}
    assert found == pytest.approx(
        {
            "tar_at_far": 1.0,
            "true_match_rate": 1.0,
            "false_match_rate": 0.25,
            "false_non_match_rate": 0.0,
            "verification_auc": 7 / 8,  # .9 beats four, .6 three
            "equal_error_rate": 0.25,  # (0, 1/2), (1/4, 1/2), (1/4, 1): crosses at FAR 1/4
        }
    )
    at = dict(rows.select("metric", "threshold").iter_rows())
    assert at["tar_at_far"] == 0.25
    assert at["false_match_rate"] == np.nextafter(0.5, 1)
    assert at["verification_auc"] is None


def test_a_threshold_of_ones_own():
    rows = measured(score(FOUR, compared(SIX), far=0.25, threshold=0.65, metrics=ALL), members())
    assert value(rows, "true_match_rate", "overall") == 0.5
    assert value(rows, "false_match_rate", "overall") == 0.25


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threshold": 35.0}, ("No score of 'm' reaches the threshold of 35: scores run from 0.1 to"
         " 0.9, so no pair is accepted.")),
        ({"threshold": -1.0}, ("Every score of 'm' reaches the threshold of -1: scores run from 0.1"
         " to 0.9, so every pair is accepted.")),
        ({"threshold": 35.0, "lower_score_means": "same"},
         ("Every score of 'm' reaches the threshold of 35:"
         " scores run from 0.1 to 0.9, so every pair is accepted.")),
        ({"threshold": 0.65}, ""),
    ],
)  # fmt: skip
def test_a_threshold_that_parts_no_pairs_is_said_first(options, told):
    notes = score(FOUR, compared(SIX), far=0.25, **options).notes
    said = [note for note in notes if isinstance(note, Caution)]
    assert [note.startswith(told) for note in said] == [True] * bool(told)


def test_symmetric_and_self_pairs_are_counted_once_and_never():
    more = [*SIX, (1, 0, 0.9), (3, 1, 0.1), (2, 2, 1.0), (0, 2, 0.7)]
    once, twice = score(FOUR, compared(SIX), far=0.25), score(FOUR, compared(more), far=0.25)
    assert listed(twice).equals(listed(once))
    assert twice.notes[0] == "1 of 10 pairs compare a unit with itself: left out."
    assert twice.notes[1].startswith("3 of 10 pairs repeat another")


def test_a_pair_with_two_similarities_is_refused():
    with pytest.raises(
        TableError, match=r"two similarities(.|\n)*0.7 and 0.8 for 'f0'(.|\n)*keep the row"
    ):
        score(FOUR, compared([*SIX, (2, 0, 0.8)]), far=0.25)


def test_a_pair_called_both_genuine_and_impostors_is_refused():
    said = pl.when(instance_id="f0", other_id="f2").then(statement=True)
    told = compared([*SIX, (2, 0, 0.7)]).with_columns(
        genuine=said.when(instance_id="f2", other_id="f0").then(statement=False)
    )
    with pytest.raises(TableError, match=r"both genuine and impostors(.|\n)*'f0' and 'f2'"):
        score(faces([None] * 4), told, far=0.25)


def test_failed_comparisons_count_for_both_and_leave_the_rates():
    failed = [*SIX[:4], (1, 2, None), SIX[5]]
    found = score(FOUR, compared(failed), far=0.3)
    rate = dict(found.units.select("unit_id", "value").iter_rows())
    assert rate == pytest.approx({"f0": 0.0, "f1": 1 / 3, "f2": 1 / 3, "f3": 0.0})
    assert listed(found)["similarity"].count() == 5
    assert "1 of 6 comparisons failed and are left out of rates." in found.notes


def test_who_is_in_no_pair_is_null_with_the_reason():
    found = score(FOUR, compared(SIX[:1]), far=0.5)
    rows = found.units.select("value", "reason").rows()
    assert rows == [(0.0, None), (0.0, None), (None, "in no pair"), (None, "in no pair")]


def test_identity_is_the_subject_else_the_cluster_or_what_is_named():
    def kinds(dataset, **options):
        pairs = listed(score(dataset, compared(SIX), far=0.4, **options))
        return dict(pairs.select(pl.concat_str("unit_id", "other_id"), "genuine").iter_rows())

    by_cluster = faces([None] * 4, cluster_id=["a", "b", "a", "b"])
    assert kinds(by_cluster)["f0f2"] is True
    named = faces(["a", "a", "b", "b"], [("twin", ["x", "x", "x", "y"], None)])
    assert kinds(named, identity="twin")["f0f2"] is True
    assert kinds(named, identity="subject_id")["f0f2"] is False
    unknown = faces(["a", "a", None, "b"])
    assert kinds(unknown)["f0f2"] is None
    with pytest.raises(SpecError, match="nothing says who is who"):
        score(faces([None] * 4), compared(SIX))


def test_without_clusters_the_identities_are_resampled():
    found = score(FOUR, compared(SIX), far=0.25)
    assert found.units["cluster_id"].to_list() == ["a", "a", "b", "b"]
    assert measured(found, members())["n_clusters"].to_list() == [2] * 3


# Ten people of four images, two of them of each group; 3-d space, so impostors overlap.
RNG = np.random.default_rng(4)
PEOPLE = np.repeat(np.arange(30), 4)
SPACE = np.repeat(RNG.standard_normal((30, 6)), 4, axis=0) + RNG.standard_normal((120, 6)) * 0.8
UNIT = SPACE / np.linalg.norm(SPACE, axis=1, keepdims=True)
COSINE = UNIT @ UNIT.T
CROWD = faces([f"s{p:02}" for p in PEOPLE])
GROUPS = {"even": np.flatnonzero(PEOPLE % 2 == 0), "few": np.arange(70), "odd": np.flatnonzero(PEOPLE % 2)}  # fmt: skip  # noqa: E501


def test_groups_of_embeddings_agree_with_scikit_learn_on_the_pairs_within():
    scores = score(CROWD, vectors(SPACE), far=0.01, metrics=ALL)
    rows = measured(scores, members(**GROUPS))
    i, j = np.triu_indices(120, 1)
    common = None
    for group, inside in {"overall": np.arange(120), **GROUPS}.items():
        within = np.isin(i, inside) & np.isin(j, inside)
        genuine, similarity = (PEOPLE[i] == PEOPLE[j])[within], COSINE[i, j][within]
        fpr, tpr, at = roc_curve(genuine, similarity, drop_intermediate=False)
        assert value(rows, "tar_at_far", group) == pytest.approx(tpr[fpr <= 0.01].max())
        common = at[np.flatnonzero(fpr <= 0.01)[-1]] if common is None else common
        accepted = similarity >= common - 1e-12
        assert value(rows, "true_match_rate", group) == pytest.approx(accepted[genuine].mean())
        if (~genuine).sum() >= 100:
            assert value(rows, "false_match_rate", group) == pytest.approx(
                accepted[~genuine].mean()
            )


def test_a_pair_across_groups_counts_for_everyone_alone():
    halves = members(one=[0, 1], two=[2, 3])
    rows = measured(score(FOUR, compared(SIX), far=0.25, metrics=("tar_at_far",)), halves)
    tar = rows.filter(pl.col("metric") == "tar_at_far")
    assert tar["status"].to_list()[1:] == ["insufficient units"] * 2
    assert tar["reason"][1] == ("0 impostor pairs; a value at a false accept rate of 0.25 needs 4")
    assert tar["n_units"].to_list() == [2, 1, 1]  # genuine pairs: the rate is a share of those
    assert tar["n_clusters"].to_list() == [2, 1, 1]


def test_below_one_in_far_no_value_below_thirty_a_point_and_then_an_interval():
    # Impostor pairs: 6 people of 4 are 240, 10 are 720, 20 are 3,040.
    groups = {"small": np.arange(24), "middle": np.arange(40), "large": np.arange(80)}
    spec = ComparisonSettings(min_units=1, min_clusters=1, replicates=200)
    scores = score(CROWD, vectors(SPACE), far=1 / 100, metrics=("tar_at_far", "true_match_rate"))
    rows = measured(scores, members(**groups), spec)
    tar = {r["group"]: r for r in rows.filter(pl.col("metric") == "tar_at_far").iter_rows(named=True)}  # fmt: skip  # noqa: E501
    assert tar["large"]["low"] < tar["large"]["value"] < tar["large"]["high"]
    for group, n in (("small", 240), ("middle", 720)):
        row = tar[group]
        assert (row["status"], row["low"], row["high"]) == ("few impostors", None, None)
        assert row["value"] is not None
        assert row["reason"] == (
            f"unstable: {n} impostor pairs; an interval at a false accept rate of 0.01 needs 3,000"
        )
    # A rate of genuine pairs at a threshold of everyone's needs no impostors of the group's own.
    own = rows.filter((pl.col("metric") == "true_match_rate") & (pl.col("group") == "middle"))
    assert own["low"].item() is not None
    strict = measured(score(CROWD, vectors(SPACE), far=1 / 241, metrics=("tar_at_far",)), members(**groups), spec)  # fmt: skip  # noqa: E501
    none = strict.filter((pl.col("metric") == "tar_at_far") & (pl.col("group") == "small"))
    assert none["value"].item() is None
    assert none["reason"].item() == "240 impostor pairs; a value at a false accept rate of 0.00414938 needs 241"  # fmt: skip  # noqa: E501


def test_at_a_given_threshold_a_false_match_rate_is_a_plain_share():
    # 720 impostor pairs: a FAR of .001 would need 1,000 for a value and 30,000 for an interval.
    scores = score(CROWD, vectors(SPACE), threshold=0.2)
    assert [m.name for m in scores.info.metrics] == ["false_match_rate", "false_non_match_rate"]
    rows = measured(scores, members(ten=np.arange(40))).filter(group="ten")
    false_matches = rows.row(by_predicate=pl.col("metric") == "false_match_rate", named=True)
    assert false_matches["n_units"] == 720
    assert false_matches["low"] < false_matches["value"] < false_matches["high"]
    of_genuine = rows.row(by_predicate=pl.col("metric") == "false_non_match_rate", named=True)
    assert of_genuine["n_units"] == 60  # ten people of four photos: six pairs each


def test_pairs_may_say_themselves_which_are_genuine():
    told = compared(SIX).with_columns(genuine=pl.Series([False, True, False, False, True, False]))
    strangers = faces([None] * 4)
    scores = score(strangers, told, threshold=0.5)
    ends = ["unit_id", "other_id"]
    same = told.select(unit_id="instance_id", other_id="other_id", genuine="genuine").sort(ends)
    assert listed(scores).select(*ends, "genuine").sort(ends).rows() == same.rows()
    assert not any("no known identity" in note for note in scores.notes)
    with pytest.raises(TableError, match="against the identities of their people"):
        score(FOUR, told, threshold=0.5)


def test_replicates_weigh_a_pair_by_both_people():
    scores = score(CROWD, vectors(SPACE), far=0.01, threshold=0.5, metrics=("false_match_rate",))
    spec = ComparisonSettings(replicates=100)
    estimates = measure_groups(scores, members(even=GROUPS["even"]), spec)
    (at,) = [k for k, m in enumerate(estimates.measures) if m.metric == "false_match_rate"]
    drawn = draw_multinomial_weights(
        build_random_generator(0, "rank bootstrap"), np.ones(30, dtype=np.int64), 100
    )
    i, j = np.triu_indices(120, 1)
    inside = (PEOPLE[i] % 2 == 0) & (PEOPLE[j] % 2 == 0) & (PEOPLE[i] != PEOPLE[j])
    i, j = i[inside], j[inside]
    weight = drawn[PEOPLE[i]] * drawn[PEOPLE[j]]
    expected = (weight * (COSINE[i, j] >= 0.5)[:, None]).sum(axis=0) / weight.sum(axis=0)
    np.testing.assert_allclose(estimates.replicates[1, at], expected)


def test_too_few_impostors_for_a_common_threshold():
    found = score(FOUR, compared(SIX))
    assert [m.name for m in found.info.metrics] == ["tar_at_far"]
    assert found.notes[-1] == (
        "m: 4 impostor pairs; a threshold at a false accept rate of 0.001 needs 1,000, so rates "
        "at one threshold were not measured."
    )
    with pytest.raises(SpecError, match="no common threshold can be set"):
        score(FOUR, compared(SIX), metrics=("false_match_rate",))


HARD = faces(
    [f"s{i // 2}" for i in range(12)],
    [
        ("pronoun", ["she", "she", "he", "he", "she", "she", "he", "he", "she", "she", None, None], None),  # noqa: E501
        ("tone", [""] * 12, [1.0, 1, 1, 1, 2, 2, 2, 3, 4, None, 1, 1]),
    ],
)  # fmt: skip


def test_hard_impostors_share_a_pronoun_and_lie_within_a_level():
    rng = np.random.default_rng(5)
    options = {"impostors": "hard", "near": "tone", "far": 0.2}
    pairs = listed(score(HARD, vectors(rng.standard_normal((12, 4))), **options))
    said = ["she"] * 2 + ["he"] * 2 + ["she"] * 2 + ["he"] * 2 + ["she"] * 2 + [None] * 2
    tone = [1, 1, 1, 1, 2, 2, 2, 3, 4, None, 1, 1]
    expected = set()
    for i, j in itertools.combinations(range(12), 2):
        known = None not in (said[i], said[j], tone[i], tone[j])
        hard = known and said[i] == said[j] and abs(tone[i] - tone[j]) <= 1
        if i // 2 == j // 2 or hard:
            expected.add((*sorted([f"f{i}", f"f{j}"]), i // 2 == j // 2))
    found = pairs.select("unit_id", "other_id", "genuine").rows()
    assert set(found) == expected
    assert len(found) == len(expected)


def test_a_pronoun_of_several_is_shared_by_any():
    both = Dataset(
        "made up", INFO, faces(["a", "b", "c"]).instances,
        pl.DataFrame(
            [("f0", "she"), ("f0", "they"), ("f1", "they"), ("f2", "he")],
            schema=["unit_id", "value"], orient="row",
        ).select(pl.lit("instance").alias("unit_kind"), "unit_id", pl.lit("pronoun").alias("attribute"), "value"),  # noqa: E501
    )  # fmt: skip
    pairs = listed(score(both, vectors(np.eye(3)), impostors="hard", near=None, far=0.5))
    assert pairs.select("unit_id", "other_id").rows() == [("f0", "f1")]


def test_pairs_drawn_within_each_group():
    """FHIBE's protocol: at most so many of either kind in each subgroup."""
    options = {"far": 0.01, "metrics": ("tar_at_far",), "threshold": 0.5}
    every = score(CROWD, vectors(SPACE), **options)
    drawn = score(CROWD, vectors(SPACE), **options, max_per_group=50)
    assert listed(drawn).drop("draw", "most").equals(listed(every))
    groups = members(tiny=np.arange(12), **GROUPS)
    rows = measured(drawn, groups, SMALL).filter(pl.col("metric") == "tar_at_far")
    # tiny: 3 people of 4, 18 genuine and 48 impostor pairs: all of them.
    impostors = [int(text.split()[1]) for text in _unstable(drawn, groups)]
    assert impostors == [50, 48, 50, 50, 50]
    full = measured(every, groups, SMALL).filter(pl.col("metric") == "tar_at_far")
    assert (rows["n_units"] <= full["n_units"]).all()
    # By hand: the 50 lowest of the draw of either kind among the group's own.
    pairs = listed(drawn)
    even = [f"f{i}" for i in GROUPS["even"]]
    own = pairs.filter(pl.col("unit_id").is_in(even) & pl.col("other_id").is_in(even))
    own = own.filter(pl.col("draw").rank().over("genuine") <= 50)
    fpr, tpr, _ = roc_curve(own["genuine"], own["similarity"], drop_intermediate=False)
    wider = score(CROWD, vectors(SPACE), **(options | {"far": 0.04}), max_per_group=50)
    found = measured(wider, groups, SMALL)
    assert value(found, "tar_at_far", "even") == pytest.approx(tpr[fpr <= 0.04].max())
    again = listed(score(CROWD, vectors(SPACE), **options, max_per_group=50, seed=1))
    assert not again["draw"].equals(pairs["draw"])
    assert again["draw"].sort().equals(pairs["draw"].sort())


def _unstable(scores, groups):
    """What every group's reason says, for a FAR that asks for more pairs than there are."""
    many = scores.evidence["pairs"].with_columns(far=pl.lit(1e-3))
    spoken = replace(scores, evidence={"pairs": many})
    rows = measured(spoken, groups, SMALL).filter(pl.col("metric") == "tar_at_far")
    assert set(rows["status"]) == {"insufficient units"}
    return ["has " + text for text in rows["reason"]]


def test_no_template_is_a_failure_and_no_row_in_the_file_is_none():
    given_vectors = vectors([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])  # and nothing of the fourth
    found = score(FOUR, given_vectors, far=0.5)
    assert found.units["value"].to_list() == [0.0, 1.0, 0.0, None]
    assert found.units["reason"].to_list() == [None, None, None, "no prediction"]
    held = listed(found).select("unit_id", "other_id", "similarity").rows()
    assert held == [("f0", "f1", None), ("f0", "f2", 0.0), ("f1", "f2", None)]
    assert any("could be made of 1 of 3 images" in note for note in found.notes)


@pytest.mark.parametrize(("metrics", "is_named"), [((), False), (("failure_rate",), True)])
def test_without_a_failure_its_rate_is_not_measured_unless_it_is_named(metrics, is_named):
    given_vectors = vectors([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])  # and nothing of the fourth
    found = score(FOUR, given_vectors, far=0.5, metrics=metrics)
    assert ("failure_rate" in [m.name for m in found.info.metrics]) == is_named
    rows = measured(found, members())
    assert ("failure_rate" in rows["metric"].to_list()) == is_named
    # Units and the reasons of those without a comparison stay.
    assert found.units["reason"].to_list() == [None, None, None, "no prediction"]
    failed = score(FOUR, vectors([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), far=0.5)
    assert "failure_rate" in measured(failed, members())["metric"].to_list()


# Ann's second picture gives no template; Cy's is like Ann's first; Bo's two are alike.
FAILING = pl.DataFrame(
    {"model": "m", "instance_id": ["a1", "a2", "b1", "b2", "c1"],
     "embedding": [[1.0, 0.0], None, [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]}
)  # fmt: skip


def failing(role=("reference", "probe", "reference", "probe", "probe")):
    ids = FAILING["instance_id"].to_list()
    people = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": [i[0] for i in ids]})
    roles = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "role", "value": list(role)}
    )
    return Dataset("made up", INFO, INSTANCES.conform(people), ATTRIBUTES.conform(roles))


def test_generalised_rates_count_comparisons_that_failed():
    generalised = ("generalised_false_accept_rate", "generalised_false_reject_rate")
    rates = ("false_match_rate", "false_non_match_rate", *generalised)
    found = score(failing(), FAILING, threshold=0.5, metrics=rates)
    value = dict(
        measured(found, members())
        .filter(pl.col("attribute").is_null()).select("metric", "value").rows()
    )  # fmt: skip
    # Ten pairs: a1a2 (failed) and b1b2 (accepted) are genuine. Of eight impostor pairs the three of
    # a2 failed; of the other five a1c1 is accepted.
    assert value["false_non_match_rate"] == 0.0
    assert value["generalised_false_reject_rate"] == 1 / 2
    assert value["false_match_rate"] == 1 / 5
    assert value["generalised_false_accept_rate"] == pytest.approx(1 / 8)
    # ISO/IEC 19795-1's product: the rate, times the share of comparisons that did not fail.
    assert value["generalised_false_accept_rate"] == pytest.approx(1 / 5 * 5 / 8)


def test_failures_to_enrol_and_to_acquire_are_told_apart():
    found = score(failing(), FAILING, threshold=0.5, enrolled="role=reference").units
    rows = {
        (m, u): r if v is None else v
        for m, u, v, r in found.select("metric", "unit_id", "value", "reason").rows()
    }
    assert rows["failure_to_acquire_rate", "a2"] == 1.0
    assert rows["failure_to_acquire_rate", "a1"] == "enrolled"
    assert rows["failure_to_enrol_rate", "a1"] == 0.0
    assert rows["failure_to_enrol_rate", "a2"] == "not enrolled"
    with pytest.raises(SpecError, match="pairs do not say of which image"):
        score(FOUR, compared(SIX), enrolled="role=reference")
    with pytest.raises(SpecError, match="nothing says which images are enrolled"):
        score(failing(), FAILING, threshold=0.5, metrics=["failure_to_enrol_rate"])


def test_models_have_thresholds_of_their_own():
    both = pl.concat([compared(SIX, "a"), compared([(i, j, s / 2) for i, j, s in SIX], "b")])
    pairs = listed(score(FOUR, both, far=0.25))
    assert pairs.group_by("model").agg(pl.col("threshold").unique()).sort("model").rows() == [
        ("a", [np.nextafter(0.5, 1)]),
        ("b", [np.nextafter(0.25, 1)]),
    ]


REFUSED = [
    ({"far": 0.0}, SpecError, "above 0, below 1"),
    ({"far": 1.0}, SpecError, "above 0, below 1"),
    ({"threshold": float("nan")}, SpecError, "a finite number"),
    ({"within": -1}, SpecError, "0 or more"),
    ({"within": 2}, SpecError, r"within would do nothing(.|\n)*impostors hard"),
    ({"same": "sex", "near": None}, SpecError, r"same and near would do nothing"),
    ({"impostors": "hard"}, SpecError, r"impostors='hard' would do nothing(.|\n)*embeddings"),
    ({"max_per_group": 0}, SpecError, "1 or more"),
    ({"max_per_group": 0}, SpecError, "1 or more"),
    ({"metrics": ("recall",)}, UnknownNameError, "no metric named 'recall'"),
    ({"identity": "name"}, UnknownNameError, "no attribute named 'name'"),
]


@pytest.mark.parametrize(("options", "error", "text"), REFUSED)
def test_settings_that_cannot_be_used(options, error, text):
    with pytest.raises(error, match=text):
        score(FOUR, compared(SIX), **options)


UNREADABLE = [
    (compared(SIX).drop("other_id"), UnknownNameError, "other_id"),
    (compared(SIX).with_columns(score=pl.lit("high")), TableError, "a similarity is a number"),
    (compared([(0, 1, float("nan"))]), TableError, r"finite similarity(.|\n)*row 1"),
    (compared(SIX).with_columns(other_id=pl.lit(None, dtype=pl.String)), TableError, "two ids"),
    (compared([(7, 8, 0.5)]), JoinError, "no pair is of two units"),
]


@pytest.mark.parametrize(("predictions", "error", "text"), UNREADABLE)
def test_pairs_that_cannot_be_read(predictions, error, text):
    with pytest.raises(error, match=text):
        score(FOUR, predictions, far=0.25)


def test_levels_that_cannot_be_told_apart():
    for numbers in (None, [0.5, 1.0, 1.0, 1.0]):
        toned = faces(["a", "a", "b", "b"], [("tone", ["x"] * 4, numbers)])
        with pytest.raises(SpecError, match="levels of 'tone' cannot be told apart"):
            score(toned, vectors(np.eye(4)), impostors="hard", same=None, near="tone")


def test_somebody_with_two_identities_is_refused():
    twice = faces(
        ["a", "a", "b", "b"], [("name", list("xyzw"), None), ("name", list("vyzw"), None)]
    )
    with pytest.raises(TableError, match=r"two identities(.|\n)*'f0'"):
        score(twice, compared(SIX), identity="name")


def test_evidence_is_small_and_comes_back_from_a_run(tmp_path, monkeypatch):
    scores = score(CROWD, vectors(SPACE), far=0.01)
    held = scores.evidence["pairs"]
    assert held["unit_id"].is_unique().all()
    assert held.select("other_id", "similarity", "genuine").estimated_size() < 12 * 7_140
    held.write_parquet(tmp_path / "pairs.parquet")
    back = pl.read_parquet(tmp_path / "pairs.parquet")
    assert back.equals(held)
    again = replace(scores, evidence={"pairs": back})
    assert measured(again, members(**GROUPS)).equals(measured(scores, members(**GROUPS)))
    monkeypatch.setattr("isolux.tasks.face_verification.embedding_pairs._CHUNK_PAIRS", 50)
    assert score(CROWD, vectors(SPACE), far=0.01).evidence["pairs"].equals(held)


def test_the_same_vectors_are_alike_wherever_they_stand():
    # Of 400 units every second one has one of three vectors; tiles of 128 cut anywhere.
    rng = np.random.default_rng(6)
    space = rng.standard_normal((400, 37))
    space[::2] = space[rng.integers(0, 3, 200) * 2]
    people = faces([f"s{i}" for i in range(400)])
    for precision in (pl.Float32, pl.Float64):
        given = vectors(space).with_columns(pl.col("embedding").cast(pl.List(precision)))
        pairs = listed(score(people, given, far=0.1))
        place = {f"f{i}": i for i in range(400)}
        a, b = (pairs[c].replace_strict(place).to_numpy() for c in ("unit_id", "other_id"))
        unit = space / np.linalg.norm(space, axis=1, keepdims=True)
        np.testing.assert_allclose(pairs["similarity"], (unit[a] * unit[b]).sum(axis=1), atol=1e-6)
        kind = {row.tobytes(): k for k, row in enumerate(np.unique(space, axis=0))}
        which = np.array([kind[row.tobytes()] for row in space])
        both = np.sort(np.column_stack([which[a], which[b]]), axis=1)
        alike = pairs.select("similarity", pair=pl.Series(both.tolist()))
        assert alike.group_by("pair").agg(pl.col("similarity").n_unique())["similarity"].max() == 1


def _told(pairs, **options):
    scores = score(FOUR_OF_SIXTY, pairs, far=0.01, **options)
    return scores, [note for note in scores.notes if isinstance(note, Caution)]


FOUR_OF_SIXTY = Dataset(
    name="x",
    info=DatasetInfo(title="x", summary="x", references=()),
    instances=pl.DataFrame(
        {
            "instance_id": [f"p{i:03}" for i in range(240)],
            "image_id": [f"p{i:03}" for i in range(240)],
            "subject_id": [f"s{i // 4:03}" for i in range(240)],
        }
    ),
)


def _distances():
    draw = np.random.default_rng(2)
    both = [(i, j) for i in range(240) for j in range(i + 1, 240)]
    return pl.DataFrame(
        {
            "model": "m",
            "instance_id": [f"p{i:03}" for i, _ in both],
            "other_id": [f"p{j:03}" for _, j in both],
            "score": [0.3 + 0.9 * (i // 4 != j // 4) + draw.normal(0, 0.2) for i, j in both],
        }
    )


def test_distances_are_told_first_and_the_option_reads_them():
    distances = _distances()
    _, said = _told(distances)
    assert "Is smaller more alike? --lower-score-means same" in said[0]
    near = distances.with_columns(score=-pl.col("score"))
    _, said = _told(near, lower_score_means="same")  # given already: it is not asked for again
    assert "Is larger more alike? Leave --lower-score-means same out" in said[0]
    wanted = ["verification_auc", "false_match_rate"]
    scores, said = _told(distances, lower_score_means="same", threshold=0.7, metrics=wanted)
    assert said == []
    turned, _ = _told(
        distances.with_columns(score=-pl.col("score")), threshold=-0.7, metrics=wanted
    )
    held = scores.evidence["pairs"]
    assert held["turned"].all()
    assert held.drop("turned").equals(turned.evidence["pairs"].drop("turned"))
    at = measured(scores, members(all=list(range(40)))).filter(metric="false_match_rate")
    assert at["threshold"].unique().to_list() == [0.7]  # as it was asked for, not turned


def test_scores_of_other_pairs_are_told_first():
    shuffled = _distances().with_columns(pl.col("score").shuffle(seed=1))
    _, said = _told(shuffled)
    assert "no better than chance" in said[0]
