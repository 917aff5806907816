"""Annex IV extracts: each part cites its point, and nothing is claimed."""

from __future__ import annotations

import isolux
from tests.cards._cards import run_of_people, traced


def test_each_part_cites_its_paragraph_and_no_conformity_is_claimed():
    made = isolux.card(run_of_people(), kind="annex-iv")
    points = {part.cites.partition(":")[0] for part in made.parts}
    assert points == {"Annex IV, point 1(a)", "Annex IV, point 2(g), first part",
                      "Annex IV, point 2(g)", "Annex IV, point 3"}  # fmt: skip
    assert "no conformity assessment" in made.statement
    assert "https://eur-lex.europa.eu/eli/reg/2024/1689/oj" in made.markdown()
    assert "https://eur-lex.europa.eu/eli/reg/2024/1689/oj" in made.html()


def test_what_no_audit_knows_is_a_blank_until_it_is_stated():
    facts = {"facts": 1, "human_oversight": {"says": "two people look", "source": "plan 3"}}
    made = isolux.card(run_of_people(), kind="annex-iv", facts=facts)
    assert "human_oversight" not in [one.key for one in made.blanks]
    assert "two people look *(stated by the user, from plan 3)*" in made.markdown()
    assert "responsible_persons" in [one.key for one in made.blanks]


def test_every_number_is_the_runs():
    run = run_of_people()
    assert traced(isolux.card(run, kind="annex_iv"), run) == 3 + 3 + 7
