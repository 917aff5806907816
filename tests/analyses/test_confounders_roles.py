"""Roles of explanatory attributes: what sentences may say, what is found, what is refused."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.analyses import confounders
from isolux.api.explain import run_analyses
from isolux.core.errors import SpecError, UnknownNameError
from tests.analyses._confounded import attributes, run_of
from tests.laws._causes import run_of as world

CAUSAL = ("explain", "because", "cause of", "due to", "would narrow")


def equal_mix(run, **settings):
    """Return the finding of the gap at an equal mix, and its row of the table."""
    found = confounders.explain(run, explanatory=["light"], replicates=199, **settings)
    (row,) = found.findings.filter(reference="keiding-clayton-2014").to_dicts()
    (table,) = (t for caption, t in found.tables.items() if caption.startswith("Gaps"))
    return row, table.row(0, named=True), found


@pytest.fixture(scope="module")
def collider():
    return world("collider", 3)


@pytest.fixture(scope="module")
def masked():
    return world("masked", 3)


def test_a_collider_of_unknown_role_is_no_finding(collider):
    row, table, found = equal_mix(collider)
    # The gap at an equal mix is there, sure, and of the kind that was claimed before roles.
    assert row["effect"] < -0.08
    assert table["p_adjusted"] <= 0.05
    assert row["p_adjusted"] > 0.05
    assert row["claim"].startswith("No finding of a gap, since none is shown without adjustment")
    assert "it creates one from nothing" in row["claim"]
    assert "--role light=... (before, mediator or after)" in row["claim"]
    assert table["role"] == "unknown"
    for claim in found.findings["claim"]:
        assert not any(word in claim for word in CAUSAL if word != "explain"), claim
    assert "agrees" not in row["claim"]


def test_a_masked_gap_is_found_where_light_came_before(masked):
    unknown, _, _ = equal_mix(masked)
    assert unknown["p_adjusted"] > 0.05
    row, table, _ = equal_mix(masked, roles={"light": "before"})
    assert row["p_adjusted"] == table["p_adjusted"] <= 0.05
    assert "13.3 points higher" in row["claim"]
    assert "Light was said to come before tone and accuracy." in row["claim"]
    assert "A logistic regression agrees" in row["claim"]
    assert "would have to explain 12 % of the remaining variance of both the scores" in row["claim"]
    assert "6.8 % to bring the 95 % interval to 0; light explains 7.2 % and 25 %" in row["claim"]
    assert 0 < table["robustness of the interval"] < table["robustness"] < 1


def test_a_mediator_is_a_part_of_the_gap():
    row, _, found = equal_mix(world("mediated", 3), roles={"light": "mediator"})
    first = found.findings.filter(reference="icon2")["claim"].item()
    assert "probable part of how the differences come about" in first
    assert (
        "the gap without adjustment is the whole, and this is the part that takes another path"
        in row["claim"]
    )


def test_an_unknown_role_says_what_goes_with_what():
    run = world("mediated", 3)
    _, _, found = equal_mix(run)
    first = found.findings.filter(reference="icon2")["claim"].item()
    assert "the differences are associated with light, whose role is not known" in first
    assert not any(word in first for word in CAUSAL), first
    before = equal_mix(run, roles={"light": "before"})[2].findings["claim"][0]
    assert "light is a probable explanation of the differences" in before
    assert "would narrow the gap" in before


def test_what_came_after_is_never_held_alike(collider):
    with pytest.raises(SpecError, match=r"(?s)create a gap of tone where.*given the role 'after'"):
        equal_mix(collider, roles={"light": "after"})
    row, table, _ = equal_mix(collider, roles={"light": "after"}, adjust_after=True)
    assert (row["p_adjusted"], row["status"]) == (None, "mediator")
    assert "This is not a gap of the model." in row["claim"]
    assert table["robustness"] is None


def test_what_came_after_is_left_out_where_nobody_asked_for_it(masked):
    n = masked.scores.height
    more = attributes(stored=["yes", "no"] * (n // 2))
    run = run_of(
        masked.scores["value"].to_list(), pl.concat([masked.attributes, more]), metric="accuracy",
        task="classification",
    )  # fmt: skip
    found = confounders.explain(run, roles={"light": "before", "stored": "after"})
    (gaps,) = (t for caption, t in found.tables.items() if caption.startswith("Gaps"))
    assert gaps["equal mix of"].to_list() == ["light"]
    assert any("stored is not held equal: stored was given the role" in n for n in found.notes)
    with pytest.raises(SpecError, match="given the role 'after'"):
        confounders.explain(run, roles={"stored": "after"})


def test_a_graph_gives_roles_and_says_what_a_mix_does(masked, collider):
    row, _, found = equal_mix(masked, dag="light -> tone, light -> score, tone -> score")
    assert row["p_adjusted"] <= 0.05
    assert "this mix blocks tone ← light → score; the back-door rule holds" in row["claim"]
    assert any("rule holds at an equal mix of light" in note for note in found.notes)
    with pytest.raises(SpecError, match=r"by the graph light follows from the score"):
        equal_mix(collider, dag="tone -> light <- score")
    hidden = "light -> tone, light -> score, (u) -> tone, (u) -> score"
    row, table, found = equal_mix(masked, dag=hidden)
    assert table["role"] == "unknown"
    assert "leaves open tone ← (u) → score; the back-door rule does not hold" in row["claim"]
    assert row["p_adjusted"] > 0.05
    assert any("no set of up to three annotated" in note for note in found.notes)


def test_a_mediator_with_a_hidden_cause_is_not_known(collider):
    row, table, _ = equal_mix(collider, dag="tone -> light -> score, (u) -> light, (u) -> score")
    assert table["role"] == "unknown"
    assert (
        "opens tone → light ← (u) → score; cuts, of the groups' own effect, tone → light"
        in (row["claim"])
    )


def test_crossed_attributes_have_the_weakest_of_their_roles(masked):
    n = masked.scores.height
    more = attributes(size=["s", "l", "l", "s", "s"] * (n // 5), hat=["yes", "no"] * (n // 2))
    run = run_of(
        masked.scores["value"].to_list(), pl.concat([masked.attributes, more]), metric="accuracy",
        task="classification",
    )  # fmt: skip

    def roles(**given):
        found = confounders.explain(run, explanatory=["hat", "light", "size"], roles=given)
        (gaps,) = (t for caption, t in found.tables.items() if caption.startswith("Gaps"))
        return dict(gaps.select("equal mix of", "role").iter_rows())

    assert roles(light="before")["hat*light*size"] == "unknown"
    # Two that came before are crossed alone.
    assert roles(light="before", size="before")["light*size"] == "before"
    assert roles(light="before", size="before", hat="mediator")["light*size"] == "before"
    assert roles(light="mediator", size="mediator", hat="before")["hat*light*size"] == "mediator"


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"roles": {"colour": "before"}}, UnknownNameError, r"'colour'.*--role"),
        ({"roles": {"tone": "before"}}, SpecError, r"itself and cannot have another role"),
        ({"roles": {"light": "collider"}}, SpecError,
         r"'collider' is not a role.*before, mediator, after or unknown.*a collider after"),
        ({"dag": "light -> score -> tone -> light"}, SpecError, r"has a cycle"),
        ({"dag": "colour -> score, tone -> score"}, UnknownNameError, r"'colour'.*confounders.dag"),
        ({"dag": "light -> score"}, SpecError, r"none of the sensitive attributes"),
        ({"dag": "tone -> light -> score", "roles": {"light": "before"}}, SpecError,
         r"contradicts the graph.*expected: light: mediator.*found: light: before"),
    ],
)  # fmt: skip
def test_what_is_refused(masked, settings, error, text):
    with pytest.raises(error, match=f"(?s){text}"):
        confounders.explain(masked, explanatory=["light"], **settings)


def test_roles_through_the_front_door(masked):
    found = run_analyses(masked, ["confounders"], ["roles={light: before}", "regression=no"])
    assert found.findings.filter(analysis="confounders")["p_adjusted"].min() <= 0.05
    with pytest.raises(SpecError, match=r"(?s)'collider' is not a role.*found: light: collider"):
        run_analyses(masked, ["confounders"], ["roles={light: collider}"])
    drawn = run_analyses(masked, ["confounders"], ["dag=light->tone, light->score"])
    assert "tone ← light → score" in "".join(drawn.findings["claim"])


def test_advice_is_about_the_value_that_the_worse_group_has_more_of():
    """Of two values each is the other's mirror; a stronger model at the easy one widens the gap."""
    cells = [("a", "easy", 350, 50), ("a", "hard", 60, 40), ("b", "easy", 88, 12),
             ("b", "hard", 240, 160)]  # fmt: skip
    scores = [x for _, _, right, wrong in cells for x in [1.0] * right + [0.0] * wrong]
    who = [(t, v) for t, v, right, wrong in cells for _ in range(right + wrong)]
    run = run_of(scores, attributes(tone=[t for t, _ in who], light=[v for _, v in who]))
    said = {}
    for role in ("before", "unknown"):
        found = confounders.explain(
            run, explanatory=["light"], replicates=199, roles={"light": role}
        )
        said[role] = " ".join(found.findings["claim"])
        (ranking,) = (t for caption, t in found.tables.items() if caption.startswith("Explan"))
        said[role, "verdict"] = ranking["verdict"].to_list()
    # Of b 80 % are hard, of a 20 %; everyone is right in 300 of 500 there.
    assert (
        "80 % of b and 20 % of a have the value 'hard', at which everyone gets 60.0 %"
        in (said["before"])
    )
    assert "'easy'" not in said["before"]
    assert said["before", "verdict"] == ["probable explanation"]
    assert said["unknown", "verdict"] == ["associated (role not known)"]


def test_the_models_own_answer_explains_nothing():
    run = run_of([1.0, 0.0] * 60, attributes(tone=["a", "b"] * 60, says=["x", "y", "x"] * 40))
    run.record["spec"]["prediction_column"] = "says"
    with pytest.raises(SpecError, match="'says' is the model's answer"):
        confounders.explain(run, explanatory=["says"])


def test_an_open_way_of_the_graph_is_said_of_a_mix_of_what_the_graph_lacks():
    light = [*["day", "day", "night"] * 133, "day"]
    held = attributes(tone=["a", "b"] * 200, light=light, cam=["x", "x", "y", "y"] * 100)
    run = run_of([1.0, 0.0, 1.0, 1.0] * 100, held)
    graph = "light -> tone, light -> score, tone -> score"
    found = confounders.explain(run, explanatory=["cam"], replicates=199, dag=graph)
    claims = " ".join(found.findings["claim"])
    assert "this mix leaves open tone ← light → score; the back-door rule does not hold" in claims


def test_what_is_not_examined_though_one_would_expect_it_is_said(masked):
    own = masked.attributes
    twin = own.filter(attribute="light")
    more = [own, *(twin.with_columns(attribute=pl.lit(name)) for name in ("cam", "box_size"))]
    run = replace(masked, attributes=pl.concat(more))
    named = confounders.explain(
        run, explanatory=["light"], roles={"light": "before", "cam": "before"}, replicates=199
    )
    (said,) = [n for n in named.notes if "not examined" in n]
    assert said == (
        "confounders: not examined, though a role was given: cam (the explanatory attributes that "
        "were named: light)"
    )
    by_role = confounders.explain(run, roles={"light": "before"}, replicates=199)
    (said,) = [n for n in by_role.notes if "not examined" in n]
    assert said == (
        "confounders: not examined, though computed with the audit: box_size (others have a role "
        "or are in the graph; --role box_size=unknown examines it too)"
    )
    both = confounders.explain(
        run, roles={"light": "before", "box_size": "unknown"}, replicates=199
    )
    assert not [n for n in both.notes if "not examined" in n]
