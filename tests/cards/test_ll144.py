"""Local Law 144: cells by hand, the rule's own example of scoring rates, unknowns, small ones."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError, UnknownNameError
from tests.cards._cards import run_of_people, tables_of

# 6 RCNY § 5-301(c): of so many so many score above the median; the rates and ratios that it prints.
RULE = {
    "Hispanic or Latino": (18, 28, "64.3", 1.00), "White": (15, 40, "37.5", 0.58),
    "Black or African American": (16, 32, "50.0", 0.78),
    "Native Hawaiian or Pacific Islander": (5, 8, "62.5", 0.97), "Asian": (10, 24, "41.7", 0.65),
}  # fmt: skip
SELECTED = {  # sex, race: selected, assessed
    ("F", "A"): (30, 100), ("F", "B"): (45, 90), ("M", "A"): (60, 120), ("M", "B"): (33, 110),
    ("F", "unknown"): (5, 10), ("unknown", "unknown"): (1, 4), ("M", "C"): (6, 6),
}  # fmt: skip


def audited(rows, metric, task, **settings):
    frame = pl.DataFrame(rows).with_columns(
        unit_id=pl.int_range(pl.len()).cast(pl.String), metric=pl.lit(metric), task=pl.lit(task)
    )
    by = [name for name in ("sex", "race") if name in frame.columns]
    return isolux.audit(
        frame.select("unit_id", "metric", "task", "value"), frame.select("unit_id", *by), by=by,
        replicates=100, **settings,
    ).run  # fmt: skip


def hired():
    rows = [
        {"sex": sex, "race": race, "value": float(k < good)}
        for (sex, race), (good, of) in SELECTED.items() for k in range(of)
    ]  # fmt: skip
    return audited(rows, "selection_rate", "classification")


def table(made, words):
    (found,) = [one for one in tables_of(made) if one.caption.lower() == words.lower()]
    return found


def ratio(cell):
    return float(cell.split()[0])


def test_the_rules_own_example_of_scoring_rates():
    """Who scores above has 2, the others 0: fewer than half are above, so the median is 0."""
    rows = [{"race": race, "value": 2.0 * (k < above)}
            for race, (above, of, _, _) in RULE.items() for k in range(of)]  # fmt: skip
    made = isolux.card(audited(rows, "mean", "number"), kind="ll144")
    cells = {row[0]: row for row in table(made, "Scoring rate by race").rows}
    for race, (above, of, rate, printed) in RULE.items():
        assert cells[race][1] == str(of)
        assert cells[race][3] == str(above)
        assert cells[race][4].startswith(rate)
        assert ratio(cells[race][5]) == pytest.approx(printed, abs=0.0051)


def test_selection_rates_by_sex_race_and_both_by_hand():
    """F: 80 of 200 = .4; M: 99 of 236 = .4195; ratio .4 / .4195 = .9535."""
    made = isolux.card(hired(), kind="ll144")
    sex = {row[0]: row for row in table(made, "Selection rate by sex").rows}
    assert sex["F"][1:4] == ("200", "45.5 %", "80")
    assert sex["M"][1:4] == ("236", "53.6 %", "99")
    assert ratio(sex["F"][5]) == pytest.approx(0.4 / (99 / 236), abs=6e-4)
    assert ratio(sex["M"][5]) == 1
    race = {row[0]: row for row in table(made, "Selection rate by race").rows}
    assert race["A"][3] == "90"
    assert ratio(race["A"][5]) == pytest.approx(90 / 220, abs=6e-4)  # C has 6 of 6
    both = {row[0]: row for row in table(made, "Selection rate by sex × race").rows}
    assert both["F × B"][1:4] == ("90", "20.5 %", "45")
    assert "unknown" not in " ".join(both)


def test_unknowns_are_counted_and_not_included():
    made = isolux.card(hired(), kind="ll144")
    assert "4 of 440 assessed are of an unknown category" in table(
        made, "Selection rate by sex").notes[0]  # fmt: skip
    assert "14 of 440 assessed are of an unknown category" in table(
        made, "Selection rate by sex × race").notes[0]  # fmt: skip


def test_a_category_below_two_percent_is_named_and_left_out_when_the_user_says_so():
    """C is 6 of 440: 1.4 %. Without it B leads by race: 78 of 200 = .39; A has 90 of 220 = .409."""
    assert "may be left out: C." in " ".join(
        table(isolux.card(hired(), kind="ll144"), "Selection rate by race").notes)  # fmt: skip
    facts = {"facts": 1, "categories_left_out": ["C"], "exclusion_justification": "six people"}
    made = isolux.card(hired(), kind="ll144", facts=facts)
    race = {row[0]: row for row in table(made, "Selection rate by race").rows}
    assert race["C"][1:4] == ("6", "1.4 %", "6")
    assert race["C"][5] == "left out"
    assert ratio(race["A"][5]) == 1
    assert ratio(race["B"][5]) == pytest.approx((78 / 200) / (90 / 220), abs=6e-4)
    assert "six people" in made.markdown()


def test_what_may_not_be_left_out_is_refused():
    with pytest.raises(SpecError, match=r"F may not be left out(.|\n)*45.5 %"):
        isolux.card(hired(), kind="ll144", facts={"facts": 1, "categories_left_out": "F"})
    with pytest.raises(UnknownNameError, match="category"):
        isolux.card(hired(), kind="ll144", facts={"facts": 1, "categories_left_out": "D"})


def test_two_percent_and_no_less_may_not_be_left_out():
    """6 RCNY § 5-301(d): less than 2 %. Of 300 people 6 are 2 %, 5 of 299 are less."""
    for n, small in ((6, False), (5, True)):
        rows = [{"race": race, "value": float(k % 2)}
                for race, of in (("A", 200), ("B", 94), ("C", n)) for k in range(of)]  # fmt: skip
        run = audited(rows, "selection_rate", "classification")
        notes = " ".join(table(isolux.card(run, kind="ll144"), "Selection rate by race").notes)
        assert ("may be left out" in notes) == small
        facts = {"facts": 1, "categories_left_out": ["C"], "exclusion_justification": "few"}
        if small:
            isolux.card(run, kind="ll144", facts=facts)
        else:
            with pytest.raises(SpecError, match=r"C may not be left out(.|\n)*2.0 %"):
                isolux.card(run, kind="ll144", facts=facts)


def test_a_ratio_has_an_interval_where_both_are_judged():
    """Katz's interval of the ratio of 80 of 200 and 99 of 236: .761 to 1.195."""
    rows = table(isolux.card(hired(), kind="ll144"), "Selection rate by sex").rows
    (row,) = [row for row in rows if row[0] == "F"]
    low, high = (float(x) for x in row[5].split("(")[1].rstrip(")").split(" to "))
    assert (low, high) == pytest.approx((0.761, 1.195), abs=0.012)


def test_every_ratio_has_an_interval_also_where_the_highest_category_is_small():
    """C has 6 of 6: its exact interval begins at .025 ** (1 / 6) = .541. D has none of 40.

    Donner and Zou: with an upper bound of .088 the ratio of D is at most
    .0881 / sqrt(.541 (2 - .541)) = .099.
    """
    rows = [
        {"sex": sex, "race": race, "value": float(k < good)}
        for (sex, race), (good, of) in {**SELECTED, ("M", "D"): (0, 40)}.items() for k in range(of)
    ]  # fmt: skip
    made = isolux.card(audited(rows, "selection_rate", "classification"), kind="ll144")
    for words in ("race", "sex × race"):
        cells = {row[0]: row[4:] for row in table(made, f"Selection rate by {words}").rows}
        (highest,) = [name for name in cells if name.endswith("C")]
        assert cells[highest] == ("100.0 % (54.1 to 100.0)", "1.000")
        (none,) = [name for name in cells if name.endswith("D")]
        assert cells[none][1] == "0.000 (0.000 to 0.099)"
        assert all("(" in ratio for name, (_, ratio) in cells.items() if name != highest)


def test_a_few_clusters_of_several_people_have_no_interval():
    rows = [{"race": "ab"[k % 2], "value": float(k % 3 == 0), "cluster_id": f"{k % 2}{k % 7}"}
            for k in range(200)]  # fmt: skip
    frame = pl.DataFrame(rows).with_columns(
        unit_id=pl.int_range(pl.len()).cast(pl.String), metric=pl.lit("selection_rate"),
        task=pl.lit("classification"),
    )  # fmt: skip
    run = isolux.audit(frame.drop("race"), frame.select("unit_id", "race"), by="race",
                       replicates=100).run  # fmt: skip
    rows = table(isolux.card(run, kind="ll144"), "Selection rate by race").rows
    assert not any("(" in cell for row in rows for cell in row[4:])


def test_a_run_that_cannot_fill_it_says_what_is_needed():
    with pytest.raises(SpecError, match="no attribute of this run is named as sex"):
        isolux.card(run_of_people(), kind="ll144")
    with pytest.raises(SpecError, match=r"neither selection rates nor scores(.|\n)*--positive"):
        isolux.card(run_of_people(), kind="ll144", facts={"facts": 1, "sex_attribute": "light"})
    with pytest.raises(UnknownNameError, match="light"):
        isolux.card(run_of_people(), kind="ll144", facts={"facts": 1, "sex_attribute": "lihgt"})
    with pytest.raises(SpecError, match="cut for publishing"):
        isolux.card(hired(), kind="ll144", publish_min=10)


def test_one_dimension_alone_is_said_to_be_too_few():
    rows = [{"race": "AB"[k % 2], "value": float(k % 3 == 0)} for k in range(300)]
    made = isolux.card(audited(rows, "selection_rate", "classification"), kind="ll144")
    assert "no categories of sex" in made.markdown()
