"""Vote rules on FACET-like skin tones: sums of three annotators' votes per tone."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux.core.spec import Grouping
from isolux.groups import build_membership
from isolux.groups.vote_rules import VoteRule, drop_duplicate_pairs, parse_vote_rule


def votes(rows, **extra):
    """Make an attributes table of (unit, value, votes) or (unit, value, votes, annotator)."""
    columns = ["unit_id", "value", "votes", "annotator"]
    schema = dict.fromkeys(columns, pl.String) | {"votes": pl.Float64}
    padded = [(*row, *[None] * (4 - len(row))) for row in rows]
    frame = pl.DataFrame(padded, schema=schema, orient="row")
    return frame.with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit("tone"), **extra)


def groups_of(attributes, rule, units=None, **how):
    grouping = {"tone": Grouping(attribute="tone", votes=rule, **how)}
    frame = build_membership(attributes, ["tone"], grouping, units=units).frame
    found: dict[str, list[str]] = {}
    for group, unit in frame.select("group", "unit_id").rows():
        found.setdefault(unit, []).append(group)
    return found


# p: tones 3 and 4, one vote each (FACET's own example of a person in two groups)
# q: tone 9 twice, tone 10 twice, tone 2 once
# r: tone 5 once, "cannot be determined" twice
# s: only "cannot be determined"
PEOPLE = [
    ("p", "3", 1), ("p", "4", 1),
    ("q", "10", 2), ("q", "9", 2), ("q", "2", 1),
    ("r", "5", 1), ("r", None, 2),
    ("s", None, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Known wins: r's one vote for tone 5 stands, and r is not in "unknown".
        ("any", {"p": ["3", "4"], "q": ["2", "9", "10"], "r": ["5"], "s": ["unknown"]}),
        # FACET's count (Table 3 sums to more than 100 %): unknown counts too, so r is in both.
        (
            "any+unknown",
            {"p": ["3", "4"], "q": ["2", "9", "10"], "r": ["5", "unknown"], "s": ["unknown"]},
        ),
        # A tie is in all of its groups: p has one vote for 3 and for 4, q two for 9 and for 10.
        # Unknown is an answer: r has 2 votes for it against 1.
        ("top", {"p": ["3", "4"], "q": ["9", "10"], "r": ["unknown"], "s": ["unknown"]}),
        ("top-or-none", {"p": ["unknown"], "q": ["unknown"], "r": ["unknown"], "s": ["unknown"]}),
        # Denominators 2, 5, 3, 3; more than half means 2, 3, 2, 2 votes or more.
        ("majority", {"p": ["unknown"], "q": ["unknown"], "r": ["unknown"], "s": ["unknown"]}),
        ("at-least:2", {"p": ["unknown"], "q": ["9", "10"], "r": ["unknown"], "s": ["unknown"]}),
        ("at-least:1", {"p": ["3", "4"], "q": ["2", "9", "10"], "r": ["5"], "s": ["unknown"]}),
    ],
)
def test_published_rules_on_four_people(rule, expected):
    assert groups_of(votes(PEOPLE), rule) == expected


def test_majority_of_named_annotators_counts_people_not_rows():
    # Three annotators, each of whom chose two adjacent tones: 3+4, 4+5, 4+5. Tone 4 has 3 of 3,
    # tone 5 has 2 of 3, tone 3 has 1 of 3. Of the 6 rows, tone 5 would have only 2 of 6.
    rows = [
        ("p", "3", None, "x"), ("p", "4", None, "x"),
        ("p", "4", None, "y"), ("p", "5", None, "y"),
        ("p", "4", None, "z"), ("p", "5", None, "z"),
    ]  # fmt: skip
    assert groups_of(votes(rows), "majority") == {"p": ["4", "5"]}
    unnamed = [row[:3] for row in rows]
    assert groups_of(votes(unnamed), "majority") == {"p": ["unknown"]}  # 3 of 6 is not more


def test_those_who_could_not_tell_are_in_the_denominator():
    # 2 of 3 is a majority, 2 of 4 is not.
    assert groups_of(votes([("p", "3", 2), ("p", None, 1)]), "majority") == {"p": ["3"]}
    assert groups_of(votes([("p", "3", 2), ("p", None, 2)]), "majority") == {"p": ["unknown"]}


def test_a_repeated_row_of_one_annotator_is_one_vote():
    rows = [("p", "3", None, "x"), ("p", "3", None, "x"), ("p", "4", None, "y")]
    assert groups_of(votes(rows), "top-or-none") == {"p": ["unknown"]}
    assert groups_of(votes(rows), "at-least:2") == {"p": ["unknown"]}


def test_rows_without_votes_count_one_each():
    rows = [("p", "3", None), ("p", "3", None), ("p", "4", None)]
    assert groups_of(votes(rows), "top-or-none") == {"p": ["3"]}
    assert groups_of(votes(rows), "at-least:2") == {"p": ["3"]}


def test_a_row_with_no_votes_is_no_answer():
    # FACET's columns skin_tone_1..10 hold 0 for tones that nobody chose.
    assert groups_of(votes([("p", "3", 0), ("p", "4", 1)]), "any") == {"p": ["4"]}
    assert groups_of(votes([("p", "3", 0)]), "any") == {"p": ["unknown"]}


@pytest.mark.parametrize(
    ("rule", "sizes", "fate"),
    [("top", {"1": 3, "2": 3, "10": 2}, "are in every known group of it"),
     ("top-or-none", {"1": 1, "2": 1, "unknown": 3}, "count as unknown")],
)  # fmt: skip
def test_a_tie_never_goes_to_the_lighter_tone_and_is_counted(rule, sizes, fate):
    # a is 1 and b is 2 by two votes of three. Ties: c of 1 and 10, d of 2 and 10, e of 1 and 2.
    rows = [("a", "1", 2), ("a", "2", 1), ("b", "2", 2), ("b", "1", 1), ("c", "1", 1),
            ("c", "10", 1), ("d", "2", 1), ("d", "10", 1), ("e", "1", 3),
            ("e", "2", 3)]  # fmt: skip
    found = build_membership(
        votes(rows), ["tone"], {"tone": Grouping(attribute="tone", votes=rule)}
    )
    assert dict(found.frame["group"].value_counts().rows()) == sizes
    said = f"tone: 3 of 5 unit(s) have a tie for the most votes and {fate} (--votes {rule})"
    assert said in found.notes


@pytest.mark.parametrize(("handling", "fate"), [("keep", "kept as a separate group"),
                                                ("drop", "left out")])  # fmt: skip
def test_who_is_unknown_beside_known_values_is_told_with_the_rule(handling, fate):
    # a and b: a tone, and one annotator who could not tell. c: nobody could. d: everybody could.
    rows = [("a", "3", 2), ("a", None, 1), ("b", "4", 1), ("b", None, 2), ("c", None, 3),
            ("d", "3", 3)]  # fmt: skip
    grouping = Grouping(attribute="tone", votes="any+unknown", unknown=handling)
    (note,) = [
        n for n in build_membership(votes(rows), ["tone"], {"tone": grouping}).notes if fate in n
    ]
    assert isinstance(note, Caution)  # shown on the screen: 3 of 4 are more than a fifth
    assert note == (
        f"tone: 3 of 4 unit(s) unknown (1 of them not annotated), {fate}; 2 of them are in "
        "known groups too (--votes any+unknown)"
    )


def test_a_tie_with_unknown_goes_to_the_known_value_of_top_alone():
    assert groups_of(votes([("p", "10-19", 1), ("p", "3-9", 1)]), "top") == {"p": ["3-9", "10-19"]}
    assert groups_of(votes([("p", "7", 1), ("p", None, 1)]), "top") == {"p": ["7"]}
    assert groups_of(votes([("p", "7", 1), ("p", None, 1)]), "top-or-none") == {"p": ["unknown"]}


def test_merges_unite_what_stands_so_one_annotator_is_not_two_votes_for_lighter():
    # Tone 1: one vote, tone 2: one vote (perhaps the same annotator). No tone reaches 2, and
    # "lighter" is a union of tones, not a tally of its own.
    merge = {"lighter": ("1", "2")}
    rows = votes([("p", "1", 1), ("p", "2", 1), ("q", "1", 2)])
    assert groups_of(rows, "at-least:2", merge=merge) == {"p": ["unknown"], "q": ["lighter"]}


def test_annotators_who_gave_ages_in_one_bin_agree():
    rows = votes([("p", "31", 1), ("p", "33", 1), ("p", "52", 1)])
    assert groups_of(rows, "majority", bins="edges:30,45") == {"p": ["30–45"]}


def test_negative_votes_are_refused_with_their_row():
    with pytest.raises(TableError) as error:
        groups_of(votes([("p", "3", 1), ("p", "4", -1)]), "any")
    assert str(error.value) == (
        "votes cannot be negative\n"
        "  expected: 0 or more, or none\n"
        "  found: -1.0\n"
        "  where: attributes, row 2, column 'votes'"
    )


@pytest.mark.parametrize("text", ["most", "at-least", "at-least:0", "at-least:x", "any:2", ""])
def test_a_rule_that_does_not_exist_is_refused_with_those_that_do(text):
    with pytest.raises(SpecError) as error:
        parse_vote_rule(text)
    assert str(error.value) == (
        "the vote rule cannot be used\n"
        "  expected: one of any, any+unknown, majority, top, top-or-none, at-least:K "
        "(K a whole number from 1)\n"
        f"  found: {text!r}"
    )


def test_rules_are_read_without_case():
    assert parse_vote_rule(" At-Least:3 ") == VoteRule("at-least", 3)


def by_hand(rows, rule):
    """Apply a rule to one unit's rows of (value, votes, annotator), in plain Python."""
    rows = [(v, 1.0 if n is None else n, a) for v, n, a in rows]
    rows = [row for row in rows if row[1] > 0]
    tally: Counter = Counter()
    best_of: dict = {}
    most: dict = {}
    total = 0.0
    for value, n, annotator in rows:
        if annotator is None:
            tally[value] += n
            total += n
        else:
            best_of[value, annotator] = max(n, best_of.get((value, annotator), 0))
            most[annotator] = max(n, most.get(annotator, 0))
    for (value, _), n in best_of.items():
        tally[value] += n
    total += sum(most.values())
    if rule.startswith("any"):
        stand = set(tally)
    elif rule == "majority":
        stand = {v for v, n in tally.items() if n > total / 2}
    elif rule.startswith("at-least"):
        stand = {v for v, n in tally.items() if n >= int(rule[-1])}
    else:
        high = max(tally.values(), default=0)
        stand = {v for v, n in tally.items() if n == high}
        if rule == "top-or-none" and len(stand) > 1:
            stand = set()
    known = stand - {None}
    if rule == "any+unknown" and None in stand:
        return known | {"unknown"}
    return known or {"unknown"}


ANSWERS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["2", "9", "10", None]),
        st.sampled_from([None, 0, 1, 2, 3]),
        st.sampled_from([None, "x", "y"]),
    ),
    max_size=14,
)
RULES = ["any", "any+unknown", "majority", "top", "top-or-none", "at-least:2"]


@given(ANSWERS, st.sampled_from(RULES))
@settings(max_examples=120, deadline=None)
def test_every_rule_agrees_with_plain_python(rows, rule):
    # Unit "z" has no row; "w" makes sure that the attribute exists.
    rows = [*rows, ("w", "2", 1, None)]
    units = pl.Series(["a", "b", "c", "w", "z"])
    found = groups_of(votes(rows), rule, units)
    expected = {u: by_hand([r[1:] for r in rows if r[0] == u], rule) for u in units}
    assert {u: set(g) for u, g in found.items()} == expected
    assert all(len(g) == len(set(g)) for g in found.values())


@pytest.mark.parametrize("units", [[0, 1, 2], [2, 0, 1], [0, 0, 1], [0, 1, 0]])
def test_a_pair_stands_once_whether_or_not_units_come_in_order(units):
    pairs = pl.DataFrame({"unit": units, "code": [1, 1, 1]}, schema_overrides={"unit": pl.UInt32})
    assert sorted(drop_duplicate_pairs(pairs).rows()) == sorted({(unit, 1) for unit in units})
