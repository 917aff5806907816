"""Any number of models: values as the audits', pairs as two runs', seeds by Cochran, the files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import isolux
from isolux.core.errors import JoinError, OutputError, SpecError
from isolux.report.side_by_side import format_latex_table
from tests.cli._run import isolux as run

SETTINGS = {"min_units": 5, "min_clusters": 5, "replicates": 400}


def audited(name, values, *, prefix="", label=None):
    n = len(values)
    ids = [f"{prefix}p{i}" for i in range(n)]
    scores = pl.DataFrame({"unit_id": ids, "value": values, "model": [name] * n})
    if label is not None:
        scores = scores.with_columns(label=pl.Series(label))
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * (n // 2)})
    return isolux.audit(scores, who, by="tone", **SETTINGS)


def drawn(seed, rate_a, rate_b, n=600):
    rates = np.tile([rate_a, rate_b], n // 2)
    return (np.random.default_rng(seed).random(n) < rates).astype(float).tolist()


def test_values_are_those_of_each_audit_on_the_people_of_all():
    one, two, three = (audited(name, drawn(i, 0.8, 0.6)) for i, name in enumerate("xyz"))
    found = isolux.side_by_side([one, two, three]).values
    for name, alone in (("x", one), ("y", two), ("z", three)):
        ours = found.filter(model=name).select("group", "value", "low", "high")
        theirs = alone.group_metrics.select("group", "value", "low", "high")
        for column in ("value", "low", "high"):
            assert ours[column].to_list() == pytest.approx(theirs[column].to_list())


def test_those_whom_a_run_gave_no_value_are_not_counted_as_judged():
    whole = [drawn(i, 0.8, 0.6, n=60) for i in range(3)]
    whole[1][:4] = [None] * 4
    runs = [audited(name, values) for name, values in zip("xyz", whole, strict=True)]
    notes = isolux.side_by_side(runs).record["notes"]
    said = "56 people were judged by all 3 runs. 4 more are in all of them"
    assert any(note.startswith(said) for note in notes)


def test_each_pair_is_compared_as_two_runs_are():
    runs = [audited(name, drawn(i, 0.8, 0.6 + 0.05 * i)) for i, name in enumerate("xyz")]
    found = isolux.side_by_side(runs).changes
    pairs = found.select("model_a", "model_b", "next").unique().sort("model_a", "model_b")
    assert pairs.rows() == [("x", "y", True), ("x", "z", False), ("y", "z", True)]
    alone = isolux.compare(runs[0], runs[2]).disparities
    ours = found.filter(model_a="x", model_b="z")
    for column in ("value", "low", "high"):
        # Groups' replicates are drawn anew: a gap's ends move a little.
        assert ours[column].to_list() == pytest.approx(alone[column].to_list(), abs=0.01)
    # Signs are flipped anew: 400 flips leave a p to three hundredths. Three pairs: p over them all.
    ours, alone = (rows.filter(kind="model_difference") for rows in (ours, alone))
    assert ours["p_value"].to_list() == pytest.approx(alone["p_value"].to_list(), abs=0.08)
    times = [min(1.0, 3 * p) for p in alone["p_adjusted"].to_list()]
    assert ours["p_adjusted"].to_list() == pytest.approx(times, abs=0.25)
    assert max(ours["p_adjusted"].to_list()) == 1.0


def test_a_gap_that_grew_and_one_that_shrank_are_named():
    runs = [audited("even", drawn(1, 0.8, 0.8)), audited("apart", drawn(2, 0.9, 0.5)),
            audited("again", drawn(3, 0.8, 0.8))]  # fmt: skip
    found = isolux.side_by_side(runs).changes.filter(kind="gap_change")
    words = {(a, b): w for a, b, w in found.select("model_a", "model_b", "word").iter_rows()}
    assert words["even", "apart"] == "grew"
    assert words["apart", "again"] == "shrank"
    assert words["even", "again"] == "not shown"


def test_a_gap_that_grew_is_found_over_three_seeds_and_two():
    """Seeds of each model agree: few of them on one side do not hide 30 points."""
    even = [audited("even", drawn(k, 0.9, 0.9)) for k in range(3)]
    apart = [audited("apart", drawn(k, 0.95, 0.6)) for k in (10, 11)]
    found = isolux.side_by_side({"even": even, "apart": apart}).changes
    gap = found.filter(kind="gap_change").row(0, named=True)
    assert gap["word"] == "grew"
    assert gap["low"] < 0.35 < gap["high"]


def cochran(shared, between, freedom):
    z, t = stats.norm.ppf(0.975), stats.t.ppf(0.975, freedom)
    return (shared * z + between * t) / (shared + between) ** 0.5


def test_runs_that_are_all_right_are_no_surer_than_one_of_them():
    """60 of 60 in three runs: nobody differs and no seed does, yet 60 people are 60 people."""
    wrong = [[float(k != at) for k in range(120)] for at in (0, 2, 4)]  # each once, in group a
    runs = [audited("m", one) for one in wrong]
    other = audited("o", [1.0] * 120)
    found = isolux.side_by_side({"m": runs, "o": other})
    ours, theirs = (found.values.filter(model=name, group="b").row(0, named=True) for name in "mo")
    assert (ours["low"], ours["high"]) == (pytest.approx(theirs["low"]), 1.0)
    assert ours["low"] < 0.95
    # In a three runs are wrong of three people among 180 answers: Wilson's interval of those.
    a = found.values.filter(model="m", group="a").row(0, named=True)
    z2, n, p = stats.norm.ppf(0.975) ** 2, 180, 177 / 180
    centre, half = (p + z2 / 2 / n), (z2 * (p * (1 - p) / n + z2 / 4 / n**2)) ** 0.5
    assert a["low"] == pytest.approx((centre - half) / (1 + z2 / n), abs=0.005)
    # One run of 59 of 60 reaches up to .99705 by Wilson and .99958 by Clopper and Pearson, whose
    # weight is 1 - 1 / 28.81: .99949. Of three runs it is 1 / sqrt(3) as far in logits.
    value, end = np.log(p / (1 - p)), np.log(0.99949 / 0.00051)
    assert a["high"] == pytest.approx(1 / (1 + np.exp(-value - (end - value) / 3**0.5)), abs=5e-4)
    change = found.changes.filter(kind="model_difference", group_a="b").row(0, named=True)
    assert change["value"] == 0.0
    assert change["low"] < -0.03
    assert change["high"] > 0.03
    assert change["p_value"] == 1.0


def test_p_and_interval_of_a_change_are_one_statement():
    """At the level 1 - p the interval ends at 0: at .95 it leaves 0 out where p is below .05."""
    for seed in range(4):
        one = [audited("m", drawn(100 * seed + i, 0.6, 0.6, 200)) for i in range(2)]
        two = [audited("n", drawn(900 + 100 * seed + i, 0.75, 0.7, 200)) for i in range(3)]
        rows = isolux.side_by_side({"m": one, "n": two}).changes.filter(kind="model_difference")
        for row in rows.iter_rows(named=True):
            assert (row["p_value"] <= 0.05) == (row["low"] > 0 or row["high"] < 0), row


def test_several_runs_are_one_model_with_the_variance_between_seeds():
    """The mean of four runs; what the runs share of people, and s squared over four.

    Shared: the mean covariance of two runs' scores, over 600. Cochran: (shared z + between t(3)) /
    sqrt(shared + between).
    """
    shift = [0.0, 0.1, -0.1, 0.2]
    values = [drawn(10 + i, 0.6 + d, 0.6 + d) for i, d in enumerate(shift)]
    seeds = [audited("m", v) for v in values]
    found = isolux.side_by_side({"m": seeds, "other": audited("o", drawn(99, 0.7, 0.7))}).values
    row = found.filter(model="m", group="overall").row(0, named=True)
    means = np.array([np.mean(v) for v in values])
    assert row["value"] == pytest.approx(means.mean())
    assert row["seed_sd"] == pytest.approx(means.std(ddof=1))
    assert row["runs"] == 4
    together = np.cov(values) / 600
    shared = max(together[~np.eye(4, dtype=bool)].mean(), 0.0)
    between = means.var(ddof=1) / 4
    reach = cochran(shared, between, 3)
    assert row["high"] - row["value"] == pytest.approx(reach, rel=0.02)
    assert row["value"] - row["low"] == pytest.approx(reach, rel=0.02)
    alone = found.filter(model="other", group="overall").row(0, named=True)
    assert alone["seed_sd"] is None


def test_models_that_differ_by_less_than_their_seeds_do_are_not_told_apart():
    """Each run is well away from the other's, and so are two runs of one model."""
    one = [audited("m", drawn(i, r, r)) for i, r in enumerate((0.5, 0.8, 0.65))]
    two = [audited("n", drawn(9 + i, r, r)) for i, r in enumerate((0.85, 0.6, 0.75))]
    found = isolux.side_by_side({"m": one, "n": two}).changes.filter(kind="model_difference")
    assert set(found["word"]) == {"not shown"}
    near = [audited("n", drawn(9 + i, r, r)) for i, r in enumerate((0.85, 0.86, 0.84))]
    far = [audited("m", drawn(i, r, r)) for i, r in enumerate((0.5, 0.51, 0.49))]
    apart = isolux.side_by_side({"m": far, "n": near}).changes.filter(group_a="overall")
    assert apart["word"].to_list() == ["higher"]


def test_classes_are_ranked_by_disparity_under_each_model():
    label = ["cook"] * 60 + ["nurse"] * 60
    even, apart = [1.0, 1.0] * 30, [1.0, 0.0] * 30
    runs = [audited("x", even + apart, label=label), audited("y", apart + even, label=label),
            audited("z", even + apart, label=label)]  # fmt: skip
    ranks = isolux.side_by_side(runs).ranks
    by_label = {row["label"]: row for row in ranks.iter_rows(named=True)}
    assert by_label["nurse"]["rank: x"] == by_label["cook"]["rank: y"] == 1
    assert by_label["nurse"]["gap: x"] == 1.0
    assert by_label["cook"]["rank: z"] == 2


def test_a_table_of_hostile_names_is_escaped():
    text = format_latex_table(pl.DataFrame({"a_b": [r"50 % & $x$ \input{x} #1 ~^ <b>"]}), "A_b")
    assert r"50 \% \& \$x\$ \textbackslash{}input\{x\} \#1 \textasciitilde{}" in text
    assert r"\caption{A\_b}" in text
    assert r"\textless{}b\textgreater{}" in text


def test_what_cannot_be_compared_is_refused():
    one, two = audited("x", drawn(1, 0.8, 0.8)), audited("y", drawn(2, 0.8, 0.8))
    with pytest.raises(SpecError, match="there are no two runs"):
        isolux.side_by_side([one])
    with pytest.raises(SpecError, match="two runs are of the model 'x'"):
        isolux.side_by_side([one, two, one])
    for twice in ({"a": [one, one], "b": two}, {"a": one, "b": one}):
        with pytest.raises(SpecError, match="one run is given twice"):
            isolux.side_by_side(twice)
    with pytest.raises(JoinError, match="nobody in common"):
        isolux.side_by_side([one, two, audited("z", drawn(3, 0.8, 0.8), prefix="q")])


@pytest.fixture
def folders(tmp_path):
    table = pl.DataFrame(
        {"id": [f"p{i}" for i in range(400)], "light": ["day", "night"] * 200,
         "job": ["=cook_1", "=cook_1", "nurse & co", "nurse & co"] * 100}
    )  # fmt: skip
    other = {"=cook_1": "nurse & co", "nurse & co": "=cook_1"}
    for name, seed, rates in (("plain", 1, (0.9, 0.9)), ("gap", 2, (0.95, 0.6)),
                              ("s1", 3, (0.9, 0.9)), ("s2", 4, (0.9, 0.9))):  # fmt: skip
        right = drawn(seed, *rates, 400)
        said = [j if ok else other[j] for j, ok in zip(table["job"], right, strict=True)]
        table = table.with_columns(pl.Series(name, said))
    path = tmp_path / "people.csv"
    table.write_csv(path)
    for name in ("plain", "gap", "s1", "s2"):
        isolux.audit(
            f"table:{path}", by="light", id="id", target="job", prediction_column=name,
            model_name=name, replicates=300,
        ).report(tmp_path / name)  # fmt: skip
    return tmp_path


def test_by_the_command_line_three_models_are_laid_out(monkeypatch, capsys, folders):
    out = folders / "both"
    ran = run(monkeypatch, capsys, "compare", folders / "plain", folders / "gap",
              f"two seeds={folders / 's1'},{folders / 's2'}", "--out", out)  # fmt: skip
    assert ran.code == 0, ran.err
    seen = " ".join(ran.out.split())
    assert "From plain to gap" in seen
    assert "Accuracy of night against day (by" in seen
    assert "From gap to two seeds" in seen
    names = {f"{table}.{kind}" for table in ("values", "changes", "ranks", "gaps")
             for kind in ("parquet", "csv")}  # fmt: skip
    held = {path.name for path in out.iterdir()}
    assert held == {*names, "values.tex", "ranks.tex", "report.html", "side_by_side.json"}
    values = pl.read_parquet(out / "values.parquet")
    assert values.filter(model="two seeds")["runs"].unique().to_list() == [2]
    words = pl.read_parquet(out / "changes.parquet").filter(
        kind="gap_change", metric="accuracy", model_a="plain"
    )
    assert dict(words.select("model_b", "word").iter_rows()) == {
        "gap": "grew", "two seeds": "not shown",
    }  # fmt: skip
    assert r"nurse \& co" in (out / "values.tex").read_text()
    assert "'=cook_1" in (out / "values.csv").read_text()  # no spreadsheet runs it
    page = (out / "report.html").read_text()
    assert "nurse &amp; co" in page
    assert "<svg" in page
    with pytest.raises(OutputError):
        isolux.side_by_side([folders / "plain", folders / "gap"]).report(out)


def test_two_runs_are_compared_as_ever(monkeypatch, capsys, folders):
    ran = run(monkeypatch, capsys, "compare", folders / "plain", folders / "gap")
    assert ran.code == 0, ran.err
    assert "gained" in ran.out or "lost" in ran.out or "lower" in ran.out


def test_who_withdrew_is_in_no_model(monkeypatch, capsys, folders):
    """Three models of the same people: one id named, one person fewer in each."""
    three = [folders / name for name in ("plain", "gap", "s1")]
    gone = folders / "gone.txt"
    gone.write_text("p1\n")
    whole = isolux.side_by_side(three)
    less = isolux.side_by_side(three, withdrawn=gone)
    everyone = pl.col("attribute").is_null()
    assert less.record["units"] == whole.record["units"] - 1
    for found, n in ((whole, whole.record["units"]), (less, less.record["units"])):
        assert set(found.values.filter(everyone, metric="accuracy")["n_units"]) == {n}
    ran = run(monkeypatch, capsys, "compare", *three, "--withdrawn", gone)
    assert ran.code == 0, ran.err
    gone.write_text("nobody\n")
    ran = run(monkeypatch, capsys, "compare", *three, "--withdrawn", gone)
    assert ran.code != 0
    assert "nobody" in ran.plain
    ran = run(monkeypatch, capsys, "compare", *three, "--withdrawn", gone, "--allow-unmatched")
    assert ran.code == 0, ran.err


def weighed(name, values, weight):
    """Audit a model's scores of 80 people of two tones, each of whom stands for ``weight``."""
    ids = [f"p{k}" for k in range(80)]
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * 40, "w": weight})
    scores = pl.DataFrame({"model": name, "unit_id": ids, "value": values})
    return isolux.audit(scores, who, by="tone", weight="w", replicates=200)


def test_weighted_runs_weigh_everyone_as_their_audits_do():
    """Any two of three models change as ``compare`` has it, and values are weighted means."""
    draw = np.random.default_rng(0)
    weight = draw.integers(1, 6, 80).astype(float)
    right = [(draw.random(80) < rate).astype(float) for rate in (0.6, 0.7, 0.8)]
    made = [weighed(name, one, weight) for name, one in zip("xyz", right, strict=True)]
    found = isolux.side_by_side(made)
    everyone = found.values.filter(pl.col("attribute").is_null())["value"].to_list()
    assert everyone == pytest.approx([float(np.average(v, weights=weight)) for v in right])
    two = isolux.compare(made[0], made[2]).disparities.filter(kind="model_difference")
    mine = found.changes.filter(model_a="x", model_b="z", kind="model_difference")
    assert mine["low"].to_list() == pytest.approx(two["low"].to_list())
    assert mine["value"].to_list() == pytest.approx(two["value"].to_list())
    assert found.record["sample"]
    with pytest.raises(JoinError, match="weigh differently"):
        isolux.side_by_side([*made[:2], weighed("z", right[2], weight[::-1])])


def test_weighted_seeds_are_one_model_by_the_linearised_variance_of_their_mean():
    """By hand: of two runs' scores y the ratio's residuals w (y - m), within strata, and seeds.

    V = sum over strata of C_h / (C_h - 1) times the sum of products of both runs' w (y - m) around
    their means in the stratum, over (sum w) squared; then s squared over the number of runs.
    """
    draw = np.random.default_rng(5)
    weight, stratum = draw.integers(1, 6, 300).astype(float), np.arange(300) % 3
    right = [(draw.random(300) < r).astype(float) for r in (0.5, 0.6, 0.8)]
    ids = [f"p{k}" for k in range(300)]
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * 150, "w": weight,
                        "part": stratum.astype(str)})  # fmt: skip
    made = [
        isolux.audit(pl.DataFrame({"model": "m", "unit_id": ids, "value": v}), who, by="tone",
                     weight="w", strata="part", replicates=2000)
        for v in right
    ]  # fmt: skip
    found = isolux.side_by_side({"x": made[:2], "z": made[2]})
    row = found.values.filter(pl.col("attribute").is_null(), model="x").row(0, named=True)
    means = np.array([np.average(v, weights=weight) for v in right[:2]])
    assert row["value"] == pytest.approx(means.mean())
    left = [weight * (own - m) for own, m in zip(right[:2], means, strict=True)]
    shared = sum(100 / 99 * 99 * np.cov(left[0][stratum == h], left[1][stratum == h])[0, 1]
                 for h in range(3)) / weight.sum() ** 2  # fmt: skip
    between = means.var(ddof=1) / 2
    reach = cochran(max(shared, 0.0), between, 1)
    assert row["value"] - row["low"] == pytest.approx(min(reach, means.mean()), rel=0.04)
    assert found.changes.filter(kind="model_difference")["method"].unique().to_list() == [
        "paired over people, Cochran over runs"
    ]


def test_names_that_stand_twice_are_refused(monkeypatch, capsys, folders):
    ran = run(monkeypatch, capsys, "compare", f"a={folders / 'plain'}", f"a={folders / 'gap'}")
    assert ran.code != 0
    assert "two models are called 'a'" in ran.plain


def test_the_mean_over_seeds_of_one_model_by_group_and_of_its_gap(tmp_path):
    """Five runs of one model alone: value, gap and what differs between runs, by hand."""
    rates = np.random.default_rng(0).normal(0.75, 0.05, 5)
    runs = [audited("nih", drawn(k, rate, rate - 0.15)) for k, rate in enumerate(rates)]
    found = isolux.side_by_side({"nih": runs})
    assert found.changes.height == 0
    by_run = [dict(r.group_metrics.select("group", "value").iter_rows()) for r in runs]
    for row in found.values.iter_rows(named=True):
        own = [one[row["group"]] for one in by_run]
        assert row["value"] == pytest.approx(np.mean(own), abs=1e-12)
        assert row["seed_sd"] == pytest.approx(np.std(own, ddof=1), abs=1e-12)
    (gap,) = found.gaps.iter_rows(named=True)
    gaps = np.array([one["a"] - one["b"] for one in by_run])
    assert (gap["group_a"], gap["group_b"], gap["runs"]) in {("a", "b", 5), ("b", "a", 5)}
    sign = 1.0 if gap["group_a"] == "a" else -1.0
    assert gap["value"] == pytest.approx(sign * gaps.mean(), abs=1e-12)
    assert gap["seed_sd"] == pytest.approx(gaps.std(ddof=1), abs=1e-12)
    # Each run answers on its own here, so what people share between runs is next to nothing: the
    # interval is near Student's over five runs, and never shorter than that of people alone.
    student = stats.t.interval(0.95, 4, gaps.mean(), gaps.std(ddof=1) / 5**0.5)
    low, high = sorted(sign * np.array([gap["low"], gap["high"]]))
    assert high - low == pytest.approx(student[1] - student[0], rel=0.25)
    assert (gap["p_adjusted"] <= 0.05) == (gap["low"] > 0 or gap["high"] < 0)
    page = found.report(tmp_path / "out").read_text()
    assert "nih: the mean of 5 runs" in page
    assert "Gaps of models of several runs" in page
    assert "<h2>Changes</h2>" not in page


def test_seeds_that_do_not_differ_add_nothing_to_a_gap():
    """Runs with the same answers: the gap's interval is that of one run."""
    values = drawn(3, 0.9, 0.7)
    swapped = values.copy()
    # Two answers of group a exchanged: the runs are not one and the same, and no value moves.
    right, wrong = values[0::2].index(1.0) * 2, values[0::2].index(0.0) * 2
    swapped[right], swapped[wrong] = swapped[wrong], swapped[right]
    runs = [audited("m", values), audited("m", swapped)]
    gap = isolux.side_by_side({"m": runs}).gaps.row(0, named=True)
    alone = runs[0].disparities.filter(kind="difference").row(0, named=True)
    assert gap["seed_sd"] == pytest.approx(0.0, abs=1e-12)
    bounds = sorted(abs(x) for x in (gap["low"], gap["high"]))
    assert bounds == pytest.approx(sorted(abs(alone[k]) for k in ("low", "high")), abs=0.004)


def test_with_a_reference_gaps_are_those_to_it():
    runs = []
    for seed in range(2):
        ids = [f"p{i}" for i in range(600)]
        values = (np.random.default_rng(seed).random(600) < 0.8).astype(float)
        scores = pl.DataFrame({"unit_id": ids, "value": values, "model": "m"})
        who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b", "c"] * 200})
        runs.append(isolux.audit(scores, who, by="tone", reference="tone=b", **SETTINGS))
    pairs = isolux.side_by_side({"m": runs}).gaps.select("group_a", "group_b").rows()
    assert sorted(pairs) == [("a", "b"), ("c", "b")]
