from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.core import registry
from isolux.core.containers import Run
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.report.summary import _OWN_DATA, summarise_run
from isolux.report.summary.sentences import sort_sections_by_rank
from isolux.report.wording import NBSP
from isolux.statements.metric_lines import read_metric_lines
from isolux.tasks._boxes.matching import parse_box_settings, select_metrics
from tests.report import _runs as runs


@pytest.fixture(scope="module")
def full():
    return summarise_run(runs.full_run())


def section(summary, attribute):
    return next(s for s in summary.sections if s.attribute == attribute)


def test_every_number_is_the_tables_own():
    run = runs.full_run()
    summary = summarise_run(run)
    of_race = run.group_metrics.filter(attribute="race", metric="accuracy")
    shown = {row.group: row.estimate for row in section(summary, "race").main.rows}
    assert len(shown) == 7
    for row in of_race.iter_rows(named=True):
        found = shown[row["group"]]
        assert (found.value, found.low, found.high) == (row["value"], row["low"], row["high"])
        assert (found.n_units, found.n_clusters) == (row["n_units"], row["n_clusters"])


def test_groups_stand_by_value_worst_first_and_ages_in_their_own_order(full):
    races = [row.group for row in section(full, "race").main.rows]
    assert races[0] == "Black"
    assert races[-1] == "Middle Eastern"
    ages = [row.group for row in section(full, "age").main.rows]
    assert ages == ["0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69",
                    "more than 70"]  # fmt: skip
    assert section(full, "age").ordered
    assert not section(full, "race").ordered


def test_only_published_data_are_cited():
    """What the reader of a table of one's own refers to is no citation of that table."""
    run = runs.full_run()
    assert "FairFace" in summarise_run(run).audited.citation
    own = {**run.record["dataset"], "licence": "the licence of your table"}
    told = summarise_run(replace(run, record={**run.record, "dataset": own})).audited
    assert (told.citation, told.licence) == ("", "the licence of your table")


def test_every_reader_of_ones_own_data_is_known_by_its_licence():
    infos = [registry.load_dataset_info(name) for name in registry.names("datasets")]
    for info in infos:
        if {one.key for one in info.references} & {"datasheets", "pytorch", "fiftyone", "yolo"}:
            assert info.licence.startswith(_OWN_DATA), info.title
    assert sum(info.licence.startswith(_OWN_DATA) for info in infos) >= 10


def test_terms_of_the_dataset_name_the_attributes(full):
    assert section(full, "race*gender").title == "perceived race × perceived gender presentation"
    assert full.audited.target == "perceived gender presentation"


def test_the_main_metric_comes_first_and_classes_share_a_block(full):
    blocks = section(full, "race").blocks
    assert blocks[0].tables[0].line.metric == "accuracy"
    recall = next(b for b in blocks if b.tables[0].line.metric == "recall")
    assert [t.line.label for t in recall.tables] == ["Female", "Male"]
    assert recall.title == "Recall"
    assert recall.tables[0].line.title == "Recall of Female"


def test_a_too_small_group_keeps_its_counts_and_is_last(full):
    last = section(full, "race*gender").main.rows[-1]
    assert last.group == "Middle Eastern × Female"
    assert (last.estimate.value, last.estimate.n_units) == (None, 31)
    assert section(full, "race*gender").verdict.n_judged == 13


def test_the_largest_pairs_are_shown_and_all_are_counted(full):
    block = section(full, "race").blocks[0]
    assert block.n_pairs == 21  # 7 · 6 / 2
    sizes = [abs(pair.value) for pair in block.pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 10
    first = block.pairs[0]
    # Black .639, Middle Eastern .829: difference −.190, ratio .771
    assert (first.group_a, first.group_b) == ("Black", "Middle Eastern")
    assert first.value == pytest.approx(-0.190)
    assert first.ratio == pytest.approx(0.639 / 0.829)


def test_verdicts(full):
    assert section(full, "race").verdict.outcome == "differ"
    assert summarise_run(runs.null_run()).sections[0].verdict.outcome == "no difference found"
    unjudged = summarise_run(runs.small_run()).sections[0].verdict
    assert unjudged.outcome == "not judged"
    assert (unjudged.worst, unjudged.n_judged) == (None, 0)


def test_the_level_of_the_test_goes_with_the_intervals():
    run = runs.null_run()
    strict = {**run.record, "spec": {**run.record["spec"], "level": 0.75}}
    p = run.disparities.with_columns(
        p_adjusted=pl.when(kind="difference").then(0.2).otherwise("p_adjusted")
    )
    assert summarise_run(replace(run, disparities=p)).sections[0].verdict.outcome != "differ"
    found = summarise_run(replace(run, disparities=p, record=strict))
    assert found.sections[0].verdict.outcome == "differ"


def measured(run, metric, direction):
    """Say of a run's metric which way is better."""
    about = {metric: {"title": metric.capitalize(), "unit": "fraction", "direction": direction}}
    return replace(run, record={**run.record, "measures": about})


def test_worst_and_best_follow_the_metrics_direction():
    verdict = section(summarise_run(measured(runs.full_run(), "accuracy", "lower")), "race").verdict
    assert verdict.worst.group == "Middle Eastern"  # the highest error
    assert verdict.best.group == "Black"


def test_people_of_unknown_value_are_never_the_worst_group():
    tables = runs.Tables()
    of = runs.line("accuracy")
    rates = {("a",): (500, 0.7), ("b",): (500, 0.8), ("unknown",): (200, 0.3)}
    runs.add_everyone(tables, of, 1200, 0.7)
    runs.add_attribute(tables, of, "tone", rates, everyone=0.7)
    found = summarise_run(runs.run_of(tables)).sections[0]
    assert found.verdict.worst.group == "a"
    assert [row.group for row in found.main.rows] == ["a", "b", "unknown"]


def said(text):
    return text.replace(NBSP, " ")


def test_the_answer_is_who_is_served_worse_by_how_much_and_how_surely(full):
    # By gender Female are 33.7 points below Male. Of the intersection the interval begins at 47.2,
    # beyond that gap and the widest by race: so it says more than either, and leads.
    for part in ("worse for Black people labelled Female than for Middle Eastern",
                 "47.2 to 56.6", "adjusted p < 0.001"):  # fmt: skip
        assert part in said(full.answer)
    assert sort_sections_by_rank(full.sections)[0].attribute == "race*gender"


def test_the_answer_of_a_null_says_what_cannot_be_ruled_out_and_claims_no_absence():
    answer = said(summarise_run(runs.null_run()).answer)
    assert answer.startswith("No difference in accuracy was established")


@pytest.mark.parametrize(
    ("direction", "told"),
    [
        ("lower", "worse for people with tone = b than for people with tone = a"),
        ("none", "error is lower for people with tone = a than for people with tone = b"),
    ],
)
def test_worse_follows_the_metrics_direction(direction, told):
    tables, of = runs.Tables(), runs.line("error")
    runs.add_everyone(tables, of, 1000, 0.7)
    rates = {("a",): (500, 0.6), ("b",): (500, 0.8)}
    runs.add_attribute(tables, of, "tone", rates, everyone=0.7)
    answer = said(summarise_run(measured(runs.run_of(tables), "error", direction)).answer)
    assert told in answer.replace("Error", "error")
    assert ("worse" in answer) == (direction == "lower")


@pytest.mark.parametrize("is_bare", [False, True])
def test_the_answer_says_what_is_in_doubt_and_no_interval_where_there_is_none(is_bare):
    tables, of = runs.Tables(), runs.line("accuracy")
    runs.add_everyone(tables, of, 1800, 0.73)
    runs.add_attribute(
        tables, of, "tone", {("a",): (900, 0.669), ("b",): (900, 0.799)}, everyone=0.73
    )
    run = runs.run_of(tables)
    doubted = {"status": "few clusters", "reason": "few clusters"}
    doubted |= {"low": None, "high": None} if is_bare else {}
    rows = [
        row | (doubted if row["kind"] == "difference" else {})
        for row in run.disparities.iter_rows(named=True)
    ]
    frame = pl.DataFrame(rows, schema=run.disparities.schema)
    answer = said(summarise_run(replace(run, disparities=frame)).answer)
    assert "caution: few clusters" in answer
    assert (" to " in answer) != is_bare


def test_attributes_are_read_in_the_order_of_the_answer():
    tables, of = runs.Tables(), runs.line("accuracy")
    runs.add_everyone(tables, of, 2000, 0.8)
    hair = {("curly",): (900, 0.65), ("straight",): (900, 0.90)}
    runs.add_attribute(tables, of, "hair", hair, everyone=0.8)
    tones = {("dark",): (300, 0.50), ("light",): (900, 0.70)}
    runs.add_attribute(tables, of, "tone", tones, everyone=0.8)
    found = summarise_run(runs.run_of(tables))
    assert "worse for people with tone = dark" in found.answer
    first, second = sort_sections_by_rank(found.sections)
    assert (first.attribute, second.attribute) == ("tone", "hair")
    assert (second.lead.group_a, second.lead.group_b) == ("curly", "straight")


def test_an_intersection_leads_where_no_single_attribute_differs():
    tables, of = runs.Tables(), runs.line("accuracy")
    runs.add_everyone(tables, of, 2000, 0.73)
    runs.add_attribute(
        tables, of, "tone", {("a",): (900, 0.72), ("b",): (900, 0.74)}, everyone=0.73, p=0.6
    )
    both = {("a", "x"): (400, 0.5), ("b", "x"): (400, 0.9)}
    runs.add_attribute(tables, of, "tone*hair", both, everyone=0.73)
    found = summarise_run(runs.run_of(tables))
    assert sort_sections_by_rank(found.sections)[0].attribute == "tone*hair"


def test_only_what_the_test_tells_from_chance_is_named():
    run = runs.full_run()
    none = run.disparities.with_columns(
        p_adjusted=pl.when(pl.col("p_adjusted").is_not_null()).then(1.0)
    )
    assert "works worse for" in summarise_run(run).answer
    found = summarise_run(replace(run, disparities=none))
    assert "works worse for" not in found.answer
    assert {s.verdict.outcome for s in found.sections} <= {"no difference found", "not judged"}


def unknown_run(n, value, *, scored=True):
    tables, of = runs.Tables(), runs.line("accuracy")
    runs.add_everyone(tables, of, 2000 + n, 0.7)
    rates = {("a",): (1000, 0.6), ("b",): (1000, 0.8), ("unknown",): (n, value)}
    runs.add_attribute(tables, of, "tone", rates, everyone=0.7)
    run = runs.run_of(tables)
    score = {
        "model": "erm",
        "task": "classification",
        "metric": "accuracy",
        "unit_kind": "instance",
    }
    score |= {"unit_id": "1", "value": 1.0}
    by_tone = {**run.record, "spec": {**run.record["spec"], "by": ["tone"]}}
    run = replace(run, record=by_tone)
    return replace(run, scores=SCORES.conform(pl.DataFrame([score]))) if scored else run


def test_the_unknown_have_a_sentence_that_says_how_far_they_could_move_the_difference():
    found = summarise_run(unknown_run(100, 0.4))
    # 40 of the 100 score 1. Widest: 60 zeros join a, 40 ones join b; closest: the other way round.
    widest = (800 + 40) / 1040 - 600 / 1060
    closest = 800 / 1060 - (600 + 40) / 1040
    assert said(found.sections[0].unknown) == (
        "100 units of unknown tone (accuracy 40.0 %) are in none of the groups compared. However "
        f"they were divided between a and b, the difference between these two would be between "
        f"{100 * closest:.1f} and {100 * widest:.1f} points."
    )
    assert "unknown" not in found.answer


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (100, "(accuracy 40.0 %) that were not annotated are in none of the groups"),
        (30, "(accuracy 40.0 %), 30 of them not annotated, are in none of the groups"),
    ],
)
def test_people_of_whom_nobody_was_asked_are_told_from_those_annotated_as_unknown(n, told):
    run = unknown_run(100, 0.4)
    account = {"tone": {"n_units": 2100, "n_unknown": 100, "n_unannotated": n}}
    counts = {"unit": "people", "n_read": 2100, "models": {}, "attributes": account, "uneven": []}
    run = replace(run, record={**run.record, "accounting": counts})
    assert told in summarise_run(run).sections[0].unknown


def test_of_the_unknown_who_are_too_few_anything_may_be_true():
    told = said(summarise_run(unknown_run(20, 0.5)).sections[0].unknown)
    # None is judged below 50: between all 20 wrong in a and all 20 right in b, some mixture.
    ends = [(800 + k) / (1000 + k) - 600 / (1020 - k) for k in range(21)]
    low = [800 / (1020 - k) - (600 + k) / (1000 + k) for k in range(21)]
    assert told.startswith("20 units of unknown tone are in none")
    assert f"between {100 * min(low):.1f} and {100 * max(ends):.1f} points" in told


def test_no_bounds_are_given_for_a_metric_that_is_not_a_mean():
    told = summarise_run(unknown_run(100, 0.4, scored=False)).sections[0].unknown
    assert told.endswith("are in none of the groups compared.")


def test_limits_say_what_this_run_cannot():
    text = " ".join(summarise_run(runs.full_run()).limits)
    assert "perceived by annotators" in text
    assert "1 group had too little data" in text
    assert "Rows were taken as independent" not in text
    assert "not a certificate" in text
    small = summarise_run(runs.small_run())
    assert "Rows were taken as independent" in " ".join(small.limits)


def test_settings_explain_every_field_and_mark_choices(full):
    from isolux.core.spec import SETTING_BY_FLAT_NAME

    assert {row.name for row in full.settings} == {*SETTING_BY_FLAT_NAME, "protocol", "target"}
    assert all(row.meaning for row in full.settings)
    changed = {row.name for row in full.settings if row.changed}
    assert changed == {"data", "target", "predictions", "by", "cluster"}


def test_injected_truths_are_found_whichever_way_the_pair_is_turned():
    first, turned, absent = summarise_run(runs.injected_run()).injected_effects
    # Black .639 − White .771 = −.132, injected −.13
    assert first.estimate == pytest.approx(-0.132)
    assert first.covered is True
    # the table holds Female − Male = −.337; the truth asks for Male − Female
    assert turned.estimate == pytest.approx(0.337)
    assert turned.low < turned.estimate < turned.high
    assert turned.covered is False
    assert (absent.estimate, absent.covered) == (None, None)
    assert absent.note == "this audit did not measure it"


def test_links_are_web_addresses_only(full):
    assert [row.url for row in full.references] == ["https://openaccess.thecvf.com/", ""]


def test_kinds_of_disparity_that_nobody_told_the_report_about_are_still_shown():
    run = runs.null_run()
    row = run.disparities.filter(kind="range").with_columns(
        kind=pl.lit("demographic_parity_difference")
    )
    run = replace(run, disparities=pl.concat([run.disparities, row]))
    (named,) = summarise_run(run).sections[0].measures
    assert (named.name, named.metric_phrase) == ("demographic parity difference", "accuracy")
    assert named.value == pytest.approx(0.757 - 0.744)


def test_a_run_of_a_task_that_is_not_installed_is_still_told():
    run = runs.null_run()
    gone = pl.lit("gaze")
    run = replace(
        run,
        group_metrics=run.group_metrics.with_columns(task=gone, metric=pl.lit("angular_error")),
        disparities=run.disparities.with_columns(task=gone, metric=pl.lit("angular_error")),
    )
    summary = summarise_run(run)
    assert summary.sections[0].verdict.line.title == "Angular error"
    assert summary.sections[0].verdict.line.direction == "none"


def test_several_models_are_told_apart():
    run = runs.null_run()
    both = [run.group_metrics, run.group_metrics.with_columns(model=pl.lit("other"))]
    titles = [
        line.title for line, _ in summarise_run(replace(run, group_metrics=pl.concat(both))).overall
    ]
    assert titles == ["Accuracy, erm", "Accuracy, other"]


def test_a_users_own_table_is_called_by_its_file():
    record = runs.record(dataset={"name": "table", "title": "a table of your own"})
    record["spec"]["data"] = "table:folder/people.csv"
    tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    summary = summarise_run(Run(record, *(t.empty() for t in tables)))
    assert summary.title == "Audit of erm on people.csv"
    assert summary.answer.startswith("No attribute was named")


def test_the_level_is_said_in_words(full):
    assert full.audited.percent == "95 %"


@pytest.mark.parametrize(
    ("metrics", "asked", "first"),
    [
        ((), (), "average_recall"),
        ((), {"score_threshold": 0.5}, "recall_at_score"),
        ((), {"top_k": (1,), "score_threshold": 0.5}, "recall_at_score"),
        (("average_recall", "recall_at_score"), {"score_threshold": 0.5}, "average_recall"),
        (("recall_at_score", "average_recall"), {"score_threshold": 0.5}, "recall_at_score"),
    ],
)
def test_the_metric_that_was_asked_for_is_read_first(metrics, asked, first):
    info = registry.task_info("detection")
    names = select_metrics(info, metrics, parse_box_settings(**dict(asked)))
    record = {"model": "m", "spec": {"metric": list(metrics)}, "metrics": list(names)}
    rows = pl.DataFrame([{"model": "m", "task": "detection", "metric": name, "label": None,
                          "threshold": None} for name in sorted(names)])  # fmt: skip
    assert next(iter(read_metric_lines(rows, record).values())).metric == first


@pytest.mark.parametrize(
    ("attributes", "phrase"),
    [
        (["box_size"], "Nobody judged the groups: box size was computed"),
        (["tone", "box_size"], "perceived by annotators"),
        (["tone", "box_size"], "Not so box size, computed from boxes"),
        (["tone"], "perceived by annotators"),
    ],
)
def test_the_size_of_a_box_is_no_label(attributes, phrase):
    tables, of = runs.Tables(), runs.line("accuracy")
    rates = {("a",): (500, 0.7), ("b",): (500, 0.8)}
    runs.add_everyone(tables, of, 1000, 0.75)
    for attribute in attributes:
        runs.add_attribute(tables, of, attribute, rates, everyone=0.75)
    run = runs.run_of(tables)
    dataset = {"label_source": "perceived", "terms": {}}
    limits = summarise_run(replace(run, record={**run.record, "dataset": dataset})).limits
    (text,) = [text for text in limits if "judged the groups" in text or "perceived" in text]
    assert phrase in text
