"""Whose a name is: theirs, or everyone else's, which hides theirs within it."""

from __future__ import annotations

import pytest

from isolux_curate.proof.search_terms import SearchTerms
from isolux_curate.withdrawal.terms import separate_own_and_other_names


@pytest.mark.parametrize("cell", ["s1017;s1018", "s1018 | s1017", "s1018,s1017,s1019"])
def test_a_cell_that_lists_them_is_not_someone_elses_name(cell):
    named, rest = separate_own_and_other_names(
        {"subject": frozenset({"s1017"})}, {"subject": [cell, "s1018"]}
    )
    assert rest == {"subject": frozenset({"s1018"})}
    needles = SearchTerms.from_names_without_contained(named["subject"], rest["subject"])
    assert [name for name, _ in needles.iterate_names_with_offset(f"image,{cell}\n".encode())] == [
        "s1017"
    ]


def test_a_longer_name_and_a_list_without_them_stay_someone_elses():
    cells = ["s1017-b", "s1018;s1019"]
    _, rest = separate_own_and_other_names({"subject": frozenset({"s1017"})}, {"subject": cells})
    assert rest == {"subject": frozenset(cells)}
    assert not list(
        SearchTerms.from_names_without_contained({"s1017"}, cells).iterate_names_with_offset(
            b"s1017-b"
        )
    )
