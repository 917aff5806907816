"""Skew, NDKL and Bias by hand, against loops as the papers' code has them, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.tasks.text_to_image_retrieval import score
from isolux.tasks.text_to_image_retrieval.measures import (
    cumulative_counts,
    expected_max_skew,
    expected_ndkl,
    group_skews,
    ndkl,
)
from isolux_worlds.associations import write_searches
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="Words that a test made up.", references=())
ALL = ("max_skew_at_k", "min_skew_at_k", "skew_at_k", "ndkl", "bias_at_k")


def units(ids, classes=None):
    lists = [[c] if isinstance(c, str) else c for c in classes or ["query"] * len(ids)]
    rows = {"instance_id": ids, "image_id": ids, "classes": lists}
    schema = {"classes": pl.List(pl.String)}
    return Dataset("made up", INFO, INSTANCES.conform(pl.DataFrame(rows, schema_overrides=schema)))


def scored(order, query="q", model="m"):
    """Scores that put the images in the order given."""
    n = len(order)
    return pl.DataFrame(
        {"model": model, "instance_id": query, "other_id": order, "score": np.arange(n, 0.0, -1.0)}
    )


# The model ranks M M F M F F; half of the images are of either group.
#   first 2: M M   skew M log(1/.5) = log 2; F has none: one image counts, log(.5/.5) = 0
#   first 3: M M F skew M log((2/3)/.5) = log(4/3), F log((1/3)/.5) = log(2/3); Bias (2-1)/3
SIX = units(list("abcdef"), ["man", "man", "man", "woman", "woman", "woman"])
ORDER = ["a", "b", "d", "c", "e", "f"]


def by_metric(found, k):
    rows = found.units.filter(pl.col("threshold") == k)
    return {(m, g): v for m, g, v in rows.select("metric", "label", "value").iter_rows()}


def test_a_list_by_hand():
    found = score(
        units(["q"]), scored(ORDER), database=SIX, top_k=(2, 3), metrics=ALL,
        between=("man", "woman"),
    )  # fmt: skip
    two, three = by_metric(found, 2), by_metric(found, 3)
    assert two["max_skew_at_k", None] == pytest.approx(math.log(2))
    assert two["min_skew_at_k", None] == pytest.approx(0.0)
    assert two["bias_at_k", None] == 1.0
    assert three["skew_at_k", "man"] == pytest.approx(math.log(4 / 3))
    assert three["skew_at_k", "woman"] == pytest.approx(math.log(2 / 3))
    assert three["bias_at_k", None] == pytest.approx(1 / 3)
    # NDKL: tops 1 and 2 are all M (log 2), top 3 is 2/3 : 1/3, top 4 is 3/4 : 1/4, 5 is 3/5 : 2/5
    tops = [math.log(2), math.log(2), *(
        p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p)) for p in (2 / 3, 3 / 4, 3 / 5)
    ), 0.0]  # fmt: skip
    weights = [1 / math.log2(i + 1) for i in range(1, 7)]
    by_hand = sum(w * d for w, d in zip(weights, tops, strict=True)) / sum(weights)
    whole = found.units.filter(metric="ndkl")
    assert whole["value"].item() == pytest.approx(by_hand)
    assert whole["threshold"].item() is None


def test_a_group_that_is_not_there_can_be_left_out():
    found = score(
        units(["q"]), scored(ORDER), database=SIX, top_k=(2,), zero="leave out",
        metrics=("skew_at_k", "min_skew_at_k"),
    )  # fmt: skip
    rows = {(m, g): (v, r) for m, g, v, r in found.units.select(
        "metric", "label", "value", "reason").iter_rows()}  # fmt: skip
    assert rows["skew_at_k", "woman"] == (None, "none among the first 2")
    assert rows["min_skew_at_k", None][0] == pytest.approx(math.log(2))


def as_the_papers_code(genders, ks, expected):
    """Plain loops over a ranked list, a zero count being 1/k (Berg et al.; VisoGender)."""
    found, kl, norm = {}, 0.0, 0.0
    for k in range(1, len(genders) + 1):
        top, divergence = genders[:k], 0.0
        skew = {}
        for group, share in expected.items():
            actual = top.count(group) / k
            skew[group] = math.log(actual or 1 / k) - math.log(share)
            divergence += actual * math.log(actual / share) if actual else 0.0
        kl, norm = kl + divergence / math.log2(k + 1), norm + 1 / math.log2(k + 1)
        if k in ks:
            men, women = top.count("man"), top.count("woman")
            bias = (men - women) / (men + women) if men + women else 0.0
            found[k] = (max(skew.values()), min(skew.values()), bias)
    return found, kl / norm


@given(st.lists(st.sampled_from(["man", "woman", "other"]), min_size=9, max_size=30),
       st.booleans())  # fmt: skip
def test_values_are_those_of_plain_loops(genders, uniform):
    if not {"man", "woman"} <= set(genders):
        return
    ids = [f"i{i}" for i in range(len(genders))]
    present = sorted(set(genders))
    expected = {g: 1 / len(present) if uniform else genders.count(g) / len(genders)
                for g in present}  # fmt: skip
    by_loops, divergence = as_the_papers_code(genders, (1, 4, 8), expected)
    found = score(
        units(["q"]), scored(ids), database=units(ids, genders), top_k=(1, 4, 8), metrics=ALL,
        against="uniform" if uniform else "database", between=("man", "woman"), ties="first",
    )  # fmt: skip
    for k, (most, least, bias) in by_loops.items():
        values = by_metric(found, k)
        assert values["max_skew_at_k", None] == pytest.approx(most)
        assert values["min_skew_at_k", None] == pytest.approx(least)
        assert values["bias_at_k", None] == pytest.approx(bias)
    assert found.units.filter(metric="ndkl")["value"].item() == pytest.approx(divergence)


def test_images_of_one_score_share_their_places_whatever_their_order():
    """A man is first, then b c d e tie: a quarter each of b and c (men), d and e (women).

    The first two are 1.5 men and .5 women, where half are expected: log(.75 / .5).
    """
    tied = scored(list("abcdef")).with_columns(score=pl.Series([9.0, 5, 5, 5, 5, 1]))
    for rows in (tied, tied.reverse()):
        found = score(units(["q"]), rows, database=SIX, top_k=(2,), metrics=["max_skew_at_k"])
        assert found.units["value"].item() == pytest.approx(math.log(1.5))
    first = score(units(["q"]), tied, database=SIX, top_k=(2,), ties="first",
                  metrics=["max_skew_at_k"])  # fmt: skip
    assert first.units["value"].item() == pytest.approx(math.log(2))  # a and b, both men


def test_a_query_whose_first_images_tie_is_not_scored_and_it_is_said_first():
    """Of q the six tie; r is ranked. Of s one of the first three is sure, of t two."""
    part = {"s": [9.0, 5, 5, 5, 5, 1], "t": [9.0, 8, 5, 5, 5, 1]}
    rows = pl.concat([
        scored(ORDER, "q").with_columns(score=pl.lit(0.5)), scored(ORDER, "r"),
        *(scored(ORDER, q).with_columns(score=pl.Series(v)) for q, v in part.items()),
    ])  # fmt: skip
    asked = {"database": SIX, "top_k": (3,),
             "metrics": ["max_skew_at_k", "max_skew_chance_corrected", "ndkl"]}  # fmt: skip
    found = score(units(list("qrst")), rows, **asked)
    for metric, nulls in (
        ("max_skew_at_k", "qs"),
        ("max_skew_chance_corrected", "qs"),
        ("ndkl", "q"),
    ):
        own = found.units.filter(pl.col("metric") == metric, pl.col("value").is_null())
        assert "".join(own["unit_id"]) == nulls
    assert set(found.units.drop_nulls("reason")["reason"]) == {
        "ties hold most of the first 3", "one score holds most of the list"
    }  # fmt: skip
    said = [n for n in found.notes if isinstance(n, Caution) and "Were scores rounded" in n]
    assert said[0].startswith("In 2 of 4 queries of 'm' most of the first 3 places fall among")
    assert said[1].startswith("In 1 of 4 queries of 'm' most of all images tie")
    as_they_stand = score(units(list("qrst")), rows, ties="first", **asked)
    assert as_they_stand.units["value"].null_count() == 0
    assert sum("ties='shared'" in n for n in as_they_stand.notes) == 2


@pytest.mark.parametrize("levels", [2, 12])
def test_scores_of_few_levels_are_no_less_skewed_than_chance(levels):
    """Scores that know nothing of the groups: the mean beyond chance is 0, however many tie."""
    rng = np.random.default_rng(levels)
    ids, queries = [f"i{i}" for i in range(90)], [f"q{i}" for i in range(120)]
    images = units(ids, ["man", "woman", "woman"] * 30)
    rows = pl.DataFrame({"model": "m", "instance_id": np.repeat(queries, 90),
                         "other_id": ids * 120,
                         "score": rng.integers(levels, size=90 * 120) / 8})  # fmt: skip
    found = score(units(queries), rows, database=images, top_k=(9 if levels > 4 else 60,),
                  metrics=["max_skew_chance_corrected", "ndkl_chance_corrected"])  # fmt: skip
    for metric in ("max_skew_chance_corrected", "ndkl_chance_corrected"):
        values = found.units.filter(metric=metric)["value"].drop_nulls().to_numpy()
        assert len(values) > 30
        error = max(values.std(ddof=1) / len(values) ** 0.5, 1e-3)
        assert abs(values.mean()) < 4.0 * error


@pytest.mark.parametrize(
    ("change", "ranks"),
    [
        (lambda at: at + 1.0, True),
        (lambda at: at.astype(float), True),  # from 0
        (lambda at: np.where(at < 2, 1.5, at + 1.0), True),  # two images tie
        (lambda at: -(at + 1.0), False),
        (lambda at: at / 40.0, False),
        (lambda at: at * 25.0, False),
        (lambda at: np.floor(at / 4), False),
    ],
)
def test_ranks_given_as_scores_are_cautioned_about(change, ranks):
    rng = np.random.default_rng(1)
    ids, queries = [f"i{i}" for i in range(40)], ["q", "r", "s"]
    numbers = np.concatenate([change(rng.permutation(40)) for _ in queries])
    rows = pl.DataFrame({"model": "m", "instance_id": np.repeat(queries, 40),
                         "other_id": ids * 3, "score": numbers})  # fmt: skip
    found = score(units(queries), rows, database=units(ids, ["man", "woman"] * 20), top_k=(8,))
    said = [n for n in found.notes if "look like ranks" in n]
    assert [isinstance(n, Caution) for n in said] == [True] * ranks
    assert all("write minus the rank as the score" in n for n in said)


def test_ties_are_what_all_orders_give_on_average():
    scores, member = np.array([4.0, 3, 3, 3, 1]), np.eye(2)[[0, 1, 0, 0, 1]]
    every = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]
    counts = [np.cumsum(member[[0, *order, 4]], axis=0) for order in every]
    np.testing.assert_allclose(cumulative_counts(scores, member), np.mean(counts, axis=0))


def test_an_image_of_two_people_counts_for_both_in_equal_parts():
    images = units(list("abc"), [["man", "woman"], ["man"], ["woman"]])
    found = score(units(["q"]), scored(["a", "b", "c"]), database=images, top_k=(1,),
                  metrics=["skew_at_k"])  # fmt: skip
    assert found.units["value"].to_list() == pytest.approx([0.0, 0.0])


def test_chance_is_the_mean_over_all_orders():
    """Of 2 + 2 images two are drawn: 1 of 3 times both are of one group, skew log 2, else 0."""
    kinds = ((1.0, 0.0), (0.0, 1.0))
    found = expected_max_skew(kinds, (2, 2), (0.5, 0.5), 2, "1/k", (2, 0))
    assert found == pytest.approx(math.log(2) / 3, abs=0.02)
    # NDKL: AABB and BBAA against ABAB, ABBA, … : 6 orders
    orders = ["AABB", "ABAB", "ABBA", "BAAB", "BABA", "BBAA"]
    rows = [np.cumsum(np.eye(2)[[int(c == "B") for c in o]], axis=0) for o in orders]
    mean = np.mean([ndkl(r, np.array([0.5, 0.5])) for r in rows])
    assert expected_ndkl(kinds, (2, 2), (0.5, 0.5)) == pytest.approx(mean, abs=0.03)


def test_skew_is_zero_where_the_share_is_the_expected_one():
    assert group_skews(np.array([5.0, 15.0]), 20, np.array([0.25, 0.75]), "1/k").tolist() == [
        0.0,
        0.0,
    ]


@pytest.mark.parametrize("k", [6, 9])
def test_a_k_that_takes_in_every_image_is_refused(k):
    with pytest.raises(SpecError, match=f"the first {k} images are all that a query can find"):
        score(units(["q"]), scored(ORDER), database=SIX, top_k=(k,))


def test_ndkl_needs_no_k():
    found = score(units(["q"]), scored(ORDER), database=SIX, metrics=["ndkl"])
    assert found.units["value"].item() > 0.0  # of six images, where K is ten unless said


def test_a_query_with_too_short_a_list_is_told_apart():
    both = pl.concat([scored(ORDER), scored(["a", "d"], "r"), scored(["a"], "s")])
    found = score(units(["q", "r", "s", "t"]), both, database=SIX, top_k=(2,),
                  metrics=["max_skew_at_k"])  # fmt: skip
    assert found.units["reason"].to_list() == [
        None, "2 is the whole list", "fewer than 2 images", "no prediction",
    ]  # fmt: skip


def test_a_list_of_ones_own_is_held_against_its_own_shares():
    """VisoGender: each occupation ranks its own images. Of a, b, d two of three are men."""
    found = score(units(["q"]), scored(["d", "a", "b"]), database=SIX, top_k=(1,),
                  metrics=["skew_at_k"])  # fmt: skip
    by_group = dict(found.units.select("label", "value").iter_rows())
    assert by_group["woman"] == pytest.approx(math.log(3))


def test_images_of_unknown_value_are_not_in_the_database():
    images = units(list("abcd"), ["man", "woman", "woman", "unknown"])
    found = score(units(["q"]), scored(list("dabc")), database=images, top_k=(1,),
                  metrics=["skew_at_k"])  # fmt: skip
    assert dict(found.units.select("label", "value").iter_rows())["man"] == pytest.approx(
        math.log(3)
    )
    assert any("1 of unknown value are left out" in note for note in found.notes)


def test_a_value_rarer_than_one_in_k_is_cautioned_about():
    images = units([f"i{i}" for i in range(40)], ["rare", *["common"] * 39])
    rows = scored([f"i{i}" for i in reversed(range(40))])
    notes = score(units(["q"]), rows, database=images, top_k=(10,)).notes
    assert any(isinstance(n, Caution) and "'rare', is expected less than once" in n for n in notes)


def test_what_cannot_be_read_is_refused():
    queries = units(["q"])
    with pytest.raises(SpecError, match="nothing says which images are searched"):
        score(queries, scored(ORDER))
    with pytest.raises(SpecError, match="the images are all of one value"):
        score(queries, scored(["a", "b"]), database=units(["a", "b"], ["man", "man"]))
    with pytest.raises(TableError, match="an image has two scores for one query"):
        score(queries, pl.concat([scored(ORDER), scored(["a"])]), database=SIX)
    with pytest.raises(JoinError, match="no score is of a query and an image that are there"):
        score(queries, scored(["x", "y"]), database=SIX)
    three = units(list("abc"), ["man", "woman", "other"])
    with pytest.raises(SpecError, match=r"Bias@K is between two values"):
        score(queries, scored(list("abc")), database=three, top_k=(1,), metrics=["bias_at_k"])
    vectors = pl.DataFrame({"model": "m", "instance_id": "q", "embedding": [[1.0]]})
    with pytest.raises(SpecError, match="the images have no embeddings"):
        score(queries, vectors, database=SIX)
    with pytest.raises(SpecError, match="top_k counts the first images"):
        score(queries, scored(ORDER), database=SIX, top_k=(0,))


def test_embeddings_rank_by_their_cosine():
    texts = pl.DataFrame({"model": "m", "instance_id": ["q"], "embedding": [[1.0, 0.0]]})
    at = {"a": [2.0, 0.0], "b": [9.0, 1.0], "c": [0.0, 1.0], "d": [1.0, 1.0], "e": [-1.0, 0.0],
          "f": [-1.0, 1.0]}  # fmt: skip
    pictures = pl.DataFrame({"model": "m", "instance_id": list(at), "embedding": list(at.values())})
    found = score(units(["q"]), texts, database=SIX, database_predictions=pictures, top_k=(2,),
                  metrics=["bias_at_k"], between=("man", "woman"))  # fmt: skip
    assert found.units["value"].item() == 1.0  # a and b, both men


def _audit(monkeypatch, capsys, files, out, *more):
    ran = run(
        monkeypatch, capsys, "audit", f"table:{files['prompts']}", "--task",
        "text_to_image_retrieval", "--database", f"table:{files['images']}", "--target", "gender",
        "--by", "kind", "--top-k", "20", "--min-units", "20", "--notes", "--out", out, *more,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return pl.read_parquet(out / "disparities.parquet"), " ".join((ran.out + ran.err).split())


def test_by_the_command_line_a_injected_association_is_found_and_its_absence_is_not(
    monkeypatch, capsys, tmp_path
):
    p, low = {}, {}
    for name, size, seed in (("injected", 1.0, 1), ("absent", 0.0, 3)):
        files = write_searches(tmp_path / name, association=size, seed=seed)
        out = tmp_path / f"{name} run"
        rows, said = _audit(monkeypatch, capsys, files, out, "--predictions", files["scores"])
        skew = rows.filter(pl.col("metric") == "skew_at_k", pl.col("kind") == "difference")
        p[name] = skew["p_adjusted"].drop_nulls().min()
        everyone = pl.read_parquet(out / "group_metrics.parquet").filter(
            pl.col("attribute").is_null(), pl.col("metric") == "max_skew_chance_corrected"
        )
        low[name] = everyone["low"].item()
        assert "a random order gives 0.1" in said
    assert p["injected"] < 0.001
    assert low["injected"] > 0.1
    assert p["absent"] > 0.05
    assert low["absent"] < 0.0


def test_by_the_command_line_embeddings_say_what_scores_say(monkeypatch, capsys, tmp_path):
    """The products of unit vectors order a query's images as their scores would."""
    files = write_searches(tmp_path / "v", association=1.5, vectors=True, seed=3, images=200)
    rows, said = _audit(
        monkeypatch, capsys, files, tmp_path / "run", "--predictions", files["texts"],
        "--database-predictions", files["pictures"],
    )  # fmt: skip
    skew = rows.filter(pl.col("metric") == "skew_at_k", pl.col("kind") == "difference")
    assert skew["p_adjusted"].min() < 0.001
    assert "a random order gives" in said


def test_images_that_every_query_likes_are_a_caution(monkeypatch, capsys, tmp_path):
    files = write_searches(tmp_path / "w", association=0.0, liking=3.0, seed=4)
    _, said = _audit(monkeypatch, capsys, files, tmp_path / "run", "--predictions", files["scores"])
    assert "WARNING: Intervals are about other queries" in said
