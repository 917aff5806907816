"""What is said of a run, in which words and in which order; runs are small tables by hand."""

import re

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.analyses import group_gaps
from isolux.analyses.group_gaps import INFO, LEAD
from isolux.stats.references import of_methods
from isolux.vocabulary.containers import Run
from isolux.vocabulary.tables import (
    ATTRIBUTES,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    Status,
    check,
)
from isolux.vocabulary.words import OUTSIDE

RECORD = {
    "spec": {
        "level": 0.95,
        "correction": "max-t",
        "min_units": 50,
        "min_clusters": 10,
        "target": "job",
        "by": ("gender", "race", "race*gender"),
    },
    "dataset": {"terms": [["gender", "perceived gender presentation"]]},
    "clusters": {"column": None},
}
MEASURE = {"model": "erm", "task": "classification", "metric": "accuracy", "label": None}
MEASURE |= {"threshold": None}


def explain(run):
    return group_gaps.explain(run).findings


def pair(attribute="gender", a="Female", b="Male", value=-0.1, low=-0.15, high=-0.05, **more):
    row = {"attribute": attribute, "kind": "difference", "group_a": a, "group_b": b}
    row |= {"value": value, "low": low, "high": high, "p_value": 0.001, "p_adjusted": 0.002}
    row |= {"detectable": 0.06, "n_units_a": 378, "n_units_b": 1122, "n_clusters_a": 60}
    return MEASURE | row | {"n_clusters_b": 120, "status": "ok"} | more


def whole(kind, value=None, attribute="gender", **more):
    row = {"attribute": attribute, "kind": kind, "value": value, "status": "ok"}
    return MEASURE | row | more


def group(attribute="gender", name="Female", value=0.8, n=378, **more):
    row = {"attribute": attribute, "group": name, "values": name.split(" × ") if attribute else []}
    row |= {"value": value, "n_units": n, "n_clusters": n // 5, "status": "ok"}
    return MEASURE | row | more


def small(name, n, attribute="race", **more):
    return group(attribute, name, None, n, status="insufficient units", reason="under 50", **more)


EVERYONE = group(None, "everyone", 0.85, 1500)


def run_of(disparities=(), groups=(EVERYONE,), record=RECORD):
    return Run(
        record,
        SCORES.empty(),
        ATTRIBUTES.empty(),
        GROUP_METRICS.conform(pl.DataFrame(list(groups), infer_schema_length=None)),
        DISPARITIES.conform(pl.DataFrame(list(disparities), infer_schema_length=None))
        if disparities
        else DISPARITIES.empty(),
        FINDINGS.empty(),
    )


def claims(*disparities, groups=(EVERYONE,), record=RECORD):
    found = check(explain(run_of(disparities, groups, record)), FINDINGS)
    assert found["rank"].to_list() == list(range(1, found.height + 1))
    return found["claim"].to_list()


def test_a_difference_says_effect_interval_n_and_p_in_this_order():
    row = pair(value=-0.121, low=-0.163, high=-0.08)
    (told,) = claims(row)
    assert told == (
        "Accuracy for Female (perceived gender presentation) is 12.1 points lower (95 % interval "
        "8.0 to 16.3) than for Male; n = 378 and 1,122; adjusted p = 0.002."
    )


def test_a_finding_is_a_row_that_can_be_computed_with():
    found = explain(run_of([pair()])).row(0, named=True)
    assert found["analysis"] == "group_gaps"
    assert (found["effect"], found["low"], found["high"]) == (-0.1, -0.15, -0.05)
    assert (found["n"], found["p_adjusted"], found["status"]) == (1500, 0.002, Status.OK)
    assert (found["group_a"], found["group_b"]) == ("Female", "Male")
    assert (found["metric"], found["label"], found["attribute"]) == ("accuracy", None, "gender")
    assert found["reference"] == "westfall-young-1993"


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("false_negative_rate", 0.1, "10.0 points higher (worse; 95 % interval 5.0 to 15.0)"),
        # With --reference the second group of a row may be the worse one: it comes first.
        ("false_negative_rate", -0.1, "10.0 points higher (worse; 95 % interval 5.0 to 15.0)"),
        ("recall", 0.1, "10.0 points lower (95 % interval 5.0 to 15.0)"),
        (
            "selection_rate",
            -0.1,
            "10.0 points lower (neither way is better by itself; 95 % interval 5.0 to 15.0)",
        ),
    ],
)
def test_the_metrics_direction_is_said_where_lower_alone_does_not(metric, value, words):
    ends = {"low": -0.15, "high": -0.05} if value < 0 else {"low": 0.05, "high": 0.15}
    assert words in claims(pair(metric=metric, value=value, **ends))[0]


def test_an_interval_that_holds_0_is_of_how_much_lower():
    row = pair(value=-0.03, low=-0.08, high=0.02)
    assert "3.0 points lower (95 % interval −2.0 to 8.0)" in claims(row)[0]


def test_class_threshold_model_and_clusters_are_named():
    rows = [
        pair(metric="recall", label="nurse"),
        pair(metric="top_k_accuracy", threshold=5.0, model="arl"),
    ]
    groups = [EVERYONE, EVERYONE | {"model": "arl"}]
    record = RECORD | {"clusters": {"column": "subject"}}
    told = claims(*rows, groups=groups, record=record)
    assert any(c.startswith("erm: Recall of nurse for Female") for c in told)
    assert any(c.startswith("arl: Top-k accuracy at 5 for Female") for c in told)
    assert all("n = 378 and 1,122 in 60 and 120 clusters (subject)" in c for c in told)


def test_small_p_values_and_uncorrected_ones_are_said_as_such():
    assert "; adjusted p < 0.001." in claims(pair(p_adjusted=0.0005))[0]
    record = RECORD | {"spec": RECORD["spec"] | {"correction": "none"}}
    told = claims(pair(p_adjusted=0.04), record=record)[0]
    assert "; p = 0.040 (not adjusted for the other tests)." in told


def test_the_level_is_the_specs():
    record = RECORD | {"spec": RECORD["spec"] | {"level": 0.9}}
    # Found at 1 - .9 = .1, not at .05
    assert "(90 % interval" in claims(pair(p_adjusted=0.08), record=record)[0]
    assert claims(pair(p_adjusted=0.08))[0].startswith("No difference")


def test_the_worst_group_speaks_and_the_next_is_named_where_their_order_is_not_established():
    rows = [
        pair("race", "A", "B", -0.30, -0.58, -0.02),
        pair("race", "C", "B", -0.20, -0.25, -0.15),
        pair("race", "A", "C", -0.10, -0.40, 0.20, p_adjusted=0.9),
    ]
    told = claims(*rows)
    assert len(told) == 1
    assert told[0].startswith("Accuracy for A (race) is 30.0 points lower")
    assert (
        "2 of 3 pairs of groups differ by this test. For C it is 20.0 points lower (95 % interval "
        "15.0 to 25.0) than for B; which of the two is lower is not established." in told[0]
    )


def test_a_group_that_looks_worse_than_the_leader_is_named_with_its_doubt():
    rows = [
        pair("race", "A", "B", -0.30, -0.62, 0.02, p_adjusted=0.07),
        pair("race", "C", "B", -0.02, -0.03, -0.01),
    ]
    groups = [EVERYONE, *(group("race", n, v) for n, v in (("A", 0.65), ("B", 0.95), ("C", 0.93)))]
    told = claims(*rows, groups=groups)[0]
    assert told.startswith("Accuracy for C (race) is 2.0 points lower")
    assert (
        "For A it is 30.0 points lower (95 % interval \N{MINUS SIGN}2.0 to 62.0) than for B, a "
        "difference that is not established." in told
    )


def test_named_groups_speak_before_the_unknown():
    rows = [
        pair("race", "unknown", "B", -0.30, -0.35, -0.25),
        pair("race", "C", "B", -0.20, -0.25, -0.15),
    ]
    groups = [EVERYONE, *(group("race", n) for n in ("unknown", "B", "C"))]
    assert claims(*rows, groups=groups)[0].startswith("Accuracy for C (race)")
    # Where only the unknown differ, they do speak.
    assert claims(rows[0], groups=groups)[0].startswith("Accuracy for unknown (race)")


def test_what_is_known_leads_and_the_unknown_are_still_reported():
    rows = [
        pair("race", "unknown", "B", -0.60, -0.65, -0.55),
        pair("race", "A", "B", -0.03, -0.08, 0.02, p_adjusted=0.7),
        pair("gender", "Female", "Male", -0.10, -0.15, -0.05),
        pair("light", "dim", "bright", p_adjusted=0.4),
        pair("race*gender", "unknown × unknown", "A × Male", -0.7, -0.8, -0.6),
    ]
    names = {
        "race": ("A", "B", "unknown"),
        "gender": ("Female", "Male"),
        "light": ("dim", "bright"),
        "race*gender": ("unknown × unknown", "A × Male"),
    }
    groups = [EVERYONE, *(group(a, n) for a, own in names.items() for n in own)]
    found = explain(run_of(rows, groups))
    # The intersection says no more than race does.
    assert found["attribute"].to_list() == ["gender", "light", "race", "race*gender"]
    told = found["claim"][2]
    assert told.startswith(
        "No two known groups of race were found to differ in accuracy; the widest gap is 3.0 "
        "points, A below B. For unknown it is 60.0 points lower"
    )
    assert told.endswith("adjusted p = 0.002.")


def test_a_known_group_against_everyone_does_not_hide_that_the_unknown_differ():
    """Everyone holds the unknown: a known group may differ from everyone for them alone."""
    rows = [
        pair("race", "unknown", "B", -0.60, -0.65, -0.55),
        pair("race", "A", "everyone", 0.1, 0.05, 0.15, kind="difference_to_overall"),
        pair("race", "A", "B", -0.01, -0.05, 0.03, p_adjusted=0.9),
        pair("light", "dim", "bright", p_adjusted=0.4),
    ]
    groups = [EVERYONE, *(group("race", n) for n in ("A", "B", "unknown"))]
    told = claims(*rows, groups=groups)
    assert told[0].startswith("No difference in accuracy was found across light")
    assert told[1].startswith("No two known groups of race were found to differ in accuracy")
    assert "For unknown it is 60.0 points lower" in told[1]


def by_class(labels, **more):
    return [
        pair(metric="recall", label=label, value=-gap, low=-gap - 0.05, high=-gap + 0.05,
             p_adjusted=p, n_units_a=70 + i, **more)
        for i, (label, gap, p) in enumerate(labels)
    ]  # fmt: skip


def test_classes_are_told_together_after_the_main_metric():
    rows = by_class([("cook", 0.2, 0.01), ("nurse", 0.3, 0.002), ("smith", 0.1, 0.6)])
    per_class = [EVERYONE | {"metric": "recall", "label": c, "n_units": 500} for c in
                 ("cook", "nurse", "smith")]  # fmt: skip
    found = explain(run_of([*rows, pair()], [EVERYONE, *per_class]))
    assert (found["metric"][0], found["label"][0]) == ("accuracy", None)
    first = found.row(1, named=True)
    assert first["claim"] == (
        "Recall differs across perceived gender presentation in 2 of 3 classes, all tests taken "
        "together: most in nurse, where Female is 30.0 points below Male (95 % interval 25.0 to "
        "35.0); adjusted p = 0.002. It also differs in cook (Female is 20.0 points below Male). In "
        "the other class no difference was found."
    )
    assert (first["label"], first["effect"], first["n"]) == (None, -0.3, 1500)
    assert (first["low"], first["high"]) == (-0.35, -0.25)
    # Then single classes by strength, then the class without a finding.
    assert found.select("metric", "label").rows()[2:] == [
        ("recall", "nurse"), ("recall", "cook"), ("recall", "smith"),
    ]  # fmt: skip


def test_classes_without_a_finding_are_one_statement_and_their_own_come_last():
    rows = by_class([("cook", 0.02, 0.6), ("nurse", 0.03, 0.8)])
    tests = [whole("any_difference", 1.0, metric="recall", label=c, p_adjusted=p)
             for c, p in (("cook", 0.7), ("nurse", 0.9))]  # fmt: skip
    other = pair("light", "dim", "bright", p_adjusted=0.4)
    found = explain(run_of([*rows, *tests, other]))
    assert found["claim"][1 if found["metric"][0] == "accuracy" else 0] == (
        "No difference in recall was found across perceived gender presentation in any of 2 "
        "classes (smallest adjusted p = 0.700); the widest gap is in nurse, Female is 3.0 points "
        "below Male. This audit could have detected (power 0.8) a difference of 6.0 points in "
        "cook; smaller ones may exist."
    )
    assert found["label"].to_list()[2:] == ["cook", "nurse"]


def test_classes_in_which_only_the_unknown_differ_are_no_difference_of_known_groups():
    rows = [
        *by_class([("cook", 0.3, 0.01), ("nurse", 0.3, 0.6)], attribute="race", a="unknown", b="B"),
        *by_class([("cook", 0.05, 0.6), ("nurse", 0.04, 0.8)], attribute="race", a="A", b="B"),
    ]
    groups = [EVERYONE, *(group("race", n) for n in ("A", "B", "unknown"))]
    found = explain(run_of(rows, groups))
    assert found["claim"][0].startswith(
        "No two known groups of race were found to differ in recall"
    )
    assert "the widest gap is in cook, A is 5.0 points below B" in found["claim"][0]
    assert found["group_a"].to_list() == ["A", "unknown", "A"]


def test_one_class_alone_speaks_for_itself():
    assert explain(run_of(by_class([("cook", 0.2, 0.01)])))["label"].to_list() == ["cook"]


def test_what_chance_enlarges_is_said_beside_the_gap():
    record = {**RECORD, "task": "classification"}
    (told,) = claims(pair("race", "A", "B", metric="calibration_error"), record=record)
    assert told.endswith(
        "Chance alone makes this value larger, most in a small group; intervals and tests allow "
        "for that."
    )
    (told,) = claims(pair("race", "A", "B"), record=record)
    assert "Chance" not in told


def test_where_everyone_is_no_measure_the_finding_says_so():
    outside = [pair("race", g, "everyone", None, None, None, kind="difference_to_overall",
                    p_adjusted=None, status="undefined", reason=OUTSIDE) for g in "AB"]  # fmt: skip
    told = "Everyone's value lies outside the groups' values, so no group is compared with it."
    for p in (0.2, 0.001):
        (found,) = claims(*outside, pair("race", "A", "B", p_adjusted=p))
        assert found.endswith(told)
    (found,) = claims(pair("race", "A", "B"))
    assert told not in found


def test_a_group_of_too_few_clusters_is_named_though_it_has_a_value():
    few = group("race", "B", 0.5, 120, status="insufficient clusters", reason="fewer than 10")
    (told,) = claims(groups=[EVERYONE, group("race", "A"), few])
    assert told.startswith("Too little data to judge groups of race: B (n = 120")


def test_a_group_of_which_nobody_was_scored_is_named():
    """Where all of its people lack an answer or a truth, it would vanish from what is read."""
    groups = [EVERYONE, group("race", "A"), small("not sure", 0)]
    assert claims(groups=groups) == []
    groups[-1] |= {"status": "not scored", "reason": "nobody in this group was scored"}
    assert claims(groups=groups) == [
        "No value for groups of race: not sure (n = 0); nobody in this group was scored."
    ]


def test_a_group_that_differs_from_everyone_else_speaks_where_no_pair_does():
    rest = pair("race", "A", "everyone", -0.1, -0.15, -0.05, kind="difference_to_overall")
    told = claims(rest, pair("race", "A", "B", p_adjusted=0.2))
    assert told[0].startswith("Accuracy for A (race) is 10.0 points lower")
    assert "than for everyone; " in told[0]
    assert told[0].endswith("The test was against everyone else; no pair of groups stands out.")
    # A pair that differs goes before it.
    assert "than for B" in claims(rest, pair("race", "A", "B"))[0]
    # Of a page that hides pairs it is said of those that are there.
    told = claims(rest, pair("race", "A", "B", p_adjusted=0.2), record={**RECORD, "withheld": True})
    assert told[0].endswith("no pair of groups shown here stands out.")


def test_the_spread_beyond_chance_is_said():
    rows = [pair("race", "A", "B"), pair("race", "A", "C", -0.05, -0.1, 0.0, p_adjusted=0.3)]
    told = whole("noise_corrected_sd", 0.042, "race", low=0.021, high=0.08)
    assert claims(*rows, told)[0].endswith(
        "Beyond chance, the groups' values vary by 4.2 points (standard deviation; 95 % interval "
        "2.1 to 8.0)."
    )
    none = whole("noise_corrected_sd", 0.0, "race", low=0.0, high=0.03)
    assert "vary no more than chance alone would explain" in claims(*rows, none)[0]
    # Two groups have one gap; their spread would say it again.
    assert "chance" not in claims(pair(), whole("noise_corrected_sd", 0.07))[0]


def test_what_was_not_found_is_no_evidence_of_absence():
    rows = [
        pair("race", "A", "B", -0.02, -0.05, 0.01, p_adjusted=0.8, detectable=0.051),
        pair("race", "A", "C", -0.01, -0.09, 0.07, p_adjusted=0.9, detectable=0.123),
        whole("any_difference", 1.2, "race", p_value=0.3, p_adjusted=0.8),
        whole("range", 0.02, "race", low=0.0, high=0.07),
    ]
    (told,) = claims(*rows)
    assert told == (
        "No difference in accuracy was found across race (adjusted p = 0.800); the widest gap is "
        "2.0 points, A below B (95 % interval 0.0 to 7.0, not adjusted for the other tests). This "
        "audit could have detected (power 0.8) a difference of 5.1 points between A and B, and one "
        "of 12.3 points between A and C; smaller ones may exist."
    )
    # What could be seen is asked before looking, the bound after it: they are no contradiction.
    (bound,) = claims(*rows, whole("within", None, "race", high=0.08))
    assert bound == told.removesuffix(".") + (
        ", though going by the observed values, no two groups judged are more than 8.0 points "
        "apart (95 % upper bound, of this comparison alone)."
    )
    (wide,) = claims(*rows, whole("within", None, "race", high=0.13))
    assert wide == told + (
        " No two groups judged are more than 13.0 points apart (95 % upper bound, of this "
        "comparison alone)."
    )
    found = explain(run_of(rows)).row(0, named=True)
    assert (found["effect"], found["low"], found["high"]) == (-0.02, -0.07, 0.0)
    assert (found["n"], found["p_adjusted"]) == (1500, 0.8)


def test_the_range_of_other_groups_is_not_lent_to_a_pair():
    rows = [
        pair("race", "A", "B", -0.02, -0.05, 0.01, p_adjusted=0.8),
        whole("range", 0.3, "race", low=0.0, high=0.5),
    ]
    assert "the widest gap is 2.0 points, A below B. This audit" in claims(*rows)[0]
    assert explain(run_of(rows))["low"].to_list() == [None]


def test_what_could_have_been_seen_may_be_unknown():
    told = claims(pair(p_adjusted=0.8, detectable=None))[0]
    assert (
        "How small a difference this audit could have detected cannot be said from these "
        "data." in told
    )


def test_groups_with_one_value_have_no_widest_gap():
    told = claims(pair(value=0.0, low=-0.05, high=0.05, p_adjusted=1.0))[0]
    assert "; all groups judged have the same value. This audit could have detected" in told
    assert "widest gap" not in told
    same = by_class([("cook", 0.0, 0.9), ("nurse", 0.0, 0.9)])
    tests = [whole("any_difference", 0.1, metric="recall", label=c, p_adjusted=0.9)
             for c in ("cook", "nurse")]  # fmt: skip
    told = explain(run_of([*same, *tests]))["claim"][0]
    assert "classes (smallest adjusted p = 0.900); all groups judged have the same value." in told


def test_one_class_that_differs_is_not_told_twice_in_a_row():
    rows = by_class([("cook", 0.2, 0.01), ("nurse", 0.03, 0.8)])
    found = explain(run_of([*rows, pair("light", "dim", "bright", p_adjusted=0.4)]))
    assert found["claim"][0].startswith("Recall differs across perceived gender presentation in 1")
    assert found["claim"][0].endswith("In the other class no difference was found.")
    assert found["label"].to_list().index("cook") > 1  # said already, so it comes later
    assert set(found["label"]) == {None, "cook", "nurse"}


def test_labels_that_are_no_classes_are_called_what_they_are():
    rows = by_class([("TPR", 0.2, 0.01), ("FPR", 0.3, 0.02)], task="counts")
    told = explain(run_of(rows))["claim"][0]
    assert "in 2 of 2 measures, all tests" in told
    parts = by_class([("nose", 0.0, 0.9), ("ear", 0.1, 0.9)], task="keypoints")
    told = explain(run_of(parts))["claim"].to_list()
    assert any("in any of 2 keypoints" in one for one in told)


def test_a_group_without_a_value_for_another_reason_than_its_size_is_told_that_reason():
    why = "600 impostor pairs; a value at a false accept rate of 0.001 needs 1,000"
    few = [small("A", 600) | {"reason": why}, group("race", "B")]
    told = claims(groups=[EVERYONE, *few])[0]
    assert f"A (n = 600). A: {why}. How well the model works" in told
    assert "A group needs" not in told


def test_a_difference_as_a_whole_without_a_pair():
    rows = [
        pair("race", "A", "B", p_adjusted=0.07),
        whole("any_difference", 2.9, "race", p_adjusted=0.03),
    ]
    told = claims(*rows)[0]
    assert told.startswith("Accuracy differs across race (adjusted p = 0.030), but no single pair")
    assert "the widest gap is 10.0 points, A below B" in told
    told = claims(*rows, record={**RECORD, "withheld": True})[0]
    assert (
        "no single pair of groups shown here stands out; the widest gap shown here is 10.0" in told
    )


def test_groups_too_small_are_named_with_their_n():
    groups = [EVERYONE, group("race", "A"), small("Z", 12), small("Y", 31)]
    found = explain(run_of((), groups))
    (told,) = found["claim"].to_list()
    assert told == (
        "Too little data to judge groups of race: Y (n = 31) and Z (n = 12). A group needs 50 "
        "units and 10 clusters. How well the model works for them is unknown."
    )
    row = found.row(0, named=True)
    assert (row["n"], row["status"], row["effect"]) == (31, "insufficient units", None)
    assert row["attribute"] == "race"


def test_a_group_too_small_for_some_measures_only_says_for_how_many():
    recall = {"metric": "recall", "label": "cook"}
    groups = [EVERYONE, EVERYONE | recall, group("race", "A", n=80), small("A", 20, **recall)]
    told = claims(groups=groups)[0]
    assert "of race, on some measures: A (1 of 2 measures; at most n = 20)" in told
    assert told.endswith("How well the model works for them by those measures is unknown.")


def test_ends_of_an_interval_have_as_many_decimals_as_the_value_beside_it():
    told = claims(pair("race", "A", "B", value=-0.11, low=-0.363, high=-0.00033, p_adjusted=0.01))
    assert "11.0 points lower (95 % interval 0.0 to 36.3)" in told[0]
    told = claims(pair("race", "A", "B", value=-0.0003, low=-0.0005, high=-0.0001, p_adjusted=0.01))
    assert "0.030 points lower (95 % interval 0.010 to 0.050)" in told[0]


def test_a_class_of_the_target_among_people_of_another_is_no_news():
    recall = {"metric": "recall", "label": "cook"}
    nobody = small("smith", 0, "job", **recall)
    assert claims(groups=[EVERYONE, group("job", "smith"), nobody]) == []
    few = small("smith", 3, "job", **recall)
    assert len(claims(groups=[EVERYONE, group("job", "smith"), few])) == 1


def test_values_that_cannot_be_computed_are_said_apart():
    undefined = group("race", "A", None, 80, status="undefined", reason="nobody was selected")
    assert claims(groups=[EVERYONE, undefined]) == [
        "No value for groups of race: A (n = 80); nobody was selected."
    ]


def test_many_small_groups_are_counted():
    groups = [EVERYONE, *(small(f"g{i:02}", 40 - i) for i in range(14))]
    told = claims(groups=groups)[0]
    assert "g09 (n = 31) and 4 more groups." in told
    assert "g10" not in told


def test_a_boundary_status_is_said_with_its_reason():
    found = explain(run_of([pair(status="boundary", reason="17 clusters")]))
    assert found["claim"][0].endswith(
        "Read this interval with caution, it may be too narrow: 17 clusters."
    )
    assert found["status"].to_list() == ["boundary"]


def test_order_found_then_small_then_not_found_then_said_again():
    rows = [
        pair("gender", "Female", "Male", -0.10, -0.12, -0.08),
        pair("race", "A", "B", -0.20, -0.25, -0.15),
        # Its lower end, 18 points, does not exceed race's 20: not shown to be more than race.
        pair("race*gender", "A × Female", "B × Male", -0.24, -0.30, -0.18),
        pair("light", "dim", "bright", p_adjusted=0.4),
        # One minus the accuracy, of the same people: the same statement.
        pair("race", "A", "B", 0.20, 0.15, 0.25, metric="false_negative_rate"),
        pair("light*race", "dim × A", "bright × A", p_adjusted=0.4),
    ]
    found = explain(run_of(rows, [EVERYONE, small("Z", 12)]))
    assert found.select("attribute", "metric").rows() == [
        ("race", "accuracy"),
        ("gender", "accuracy"),
        ("race", None),
        ("light", "accuracy"),
        ("race*gender", "accuracy"),
        ("race", "false_negative_rate"),
        ("light*race", "accuracy"),
    ]


def test_an_intersection_that_exceeds_its_parts_comes_before_them():
    rows = [
        pair("race", "A", "B", -0.13, -0.15, -0.11),
        pair("race*gender", "A × Female", "B × Male", -0.43, -0.47, -0.39),
    ]
    assert explain(run_of(rows))["attribute"].to_list() == ["race*gender", "race"]


def test_worse_by_being_higher_ranks_as_worse_by_being_lower_does():
    rows = [
        pair("light", "dim", "bright", p_adjusted=0.4),
        pair("race", "A", "B", -0.2, -0.3, -0.1, metric="balanced_accuracy"),
        pair("gender", "Female", "Male", 0.4, 0.3, 0.5, metric="false_negative_rate"),
    ]
    assert explain(run_of(rows))["attribute"].to_list() == ["gender", "race", "light"]


def test_the_main_metric_and_metrics_that_have_a_better_direction_come_first():
    rows = [
        pair("race", "A", "B", -0.9, -0.95, -0.85, metric="selection_rate"),
        pair("race", "A", "B", -0.5, -0.6, -0.4, metric="balanced_accuracy"),
        pair("race", "A", "B", -0.1, -0.15, -0.05),
    ]
    found = explain(run_of(rows))["metric"].to_list()
    assert found == ["accuracy", "balanced_accuracy", "selection_rate"]
    spec = RECORD["spec"] | {"metric": ["balanced_accuracy", "accuracy"]}
    asked = run_of(rows, record=RECORD | {"spec": spec})
    assert explain(asked)["metric"].to_list()[0] == "balanced_accuracy"


def test_the_worst_group_speaks_for_an_attribute_whatever_its_size():
    everyone = EVERYONE | {"n_units": 2000}
    sizes = {"n_units_a": 900, "n_units_b": 950}
    tones = [
        pair("tone", "10", "3", -0.19, -0.24, -0.15),  # 378 and 1,122 of 2,000: under a fifth
        pair("tone", "darker", "lighter", -0.13, -0.16, -0.10) | sizes,
    ]
    told = explain(run_of(tones, [everyone]))["claim"][0]
    assert told.startswith("Accuracy for 10 (tone) is 19.0 points lower")


def test_a_metric_at_a_second_threshold_is_not_told_again_among_what_leads():
    rows = [
        pair("race", "A", "B", -0.2, -0.25, -0.15, metric="found", threshold=0.5),
        pair("race", "A", "B", -0.21, -0.26, -0.16, metric="found", threshold=0.75),
        pair("light", "dim", "bright", p_adjusted=0.4, metric="found", threshold=0.5),
        pair("light", "dim", "bright", p_adjusted=0.5, metric="found", threshold=0.75),
    ]
    found = explain(run_of(rows))
    assert found["attribute"].to_list() == ["race", "light", "race", "light"]


def test_a_spread_that_the_unknown_are_part_of_is_not_told_of_known_groups():
    rows = [
        pair("race", "A", "B", -0.2, -0.25, -0.15),
        pair("race", "A", "C", -0.1, -0.15, -0.05),
        whole("noise_corrected_sd", 0.08, attribute="race"),
    ]
    names = [group("race", n) for n in ("A", "B", "C")]
    assert "vary by 8.0 points" in explain(run_of(rows, [EVERYONE, *names]))["claim"][0]
    rows.append(pair("race", "unknown", "B", -0.1, -0.15, -0.05))
    told = explain(run_of(rows, [EVERYONE, *names, group("race", "unknown")]))["claim"][0]
    assert "2 of 2 pairs of groups differ" in told
    assert "spread" not in told


def test_the_lead_has_some_of_each_kind():
    many = [
        pair(metric="recall", label=f"c{i:02}", value=-0.3 + i / 200, low=-0.4, high=-0.2 + i / 200)
        for i in range(30)
    ]
    rows = [*many, pair("light", "dim", "bright", p_adjusted=0.4)]
    found = explain(run_of(rows, [EVERYONE, small("Z", 12)]))
    lead = found.filter(pl.col("rank") <= LEAD)
    assert {"race", "light"} <= set(lead["attribute"])
    # One finding for all 30 classes leads, and other kinds go before the third class.
    assert "in 30 of 30 classes" in found["claim"][0]
    assert found["label"].to_list()[:6] == [None, None, None, "c00", "c01", "c02"]
    assert found["label"].drop_nulls().to_list() == [f"c{i:02}" for i in range(30)]
    assert found.height == 33


def test_an_empty_run_gives_an_empty_table():
    empty = Run(
        {}, *(t.empty() for t in (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS))
    )
    found = explain(empty)
    assert found.height == 0
    assert found.schema == pl.Schema(FINDINGS.schema)


def test_a_run_without_groups_gives_nothing():
    assert claims() == []


def test_a_task_that_is_not_installed_is_called_by_its_names():
    told = claims(
        pair(task="gaze", metric="angular_error"),
        groups=[EVERYONE | {"task": "gaze", "metric": "angular_error"}],
    )
    assert told[0].startswith("Angular error for Female")
    assert "neither way is better by itself" in told[0]


def test_row_order_does_not_matter_and_inputs_stay_as_they_were():
    rows = [
        pair("gender", "Female", "Male", -0.10, -0.12, -0.08),
        pair("race", "A", "B", -0.20, -0.25, -0.15),
        pair("race", "A", "C", -0.20, -0.25, -0.15),
        pair("light", "dim", "bright", p_adjusted=0.4),
        whole("any_difference", 2.9, "light", p_adjusted=0.4),
    ]
    groups = [EVERYONE, small("Z", 12), small("Y", 12), group("race", "A")]
    run = run_of(rows, groups)
    before = (run.disparities.clone(), run.group_metrics.clone())
    found = explain(run)
    assert run.disparities.equals(before[0])
    assert run.group_metrics.equals(before[1])
    assert explain(run_of(rows[::-1], groups[::-1])).equals(found)


def test_what_a_group_is_called_does_not_move_its_place():
    def ranked(a, b):
        rows = [
            pair("race", a, "x", -0.20, -0.25, -0.15),
            pair("race", b, "x", -0.10, -0.15, -0.05),
            pair("gender", value=-0.3, low=-0.35, high=-0.25),
        ]
        return explain(run_of(rows))["effect"].to_list()

    assert ranked("A", "B") == ranked("B", "A") == ranked("×", "<script>") == [-0.3, -0.2]


def test_the_sources_of_the_corrections_are_those_that_the_report_lists():
    for correction in ("max-t", "holm", "bh"):
        record = RECORD | {"spec": RECORD["spec"] | {"correction": correction}}
        key = explain(run_of([pair()], record=record))["reference"][0]
        assert key in {r.key for r in of_methods("logit-t", correction)}


def test_info_cites_and_assumes():
    assert INFO.references
    assert all(r.citation for r in INFO.references)
    assert INFO.assumptions


def test_a_gap_that_was_chosen_for_its_size_is_told_shrunken_too():
    rng = np.random.default_rng(3)
    names = [f"a{k}" for k in range(8)]
    people = {"unit_id": [str(i) for i in range(1500)]}
    people |= {name: rng.choice(["x", "y", "z"], 1500) for name in names}
    rate = np.where(people["a0"] == "x", 0.72, 0.84)
    frame = pl.DataFrame(people | {"value": (rng.random(1500) < rate).astype(float)})
    found = isolux.audit(frame.select("unit_id", "value"), frame.drop("value"), by=names,
                         replicates=300).findings  # fmt: skip
    told = found["claim"][0]
    assert "9.7 points lower" in told
    (shrunken,) = re.findall(r"Chosen from 24 gaps .* it is ([0-9.]+) points\.", told)
    assert 5 < float(shrunken) < 9
    assert not found["claim"][1:].str.contains("Chosen from").any()


def test_a_gap_beyond_doubt_is_told_as_it_is():
    frame = pl.DataFrame({"unit_id": [str(i) for i in range(800)], "tone": ["a", "b"] * 400,
                          "value": [1.0, 0.0, 1.0, 1.0] * 200})  # fmt: skip
    found = isolux.audit(frame.select("unit_id", "value"), frame.drop("value"), by="tone",
                         replicates=300).findings  # fmt: skip
    assert "Chosen from" not in found["claim"][0]


def test_a_group_that_is_large_enough_but_for_one_class_is_told_so():
    """87 people are not fewer than 50; the 41 of one class are."""
    auc = {"metric": "roc_auc"}
    why = "fewer than 50 units of one class: 41"
    groups = [
        EVERYONE,
        EVERYONE | auc,
        group("race", "A", n=87),
        small("A", 87) | auc | {"reason": why},
    ]
    told = claims(groups=groups)[0]
    assert "A (1 of 2 measures; at most n = 87, but fewer than 50 units of one class: 41)" in told


def test_a_name_of_500_letters_does_not_drown_a_claim():
    long = "L" * 500
    rows = [pair(a=long), whole("any_difference", p_adjusted=0.002)]
    found = explain(run_of(rows, [EVERYONE, group(name=long), group(name="Male", value=0.9)]))
    assert found.height
    assert all(len(claim) < 500 for claim in found["claim"])
    assert found["group_a"].drop_nulls().to_list()[0] == long
