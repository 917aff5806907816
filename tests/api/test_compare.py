"""Two models on the same people: paired differences by hand, joins, rankings, size of the test."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import isolux
from isolux.api.audit import run_audit
from isolux.core.errors import JoinError, SpecError
from isolux.core.spec import parse_spec
from isolux.disparity.class_rankings import rank_classes_by_largest_gap

SETTINGS = {"min_units": 5, "min_clusters": 5, "replicates": 400}


def audited(name: str, values: list[float], *, prefix: str = "", label: list[str] | None = None):
    n = len(values)
    ids = [f"{prefix}p{i}.jpg" for i in range(n)]
    scores = pl.DataFrame({"unit_id": ids, "value": values, "model": [name] * n})
    if label is not None:
        scores = scores.with_columns(label=pl.Series(label))
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * (n // 2)})
    return isolux.audit(scores, who, by="tone", **SETTINGS)


OLD = [1.0, 0.0] * 30  # group a all right, group b all wrong
NEW = [1.0, 1.0] * 10 + [1.0, 0.0] * 20  # b gains 10 of 30


def test_paired_differences_by_hand():
    found = isolux.compare(audited("old", OLD), audited("new", NEW)).disparities
    rows = found.filter(kind="model_difference").select("group_a", "value").rows()
    assert [group for group, _ in rows] == ["overall", "a", "b"]
    assert [value for _, value in rows] == pytest.approx([10 / 60, 0.0, 10 / 30], abs=1e-12)
    gap = found.filter(kind="gap_change").row(0, named=True)
    assert (gap["group_a"], gap["group_b"], gap["value"]) == ("b", "a", pytest.approx(-1 / 3))


def test_everyone_on_the_first_metric_is_a_family_of_its_own():
    found = isolux.compare(audited("old", OLD), audited("new", NEW))
    first = found.disparities.row(0, named=True)
    assert (first["attribute"], first["group_a"]) == (None, "overall")
    assert first["family"] == "the planned comparison"
    assert first["p_adjusted"] == first["p_value"]
    assert (first["simultaneous_low"], first["simultaneous_high"]) == (first["low"], first["high"])
    others = found.disparities.filter(pl.col("attribute").is_not_null(), kind="model_difference")
    assert others["family"].unique().to_list() == [
        "all other groups and metrics of this comparison (m = 1)"  # a is the same with both
    ]
    assert found.run.record["families"]["the planned comparison"] == 1


def test_everyone_is_not_paid_for_by_many_groups():
    # 52 of 600 gained and 32 lost: p is near .04, and .5 or more if 40 groups were in its family.
    rng = np.random.default_rng(4)
    old = np.array([0.0] * 52 + [1.0] * 32 + [1.0] * 516)
    new = np.array([1.0] * 52 + [0.0] * 32 + [1.0] * 516)
    order = rng.permutation(600)
    who = pl.DataFrame({"unit_id": [f"p{k}" for k in range(600)],
                        "site": [f"s{k % 40}" for k in range(600)]})  # fmt: skip
    runs = [
        isolux.audit(who.select("unit_id", model=pl.lit(name), value=pl.Series(values[order])),
                     who, by="site", min_units=5, min_clusters=5, replicates=2000)
        for name, values in (("old", old), ("new", new))
    ]  # fmt: skip
    found = isolux.compare(*runs)
    first = found.disparities.row(0, named=True)
    assert first["p_adjusted"] == pytest.approx(2 * ndtr(-20 / 84**0.5), abs=0.015)
    assert first["p_adjusted"] < 0.05
    assert first["low"] > 0
    claims = found.findings["claim"].to_list()
    assert claims[0].startswith("Score for everyone is 3.3 points higher with new than with old (")
    assert "adjusted" not in claims[0]


def test_the_metric_asked_for_first_is_that_of_the_planned_comparison():
    truth = pl.DataFrame({"id": range(60), "tone": ["a", "b"] * 30, "truth": ["x", "y"] * 30})
    one = truth.with_columns(said=pl.Series(["y", *["x", "y"] * 29, "y"]))
    two = truth.with_columns(said=pl.col("truth"))
    settings = {"by": "tone", "target": "truth", "prediction_column": "said", "id": "id"}
    settings |= {"metric": ["balanced_accuracy", "accuracy"], **SETTINGS}
    found = isolux.compare(*(isolux.audit(frame, **settings) for frame in (one, two)))
    assert found.disparities["metric"][0] == "balanced_accuracy"
    assert found.disparities["family"][0] == "the planned comparison"


def test_two_runs_of_one_name_are_called_by_their_folders(tmp_path):
    for name, values in (("before", OLD), ("after", NEW)):
        audited("net", values).report(tmp_path / name)
    found = isolux.compare(tmp_path / "before", tmp_path / "after")
    assert found.run.record["models"] == ["before", "after"]
    assert set(found.disparities["model_b"]) == {"after"}
    alone = isolux.compare(audited("net", OLD), audited("net", NEW))
    assert alone.run.record["models"] == ["net (first)", "net (second)"]


def test_a_reference_names_the_gap():
    # c is the worst and a the best; with the reference b the gap is that of c to b.
    ids = [f"p{k}" for k in range(120)]
    who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b", "c"] * 40})
    values = {
        "old": [1.0, 1.0, 0.0] * 30 + [1.0, 0.0, 0.0] * 10,
        "new": [1.0, 1.0, 0.0] * 38 + [1.0, 0.0, 0.0] * 2,
    }
    for reference, pair in ((None, ("c", "a")), ("tone=b", ("c", "b"))):
        more = {} if reference is None else {"reference": reference}
        runs = [
            isolux.audit(pl.DataFrame({"unit_id": ids, "value": v, "model": name}), who, by="tone",
                         **SETTINGS | more)
            for name, v in values.items()
        ]  # fmt: skip
        found = isolux.compare(*runs).disparities.filter(kind="gap_change")
        assert found.select("group_a", "group_b").rows() == [pair]
        assert found["value"][0] == pytest.approx(0.0 if reference is None else 0.2)


def test_two_changes_are_held_against_each_other():
    # Group a stays at 30 of 30, b gains 10 of 30 from none: the gap is 1/3 narrower.
    # a: nobody changed, but a change of d takes d of 30 people: d² = z² d (1 - d) / 30 at .1135.
    # b: (1/3 - d)² = z² (1/3 · 2/3 + (1/3 - d)²) / 30, so that it reaches .1806 on either side.
    # MOVER of the two: -1/3 -+ sqrt(.1135² + .1806²).
    found = isolux.compare(audited("old", OLD), audited("new", NEW))
    row = found.disparities.filter(kind="gap_change").row(0, named=True)
    assert [row[f"{what}_{side}"] for side in "ab" for what in ("group", "n_units")] == [
        "b", 30, "a", 30
    ]  # fmt: skip
    assert row["value"] == pytest.approx(-1 / 3, abs=1e-12)
    assert (row["low"], row["high"]) == pytest.approx((-0.5466, -0.1200), abs=2e-4)
    assert row["p_adjusted"] <= 0.01
    assert row["family"] == "changes of gaps, a pair for each metric and attribute (m = 1)"
    assert found.run.record["families"][row["family"]] == 1
    [told] = [c for c in found.findings["claim"] if "the gap" in c]
    assert told.startswith(
        "Score, b against a (tone): the gap narrowed from 100.0 to 66.7 points (change"
    )


def test_a_change_of_all_alike_is_no_difference_of_changes():
    # Everyone loses a tenth: both groups 3 of 30.
    lost = [0.0 if k < 6 else 1.0 for k in range(60)]
    found = isolux.compare(audited("old", [1.0] * 60), audited("new", lost))
    row = found.disparities.filter(kind="gap_change").row(0, named=True)
    assert row["value"] == pytest.approx(0.0, abs=1e-12)
    assert row["low"] < 0 < row["high"]
    assert any("no change of the gap is shown" in c for c in found.findings["claim"])


def test_changes_of_groups_too_small_to_judge_are_not_compared():
    ids = [f"p{k}" for k in range(60)]
    who = pl.DataFrame({"unit_id": ids, "tone": ["a"] * 57 + ["b"] * 3})
    runs = [
        isolux.audit(
            pl.DataFrame({"unit_id": ids, "value": values, "model": name}), who, by="tone",
            **SETTINGS,
        )
        for name, values in (("old", OLD), ("new", NEW))
    ]  # fmt: skip
    found = isolux.compare(*runs)
    assert found.disparities.filter(kind="gap_change").is_empty()
    assert not any("the gap" in claim for claim in found.findings["claim"])


def test_a_change_of_few_clusters_says_why_it_has_no_interval():
    who = pl.DataFrame({"unit_id": [f"p{k}" for k in range(120)], "tone": ["a", "b"] * 60})
    homes = [f"h{k // 2 % 7}" if k % 2 == 0 else f"i{k}" for k in range(120)]  # a: 7 clusters
    runs = [
        isolux.audit(
            who.select("unit_id").with_columns(
                value=pl.Series(values), model=pl.lit(name), cluster_id=pl.Series(homes)
            ),
            who, by="tone", **SETTINGS | {"cluster": "home"},
        )
        for name, values in (("old", [0.0, 1.0] * 60), ("new", [1.0] * 120))
    ]  # fmt: skip
    found = isolux.compare(*runs)
    row = found.disparities.filter(kind="gap_change").row(0, named=True)
    assert (row["low"], row["high"], row["status"]) == (None, None, "boundary")
    assert row["reason"] == "fewer than 10 clusters"
    claims = [c for c in found.findings["claim"] if "tone = a" in c or "a against" in c]
    assert claims
    assert all("Caution: fewer than 10 clusters." in claim for claim in claims)


def test_all_of_one_group_against_none_of_another_is_a_difference_of_changes():
    # a stays all right, b falls from all right to all wrong: nothing varies, and it is no chance.
    found = isolux.compare(audited("old", [1.0] * 60), audited("new", [1.0, 0.0] * 30))
    row = found.disparities.filter(kind="gap_change").row(0, named=True)
    assert (row["group_a"], row["value"]) == ("b", pytest.approx(1.0, abs=1e-12))
    assert row["p_adjusted"] < 0.01
    assert row["low"] > 0.7
    claims = found.findings["claim"].to_list()
    assert any("the gap widened from 0.0 to 100.0 points" in c for c in claims)


def test_the_printed_interval_and_p_agree():
    # Five lost and none gained: McNemar's z is 5 / √5.
    old, new = [1.0] * 120, [0.0 if k in (0, 20, 40, 61, 81) else 1.0 for k in range(120)]
    found = isolux.compare(audited("old", old), audited("new", new)).disparities
    row = found.filter(kind="model_difference", group_a="overall").row(0, named=True)
    assert row["p_value"] == pytest.approx(2 * norm.sf(5**0.5), rel=1e-6)
    assert row["low"] < row["value"] < row["high"] < 0.0


def test_a_group_too_small_to_judge_is_named():
    def run(name, right):
        ids = [f"p{k}" for k in range(63)]
        who = pl.DataFrame({"unit_id": ids, "tone": ["a", "b"] * 30 + ["c"] * 3})
        values = [1.0, 1.0, 0.0, 1.0] * 15 + [right] * 3
        scores = pl.DataFrame({"unit_id": ids, "value": values, "model": [name] * 63})
        return isolux.audit(scores, who, by="tone", **SETTINGS)

    found = isolux.compare(run("old", 1.0), run("new", 0.0))
    row = found.disparities.filter(kind="model_difference", group_a="c").row(0, named=True)
    assert (row["value"], row["status"]) == (None, "insufficient units")
    told = "Not judged: the change of people with tone = c (n = 3; fewer than 5 units)."
    assert told in found.findings["claim"].to_list()


def test_the_p_of_independent_rows_is_mcnemars():
    # Ten gained, none lost: z = 10 / √10.
    both = audited("old", OLD), audited("new", NEW)
    row = isolux.compare(*both).disparities.filter(kind="model_difference", group_a="b")
    assert row["p_value"][0] == pytest.approx(2 * norm.sf(10**0.5), rel=1e-6)


def test_a_model_against_itself_differs_nowhere():
    one = audited("same", NEW)
    found = isolux.compare(one, one)
    rows = found.disparities.filter(kind="model_difference")
    assert rows["value"].to_list() == [0.0, 0.0, 0.0]
    assert rows["p_value"].null_count() == 3, "nothing varies, so nothing was tested"
    assert found.run.record["models"] == ["same (first)", "same (second)"]
    assert found.findings["claim"][0].startswith("Score for everyone is the same")


def test_a_change_that_is_not_confirmed_is_not_asserted():
    answers = ["x", "y"] * 30
    truth = pl.DataFrame({"id": range(60), "tone": ["a", "b"] * 30, "truth": answers})
    one = truth.with_columns(said=pl.Series(["y", *answers[1:]]))
    two = truth.with_columns(said=pl.Series(answers))
    settings = {"by": "tone", "target": "truth", "prediction_column": "said", "id": "id"}
    first, second = (isolux.audit(frame, **settings) for frame in (one, two))
    told = isolux.compare(first, second).findings["claim"][0]
    assert " is not shown to be better or worse than " in told
    assert ": accuracy is 1.7 points higher (95 % interval " in told


def test_people_meet_by_basename_when_their_folders_differ():
    both = audited("old", OLD, prefix="x/val/"), audited("new", NEW, prefix="val/")
    with pytest.raises(JoinError, match="nobody in common") as caught:
        isolux.compare(*both)
    assert "--id-from basename (id_from='basename') would match 60" in str(caught.value)
    found = isolux.compare(*both, id_from="basename")
    assert found.run.record["clusters"]["n_units"] == 60
    assert "joined by basename" in found.run.record["notes"][0]


def test_nobody_in_common_is_refused_with_ids():
    with pytest.raises(JoinError, match="nobody in common") as caught:
        isolux.compare(audited("old", OLD, prefix="x"), audited("new", NEW, prefix="y"))
    assert "'xp0.jpg', 'xp1.jpg', 'xp2.jpg'" in str(caught.value)
    assert "'yp0.jpg', 'yp1.jpg', 'yp2.jpg'" in str(caught.value)


def test_an_unknown_way_to_join_is_refused():
    with pytest.raises(SpecError, match="column, basename, stem"):
        isolux.compare(audited("old", OLD), audited("new", NEW), id_from="magic")


def test_only_people_of_both_are_compared_and_the_others_counted():
    short = audited("new", NEW[:40])
    found = isolux.compare(audited("old", OLD), short)
    assert found.run.record["clusters"]["n_units"] == 40
    assert any(n.startswith("20 people of old") for n in found.run.record["notes"])


def test_runs_read_back_compare_like_those_in_memory(tmp_path):
    old, new = audited("old", OLD), audited("new", NEW)
    old.report(tmp_path / "old")
    new.report(tmp_path / "new")
    from_disk = isolux.compare(tmp_path / "old", tmp_path / "new")
    assert from_disk.disparities.equals(isolux.compare(old, new).disparities)
    page = from_disk.report(tmp_path / "both").read_text(encoding="utf-8")
    assert "old" in page
    assert (tmp_path / "both" / "disparities.parquet").is_file()


def test_classes_are_ranked_by_their_gap_in_both_models():
    # Class x: a .9, b .5 in m (gap .4), .8 and .7 in k (.1); class y: .6, .5 (.1); .9, .2 (.7).
    cells = {("m", "x"): (0.9, 0.5), ("m", "y"): (0.6, 0.5), ("k", "x"): (0.8, 0.7),
             ("k", "y"): (0.9, 0.2)}  # fmt: skip
    table = pl.DataFrame(
        [
            {
                "model": m,
                "metric": "recall",
                "label": c,
                "attribute": "tone",
                "group": g,
                "value": v,
            }
            for (m, c), pair in cells.items()
            for g, v in zip("ab", pair, strict=True)
        ]
    )
    found = rank_classes_by_largest_gap(table, ("m", "k")).sort("label")
    assert found.select("label", "rank_a", "rank_b", "worst_b", "best_b").rows() == [
        ("x", 1, 2, "b", "a"), ("y", 2, 1, "b", "a"),
    ]  # fmt: skip
    assert found["gap_b"].to_list() == pytest.approx([0.1, 0.7])


def test_a_class_too_small_to_judge_has_no_rank():
    table = pl.DataFrame(
        {
            "model": ["m", "m", "k", "k"], "metric": "recall", "label": "x", "attribute": "tone",
            "group": ["a", "b"] * 2, "value": [0.5, None, 0.5, 0.4],
        }
    )  # fmt: skip
    found = rank_classes_by_largest_gap(table, ("m", "k"))
    assert found.select("rank_a", "rank_b").row(0) == (None, 1)


def test_other_people_under_the_same_ids_are_refused_with_examples():
    mine, other = audited("old", OLD), audited("new", NEW)
    who = pl.DataFrame({"unit_id": [f"p{i}.jpg" for i in range(60)], "tone": ["b", "a"] * 30})
    other = isolux.audit(other.run.scores, who, by="tone", **SETTINGS)
    with pytest.raises(JoinError, match="60 of 60 people who meet by their ids") as caught:
        isolux.compare(mine, other)
    assert "'p0.jpg' is 'a' in the first run and 'b'" in str(caught.value)
    found = isolux.compare(mine, other, allow_disagreement=1.0)
    warnings = found.run.record["warnings"]
    assert any(text.startswith("60 of 60 people have another 'tone'") for text in warnings)


def tables(folder, *names, columns=("said",)):
    """Audits of tables without ids: the people of the second are those of the first, shuffled."""
    truth = ["x", "y", "x", "x"] * 30
    said = [t if i % 5 else "y" for i, t in enumerate(truth)]
    people = pl.DataFrame({"tone": ["a", "b"] * 60, "truth": truth, "said": said, "new": truth})
    runs = []
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        people.sample(fraction=1, shuffle=bool(k), seed=k).write_csv(folder / name)
        spec = {"data": f"table:{folder / name}", "by": "tone", "target": "truth"}
        spec |= {"prediction_column": column, "id_from": "column", **SETTINGS}
        runs.append(run_audit(parse_spec(spec)))
    return runs


def test_the_order_of_rows_is_no_id(tmp_path):
    with pytest.raises(JoinError, match="no id, only the number of their row") as caught:
        isolux.compare(*tables(tmp_path, "a.csv", "b.csv", columns=("said", "said")))
    assert "--id COLUMN" in str(caught.value)


def test_rows_of_one_file_are_the_same_rows(tmp_path):
    (first,) = tables(tmp_path, "a.csv")
    spec = first.spec.model_copy(update={"prediction_column": "new"})
    found = isolux.compare(first, run_audit(spec))
    assert found.run.record["clusters"]["n_units"] == 120


def test_the_first_warning_of_either_run_is_on_the_first_screen(tmp_path, monkeypatch, capsys):
    """Three warnings of the first run leave room for the second's permuted classes."""
    from tests.cli._run import isolux as run_cli

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth, tone = rng.choice(["a", "b", "c"], 300), rng.choice(["A", "B"], 300)
    right = np.where(rng.random(300) < 0.85, truth, rng.choice(["a", "b", "c"], 300))
    turned = pl.Series(right).replace({"a": "b", "b": "c", "c": "a"})
    ids = [f"p{k}" for k in range(300)]
    pl.DataFrame(
        {"id": ids, "tone": tone, "truth": truth, "right": right, "turned": turned}
    ).write_csv("people.csv")
    for column in ("right", "turned"):
        found = isolux.audit("table:people.csv", by="tone", id="id", target="truth",
                             prediction_column=column, replicates=200)  # fmt: skip
        if column == "right":
            found.run.record["warnings"] += [f"warning {k}" for k in range(9)]
        found.report(column)
    printed = " ".join(run_cli(monkeypatch, capsys, "compare", "right", "turned").out.split())
    told = printed.index("turned: The answers of 'turned' fit the truth far better under other")
    assert told < printed.index("right → turned")


def test_a_runs_warnings_stand_in_the_comparison(tmp_path):
    truth = ["x", "y"] * 60
    people = pl.DataFrame({"id": range(120), "tone": ["a", "b"] * 60, "truth": truth})
    people = people.with_columns(said=pl.col("truth"), same=pl.lit("x"))
    people.write_csv(tmp_path / "a.csv")
    spec = {"data": f"table:{tmp_path / 'a.csv'}", "by": "tone", "target": "truth", **SETTINGS}
    runs = [run_audit(parse_spec({**spec, "prediction_column": c})) for c in ("said", "same")]
    found = isolux.compare(*runs)
    warnings = found.run.record["warnings"]
    assert warnings[0].startswith("said: Every answer of 'said' is exactly the truth (120 of 120")
    assert "same: Every answer of 'same' is 'x': one answer for everyone." in warnings[1:]
    page = found.report(tmp_path / "both").read_text(encoding="utf-8")
    first_screen = page[page.index("<header>") : page.index("</header>")]
    assert "one answer for everyone" in first_screen


def test_an_attribute_that_one_run_is_not_by_is_compared_as_it_would_be_read(tmp_path):
    # The first run reads tones as numbers and as lists; the second keeps the table's text.
    people = tmp_path / "people.csv"
    rows = [f"p{k},{'7' if k % 2 else '4;5'},{'day' if k % 3 else 'night'},x,x" for k in range(60)]
    people.write_text("\n".join(["id,tone,light,truth,answer", *rows]))
    said = {"id": "id", "target": "truth", "prediction_column": "answer", **SETTINGS}
    first = isolux.audit(f"table:{people}", by=["tone", "light"], separator=";", **said)
    second = isolux.audit(f"table:{people}", by=["light"], **said)
    agreed = isolux.compare(first, second).run.record["notes"]
    assert any("agree in" in note and "'tone'" in note for note in agreed), agreed
    people.write_text(people.read_text().replace("p1,7", "p1,8"))
    other = isolux.audit(f"table:{people}", by=["light"], **said)
    with pytest.raises(JoinError, match="1 of 60 people who meet by their ids have another 'tone'"):
        isolux.compare(first, other)


def test_long_numbers_that_are_names_are_not_rounded(tmp_path):
    people = tmp_path / "people.csv"
    rows = [f"p{k},{1000001 + k % 2},x,x" for k in range(60)]
    people.write_text("\n".join(["id,site,truth,answer", *rows]))
    said = {"id": "id", "target": "truth", "prediction_column": "answer", **SETTINGS}
    first = isolux.audit(f"table:{people}", by=["truth"], **said)
    people.write_text(people.read_text().replace("p1,1000002", "p1,1000001"))
    second = isolux.audit(f"table:{people}", by=["site"], **said)
    with pytest.raises(JoinError, match="1 of 60 people who meet by their ids have another 'site'"):
        isolux.compare(first, second)


def test_minus_zero_and_zero_are_one_number_and_one_value(tmp_path):
    people = pl.DataFrame({
        "id": [-0.0, *(k + 0.5 for k in range(59))], "tone": [-0.0, 0.0, 0.5] * 20,
        "truth": ["x", "y"] * 30, "answer": ["x", "y", "y"] * 20,
    })  # fmt: skip
    said = {"id": "id", "target": "truth", "prediction_column": "answer", **SETTINGS}
    people.write_csv(tmp_path / "a.csv")
    people.with_columns(pl.col("id", "tone").abs()).write_csv(tmp_path / "b.csv")
    first, second = (
        isolux.audit(f"table:{tmp_path / name}.csv", by=["tone"], **said) for name in "ab"
    )
    notes = isolux.compare(first, second).run.record["notes"]
    assert notes == [
        "People were joined by whole id: 60 are in both runs.",
        "Those who met agree in 'truth', 'tone'.",
    ]


def test_calibration_errors_over_other_numbers_of_bins_are_not_compared():
    rng = np.random.default_rng(3)
    sure, light = rng.beta(4, 2, 400), ["day", "night"] * 200
    ids = [f"p{i}" for i in range(400)]
    truth = np.where(rng.random(400) < sure, "yes", "no")
    table = pl.DataFrame({"id": ids, "truth": truth, "light": light, "answer": "yes", "sure": sure})
    runs = [
        isolux.audit(table, id="id", by="light", target="truth", prediction_column="answer",
                     score_column="sure", metric="calibration_error", replicates=100,
                     calibration_bins=bins).run
        for bins in (10, 10, 15)
    ]  # fmt: skip
    assert isolux.compare(*runs[:2]).disparities.filter(group_a="overall")["value"].item() == 0
    with pytest.raises(SpecError, match=r"over different bins\n(.*\n)*.*same number of bins"):
        isolux.compare(runs[0], runs[2])
