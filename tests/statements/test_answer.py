"""What an audit states and in which order: of tables by hand, as data and short key phrases."""

import pytest

from isolux.core.formatting import UNTESTED
from isolux.statements.answer import MAX_FURTHER, answer_from_run
from isolux.statements.choice import choose_statements
from tests.statements._runs import MEASURE, block, run_of, small

RACES = {"Asian": 0.93, "Black": 0.60, "White": 0.95}
BLACK = [("Black", "White", 0.001), ("Black", "Asian", 0.001), ("Asian", "White", 0.5)]
SEXES = {"Female": 0.80, "Male": 0.90}
FEMALE = ("Female", "Male", 0.002)
NOTHING = block({"dim": 0.85, "bright": 0.9}, ("dim", "bright", 0.4), attribute="light")
VERIFICATION = {"task": "face_verification", "threshold": 0.5}


def stated(*blocks, **spec):
    """Each fact as (attribute, metric, group, reference)."""
    choice = choose_statements(run_of(*blocks, **spec))
    return [(s.attribute, s.line.metric, s.row["group"], s.row["reference"]) for s in choice.stated]


def also(*blocks):
    return [s.other_measures for s in choose_statements(run_of(*blocks)).stated]


def counted(further, phrase):
    return sum(phrase in sentence.lower() for sentence in further)


def test_the_worst_group_of_single_attributes_leads_and_each_other_attribute_follows():
    race, sex = block(RACES, *BLACK), block(SEXES, FEMALE, attribute="sex")
    choice = choose_statements(run_of(sex, NOTHING, race))
    facts = [(s.attribute, s.row["group"]) for s in choice.stated]
    assert facts == [("race", "Black"), ("sex", "Female")]
    assert {m: found for m, (_, found) in choice.unestablished.items()} == {"accuracy": ("light",)}
    answer = answer_from_run(run_of(sex, NOTHING, race))
    assert answer.attributes == ("race", "sex", "light")
    assert answer.line == MEASURE
    for part in ("Black", "White", "60", "95", "35.0 points", "34.0 to 36.0", "p = 0.001"):
        assert part in answer.first
    assert "worse for Black" in answer.first
    assert counted(answer.further, "also for people labelled female") == 1


def test_both_are_named_where_the_order_of_the_first_two_is_not_established():
    values = {"Black": 0.60, "Indian": 0.62, "White": 0.95}
    pairs = [("Black", "White", 0.001), ("Indian", "White", 0.001)]
    first = answer_from_run(run_of(block(values, *pairs, ("Black", "Indian", 0.7)))).first
    assert first.index("Black") < first.index("Indian")
    answer = answer_from_run(run_of(block(values, *pairs, ("Black", "Indian", 0.01))))
    assert "Indian" not in answer.first
    assert counted(answer.further, "also for indian") == 1


@pytest.mark.parametrize(("second", "is_open"), [(0.93, False), (0.61, True)])
def test_beside_a_reference_alone_intervals_tell_whether_the_order_is_open(second, is_open):
    """Nobody compared the two: 34 to 36 points below White do not meet 1 to 3, but 33 to 35."""
    values = {"Black": 0.60, "Asian": second, "White": 0.95}
    rows = block(values, ("Black", "White", 0.001), ("Asian", "White", 0.001))
    answer = answer_from_run(run_of(rows, reference=["race=White"]))
    assert "Black" in answer.first
    assert ("perhaps as badly: Asian" in answer.first) is is_open
    assert "Asian" in answer.further[0]


def test_a_group_that_looks_worse_comes_after_the_leader_as_perhaps():
    run = run_of(block(RACES, ("Asian", "White", 0.001), ("Black", "White", 0.2)))
    choice, answer = choose_statements(run), answer_from_run(run)
    assert choice.stated[0].row["group"] == "Asian"
    assert [(s.row["group"], s.row["is_established"]) for s in choice.rivals] == [("Black", False)]
    (perhaps,) = (s for s in answer.further if s.startswith("Perhaps"))
    assert "Black" in perhaps
    assert "not established" in perhaps
    assert "Black" not in answer.first


def test_one_group_above_all_others_is_what_the_sentence_says():
    values = {"A": 0.80, "B": 0.81, "C": 0.82, "D": 0.95}
    pairs = [*((x, "D", 0.001) for x in "ABC"), *((x, y, 0.9) for x, y in ("AB", "AC", "BC"))]
    first = answer_from_run(run_of(block(values, *pairs))).first
    assert "better for people labelled D" in first
    assert "worse for" not in first


def test_three_sentences_follow_and_the_rest_is_counted():
    values = {name: 0.60 + i / 20 for i, name in enumerate("ABCDEF")} | {"Z": 0.95}
    pairs = [(name, "Z", 0.001) for name in "ABCDEF"]
    pairs += [("A", name, 0.001) for name in "BCDEF"]
    answer = answer_from_run(run_of(block(values, *pairs), block(SEXES, FEMALE, attribute="sex")))
    assert counted(answer.further, "also for") == MAX_FURTHER
    assert counted(answer.further, "labelled female") == 1  # each attribute before more groups
    assert counted(answer.further, "3 more groups") == 1  # of B to F and Female


def test_of_an_error_the_highest_value_leads():
    values = {"Asian": 0.07, "Black": 0.40, "White": 0.05}
    rows = block(values, *BLACK, metric="error_rate")
    measures = {"error_rate": {"title": "Error rate", "unit": "fraction", "direction": "lower"}}
    answer = answer_from_run(run_of(rows, record={"measures": measures}))
    assert "worse for Black" in answer.first
    assert "35.0 points higher" in answer.first


@pytest.mark.parametrize("metric", ["selection_rate", "a_metric_of_another_package"])
def test_a_metric_without_a_direction_is_lower_and_never_worse(metric):
    answer = answer_from_run(run_of(block(RACES, *BLACK, metric=metric)))
    assert "lower for Black people" in answer.first
    assert "worse" not in " ".join([answer.first, *answer.further])


@pytest.mark.parametrize(("p", "leads"), [(0.01, "Asian"), (0.4, None)])
def test_the_unknown_never_lead_and_are_stated_last(p, leads):
    values = {"Asian": 0.93, "White": 0.95, "unknown": 0.30}
    rows = block(values, ("unknown", "White", 0.001), ("unknown", "Asian", 0.001),
                 ("Asian", "White", p))  # fmt: skip
    choice, answer = choose_statements(run_of(rows)), answer_from_run(run_of(rows))
    groups = [s.row["group"] for s in choice.stated]
    assert groups == ([leads, "unknown"] if leads else ["unknown"])
    assert "unknown" not in answer.first
    assert "unknown" in answer.further[-1]
    assert ("Asian" in answer.first) == (leads is not None)


def test_a_status_other_than_ok_leads_with_its_caution():
    caution = {"Black": {"status": "few clusters", "reason": "17 clusters"}}
    first = answer_from_run(run_of(block(RACES, *BLACK, status=caution))).first
    assert "worse for Black" in first
    assert "caution: 17 clusters" in first


@pytest.mark.parametrize(("group", "word"), [("Black", "worse"), ("White", "better")])
def test_a_group_against_everyone_speaks_where_no_pair_is_established(group, word):
    run = run_of(block(RACES, ("Black", "White", 0.2), (group, "overall", 0.01)))
    assert stated(block(RACES, ("Black", "White", 0.2), (group, "overall", 0.01))) == [
        ("race", "accuracy", group, None)
    ]
    first = answer_from_run(run).first
    assert f"{word} for {group} people than for everyone" in first


def test_pairs_that_cannot_be_tested_are_told_and_lead_nothing():
    untested = {"Black": {"reason": UNTESTED}}
    rows = block({"Black": 0.0, "White": 1.0}, ("Black", "White", None), status=untested)
    choice, answer = choose_statements(run_of(rows)), answer_from_run(run_of(rows))
    assert choice.leaders == ()
    assert [s.row["group"] for s in choice.untested] == ["Black"]
    assert "100.0 points lower for Black" in answer.first
    assert "cannot be tested" in answer.first


@pytest.mark.parametrize(("black", "leads"), [(0.82, "race*sex"), (0.45, "race")])
def test_an_intersection_leads_only_if_its_interval_exceeds_each_attributes_gap(black, leads):
    race = block({"Black": black, "White": 0.95}, ("Black", "White", 0.001))
    sex = block(SEXES, FEMALE, attribute="sex")
    both = block({"Black × Female": 0.5, "White × Male": 0.95},
                 ("Black × Female", "White × Male", 0.001), attribute="race*sex")  # fmt: skip
    run = run_of(race, sex, both)
    assert choose_statements(run).stated[0].attribute == leads
    answer = answer_from_run(run)
    assert answer.attributes[0] == leads
    assert "Black" in answer.first
    assert ("Female" in answer.first) == (leads == "race*sex")


def test_a_metric_that_shows_the_same_gap_again_is_added_to_the_finding():
    parts = [block(RACES, *BLACK)]
    parts += [block(RACES, *BLACK, metric=name) for name in ("balanced_accuracy", "macro_f1")]
    parts.append(block({"Black": 0.2, "White": 0.5}, ("Black", "White", 0.01),
                       metric="selection_rate"))  # fmt: skip
    assert stated(*parts) == [
        ("race", "accuracy", "Black", "White"),
        ("race", "selection_rate", "Black", "White"),  # another fact: neither way is better
    ]
    first, second = also(*parts)
    assert len(first) == 2
    assert second == []


def test_another_group_of_a_second_metric_is_another_fact():
    other = block(RACES, ("Asian", "White", 0.01), metric="balanced_accuracy")
    assert stated(block(RACES, *BLACK), other) == [
        ("race", "accuracy", "Black", "White"),
        ("race", "balanced_accuracy", "Asian", "White"),
    ]


def test_an_intersection_with_the_target_is_the_same_people():
    sizes = {"Black": 61, "Black × cat": 61, "White": 700, "White × cat": 700}
    race = block({"Black": 0.6, "White": 0.95}, ("Black", "White", 0.001), sizes=sizes)
    target = block({"Black × cat": 0.6, "White × cat": 0.95},
                   ("Black × cat", "White × cat", 0.001), sizes=sizes,
                   attribute="race*truth")  # fmt: skip
    assert stated(race, target) == [("race", "accuracy", "Black", "White")]


def test_classes_come_after_the_whole_and_are_counted_in_one_fact():
    """Of other groups: a class by which the leading group is worse again is the same fact."""
    classes = [
        block({"Asian": 0.93 - i / 10, "White": 0.95}, ("Asian", "White", 0.01), metric="recall",
              label=label)
        for i, label in enumerate(("cook", "nurse", "smith"))
    ]  # fmt: skip
    run = run_of(*classes, block(RACES, *BLACK))
    whole, of_class = choose_statements(run).stated
    assert (whole.line.metric, whole.line.label) == ("accuracy", None)
    # The farthest near end: 0.21 of smith.
    assert (of_class.line.label, of_class.row["group"]) == ("smith", "Asian")
    assert of_class.n_classes + len(of_class.other_measures) == 2


@pytest.mark.parametrize("other", ["Black", "Asian"])
def test_two_kinds_of_error_that_hit_different_groups_are_one_sentence(other):
    false = block({"Black": 0.2, "Asian": 0.02, "White": 0.01}, *BLACK,
                  metric="false_match_rate", **VERIFICATION)  # fmt: skip
    missed = block({"Black": 0.01, "Asian": 0.02, "White": 0.02} | {other: 0.3},
                   (other, "White", 0.001), metric="false_non_match_rate",
                   **VERIFICATION)  # fmt: skip
    first = answer_from_run(run_of(false, missed, record={"task": "face_verification"})).first
    assert "false match rate" in first.lower()
    assert ("worse" in first) == (other == "Black")
    assert ("non-match" in first) == (other == "Asian")
    assert ("Asian" in first) == (other == "Asian")


def test_where_nothing_is_established_the_largest_end_of_all_judged_known_pairs_is_the_bound():
    race = block({"A": 0.80, "B": 0.85, "unknown": 0.2}, ("A", "B", 0.3), ("unknown", "A", 0.3),
                 half=0.08)  # fmt: skip
    light = block({"dim": 0.9, "bright": 0.85}, ("dim", "bright", 0.3), attribute="light",
                  half=0.123)  # fmt: skip
    choice = choose_statements(run_of(race, light))
    assert choice.stated == ()
    assert choice.unestablished["accuracy"][1] == ("race", "light")
    answer = answer_from_run(run_of(race, light))
    # A − B: −.13 to .03; dim − bright: −.073 to .173. Each pair's own interval is half as wide.
    assert "17.3 points" in answer.first
    assert "cannot be ruled out" in answer.first
    assert answer.line == MEASURE


def test_without_simultaneous_intervals_no_bound_is_named():
    rows = block({"A": 0.80, "B": 0.85}, ("A", "B", 0.3))
    for row in rows:
        row.pop("simultaneous_low", None)
        row.pop("simultaneous_high", None)
    assert "ruled out" not in answer_from_run(run_of(rows)).first
    # And a leader has its own interval: −.355 to −.345.
    rows = block({"A": 0.60, "B": 0.95}, ("A", "B", 0.01))
    for row in rows:
        row.pop("simultaneous_low", None)
        row.pop("simultaneous_high", None)
    assert "34.5 to 35.5" in answer_from_run(run_of(rows)).first


def test_groups_too_small_to_judge_are_counted():
    run = run_of(block(RACES, *BLACK), small("Pacific", 12), small("Arab", 31))
    assert counted(answer_from_run(run).further, "2 groups by race have too little data") == 1


def test_a_published_run_says_nothing_of_groups_that_are_hidden():
    race = block({"A": 0.80, "B": 0.85}, ("A", "B", 0.3))
    answer = answer_from_run(run_of(race, record={"withheld": True}))
    assert "shown here" in answer.first
    assert "were compared" in answer.further[-1]
    alone = answer_from_run(run_of(block({"A": 0.80}), record={"withheld": True}))
    assert "shown here" in alone.first


def test_groups_of_one_value_are_not_called_too_small():
    same = answer_from_run(run_of(block({"A": 0.8, "B": 0.8}, ("A", "B", None))))
    assert "have the same accuracy" in same.first


def test_the_order_of_rows_changes_nothing():
    parts = [block(RACES, *BLACK), block(SEXES, FEMALE, attribute="sex"), NOTHING]
    one = answer_from_run(run_of(*parts))
    two = answer_from_run(run_of(*(part[::-1] for part in parts)))
    assert (one.first, one.further, one.attributes) == (two.first, two.further, two.attributes)
