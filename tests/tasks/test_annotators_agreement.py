"""Annotators' agreement: items, circles of annotators, sets of answers, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

import isolux
from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP
from isolux.groups.measure import measure_groups
from isolux.tasks.agreement import score


def items(*names: str) -> Dataset:
    info = DatasetInfo(title="Photos", summary="Photos.", references=())
    rows = pl.DataFrame({"instance_id": list(names), "image_id": list(names)})
    return Dataset(name="photos", info=info, instances=rows)


def said(*rows: str, **columns: list[str]) -> pl.DataFrame:
    """``"a x adult"``: of item a, annotator x said adult."""
    parts = [row.split(" ", 2) for row in rows]
    frame = pl.DataFrame(parts, schema=["instance_id", "annotator", "label"], orient="row")
    return frame.with_columns(**{k: pl.Series(v) for k, v in columns.items()})


def values(scores, metric: str) -> dict[str, float | None]:
    rows = scores.units.filter(metric=metric)
    return dict(rows.select("unit_id", "value").iter_rows())


def test_pairs_of_annotators_who_agree():
    """Three annotators are three pairs: a has one that agrees, b three, c has one annotator."""
    given = said("a x 1", "a y 1", "a z 2", "b x 2", "b y 2", "b z 2", "c x 1")
    found = score(items("a", "b", "c"), given, metrics=("pairwise_agreement", "unanimity_rate"))
    assert values(found, "pairwise_agreement") == {"a": pytest.approx(1 / 3), "b": 1.0, "c": None}
    assert values(found, "unanimity_rate") == {"a": 0.0, "b": 1.0, "c": None}
    reasons = found.units.filter(pl.col("value").is_null())["reason"].unique().to_list()
    assert reasons == ["fewer than two answers"]


def test_pairs_of_numbers_within_one():
    # a: of 1, 2, 3 two pairs of three are within one; b: 4 and 4; c: 1.1 and 2.1 are one apart,
    # though 2.1 - 1.1 is 1.0000000000000002; d: one answer; e: 2 and 4 are two apart, although no
    # answer lies between them.
    given = said("a x 1", "a y 2", "a z 3", "b x 4", "b y 4", "c x 1.1", "c y 2.1", "d x 1",
                 "e x 6", "e y 8")  # fmt: skip
    for scale in ("ordinal", "interval"):
        found = score(items(*"abcde"), given, scale=scale, metrics=["within_one"])
        assert values(found, "within_one") == {
            "a": pytest.approx(2 / 3), "b": 1.0, "c": 1.0, "d": None, "e": 0.0
        }  # fmt: skip


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_weighted_kappa_of_a_group_with_its_interval(weights):
    # Ratings 1, 2, 4 and 7: places on an ordinal scale, as scikit-learn; numbers on an interval
    # one. Two groups, of which one is rated more alike.
    rng = np.random.default_rng(8)
    n, levels = 300, np.array([1.0, 2.0, 4.0, 7.0])
    first = rng.integers(0, 4, n)
    group = np.array(["a", "b"])[rng.integers(0, 2, n)]
    is_moved = rng.random(n) < np.where(group == "a", 0.2, 0.6)
    second = np.clip(first + rng.integers(-1, 2, n) * is_moved, 0, 3)
    ids = [f"i{k:03}" for k in range(n)]
    given = pl.concat([
        pl.DataFrame({"instance_id": ids, "annotator": name,
                      "label": [f"{levels[c]:g}" for c in k]})
        for name, k in (("x", first), ("y", second))
    ])  # fmt: skip
    members = pl.DataFrame({"unit_id": ids, "attribute": "g", "group": group}).sort("group")
    membership = MEMBERSHIP.conform(members.with_columns(values=pl.concat_list("group")))
    metric = f"{weights}_weighted_kappa"
    for scale in ("ordinal", "interval"):
        scores = score(items(*ids), given, scale=scale, metrics=[metric])
        table = measure_groups(scores, membership, Statistics(replicates=3_000)).to_table()
        for name in "ab":
            row = table.filter(group=name).row(0, named=True)
            x, y = (codes[group == name] for codes in (first, second))
            expected = cohen_kappa_score(x, y, labels=range(4), weights=weights)
            if scale == "interval":
                power = {"linear": 1, "quadratic": 2}[weights]
                apart = np.abs(levels[x] - levels[y]) ** power
                of_all = np.abs(levels[x][:, None] - levels[y][None, :]) ** power
                expected = 1.0 - apart.mean() / of_all.mean()
            else:
                # statsmodels: the asymptotic standard error of Fleiss, Cohen and Everitt (1969).
                crossed = np.zeros((4, 4))
                np.add.at(crossed, (x, y), 1)
                own = inter_rater.cohens_kappa(crossed, wt=weights)
                assert row["standard_error"] == pytest.approx(own.std_kappa, rel=0.08)
            assert row["value"] == pytest.approx(expected, abs=1e-12)
            assert row["low"] < expected < row["high"]


def test_two_annotators_of_three_may_be_chosen():
    given = said("a x 1", "a y 1", "a z 2", "b x 1", "b y 2", "b z 2", "c x 2", "c y 2", "c z 1",
                 "d x 2", "d y 2", "d z 2")  # fmt: skip
    pairs = {}
    for two in ("xy", "xz", "yz"):
        found = score(items(*"abcd"), given, metrics=["cohen_kappa"], only_annotators=list(two))
        statistic = found.info.metric("cohen_kappa").statistic
        assert found.evidence["answers"]["model"].unique().to_list() == [f"{two[0]} and {two[1]}"]
        pairs[two] = float(statistic(found.evidence["answers"], np.ones(4)))
    # The answers of a to d: x 1 1 2 2, y 1 2 2 2, z 2 2 1 2.
    by_name = {"x": [1, 1, 2, 2], "y": [1, 2, 2, 2], "z": [2, 2, 1, 2]}
    expected = {t: cohen_kappa_score(by_name[t[0]], by_name[t[1]]) for t in pairs}
    assert pairs == pytest.approx(expected, abs=1e-12)
    with pytest.raises(UnknownNameError, match="'w'"):
        score(items(*"abcd"), given, only_annotators=["w"])


def test_an_empty_answer_is_none_and_a_word_may_be():
    given = said("a x 1", "a y  ", "b x 1", "b y Unsure", "b z 1")
    found = score(items("a", "b"), given, metrics="unanimity_rate", ignored_answers=("unsure",))
    assert values(found, "unanimity_rate") == {"a": None, "b": 1.0}
    assert (
        values(score(items("a", "b"), given, metrics="unanimity_rate"), "unanimity_rate")["b"]
        == 0.0
    )


def test_circles_of_annotators():
    """Those of the north agree, those of the south do not, and the west has one alone."""
    given = said(
        "a x 1", "a y 1", "a u 1", "a v 2", "a w 2",
        region=["north", "north", "south", "south", "west"],
    )  # fmt: skip
    found = score(items("a"), given, metrics="unanimity_rate", annotators_by="region")
    rows = dict(found.units.select("model", "value").iter_rows())
    assert rows == {"all annotators": 0.0, "region: north": 1.0, "region: south": 0.0}
    assert any(isinstance(note, Caution) and "west" in note for note in found.notes)


def test_sets_of_answers_share_what_both_hold():
    """x says {hat, glasses}, y {hat}, z {scarf}: indices 1/2, 0 and 0, their mean 1/6."""
    given = said("a x hat", "a x glasses", "a y hat", "a z scarf")
    found = score(items("a"), given)
    assert values(found, "mean_jaccard") == {"a": pytest.approx(1 / 6)}
    with pytest.raises(SpecError, match=r"(?s)several answers.*'x' about 'a'"):
        score(items("a"), given, metrics=("alpha_nominal",))


def test_a_few_second_answers_are_no_sets():
    """One of 20 pairs of item and annotator has two answers: two versions, not a set."""
    rows = [f"{k} {who} {k % 3}" for k in range(10) for who in "xy"]
    with pytest.raises(SpecError, match="several answers"):
        score(items(*map(str, range(10))), said(*rows, "0 x 2"))


def test_numbers_taken_as_names_are_told():
    given = said(*(f"{i} {who} {n}" for i in "abcd" for who, n in zip("xy", "1239", strict=False)))
    given = given.with_columns(label=pl.Series(["1", "2", "3", "4", "1", "2", "3", "9"]))
    found = score(items(*"abcd"), given)
    assert any("--option scale=ordinal" in note for note in found.notes)
    taken = score(items(*"abcd"), given, scale="ordinal")
    assert not any("scale=" in note for note in taken.notes)
    assert [m.name for m in taken.info.metrics] == ["alpha_ordinal", "pairwise_agreement"]


def test_many_items_with_one_answer_are_a_caution():
    found = score(items(*"abcde"), said("a x 1", "a y 1", "b x 1", "c y 1"))
    (told,) = [note for note in found.notes if "fewer than two" in note]
    assert isinstance(told, Caution)
    assert told.startswith("4 of 5 items")


@pytest.mark.parametrize(
    ("given", "settings", "error", "words"),
    [
        (said("a x 1").drop("annotator"), {}, UnknownNameError, "annotator"),
        (said("a x 1").with_columns(annotator=pl.lit(None)), {}, TableError, "no annotator"),
        (said("q x 1", "q y 1"), {}, JoinError, "no answer is about an item"),
        (said("a x 1", "a y few"), {"scale": "interval"}, TableError, "not numbers.*'few'"),
        (said("a x 1", "a y 1"), {"metrics": ("alpha_ordinal",)}, SpecError, "another scale"),
        (said("a x 1", "a y 1"), {"metrics": ("kappa",)}, UnknownNameError, "kappa"),
        (said("a x 1", "a y 1"), {"annotators_by": "place"}, UnknownNameError, "place"),
        (
            said("a x 1", "a y 1", "b x 1", "b y 2", "b z 1"),
            {"metrics": ("fleiss_kappa",)}, SpecError, "2 to 3 answers",
        ),
        (
            said("a x 1", "a y 1", "b x 1", "b z 2"),
            {"metrics": ("cohen_kappa",)}, SpecError, "two annotators.*3 annotators",
        ),
        (
            said("a x 1", "a y 1", "b x 1", "b z 2"),
            {"metrics": ("linear_weighted_kappa",), "scale": "ordinal"},
            SpecError, "two annotators.*3 annotators",
        ),
        (
            said("a x 1", "a y 1"), {"metrics": ("cohen_kappa",), "scale": "interval"},
            SpecError, "another scale.*quadratic_weighted_kappa.*scale=interval",
        ),
        (
            said("a x 1", "a y 1"), {"metrics": ("fleiss_kappa",), "scale": "ordinal"},
            SpecError, "another scale.*alpha_ordinal",
        ),
        (
            said("a x 1", "a y 1"), {"metrics": ("within_one",)},
            SpecError, "another scale.*scale=ordinal or interval.*scale=nominal",
        ),
        (
            said("a x 1", "b x 1", region=["n", "s"]),
            {"annotators_by": "region"}, TableError, "two groups.*'x'",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(given, settings, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        score(items("a", "b"), given, **settings)


def test_too_many_different_answers_are_refused():
    given = said(*(f"{i} {who} word{i}{who}" for i in range(300) for who in "xy"))
    with pytest.raises(SpecError, match="600 different answers"):
        score(items(*map(str, range(300))), given)


def test_a_report_speaks_of_annotators_not_of_a_model(tmp_path):
    """About b annotators guess, about a they agree: the first sentence says whom they differ on."""
    rng = np.random.default_rng(1)
    rows = ["photo,tone,rater,label"]
    for photo in range(400):
        tone, truth = "ab"[photo % 2], rng.integers(3)
        said = [truth] * 3 if tone == "a" else rng.integers(0, 3, 3)
        rows += [f"p{photo},{tone},r{k},{label}" for k, label in enumerate(said)]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join([*rows, ""]))
    done = isolux.audit(f"ratings:{path}", by="tone", task="agreement", replicates=200)
    html = done.report(tmp_path / "run").read_text()
    assert "Annotators agree less about people with tone = b than" in html
    assert "model serves" not in html
    value = done.group_metrics.filter(metric="alpha_nominal", group="a")["value"].item()
    assert value == 1.0


def test_a_single_annotator_has_no_one_to_agree_with():
    found = score(items("a", "b"), said("a x 1", "b x 2"))
    first = found.notes[0]
    assert isinstance(first, Caution)
    assert first.startswith("No item has two answers of all annotators: there is nothing to agree")


def test_numbers_that_cannot_be_squared_are_refused():
    given = said("a x 1e308", "a y -1e308", "b x 1", "b y 2")
    with pytest.raises(TableError, match=r"2 answer\(s\) are too large to be compared"):
        score(items("a", "b"), given, scale="interval")
    with np.errstate(all="raise"):
        score(items("a", "b"), given.with_columns(pl.col("label").str.replace("308", "99")),
              scale="interval")  # fmt: skip
