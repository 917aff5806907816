"""Terms for tests: s17 withdrew, with the photos s17_1 and 9; everyone else stays."""

from __future__ import annotations

from isolux_curate.withdrawal.terms import IdentifyingTerms

GONE = IdentifyingTerms(
    names_by_kind={
        "subject": frozenset({"s17"}), "image": frozenset({"s17_1", "9"}),
        "instance": frozenset({"s17_1-1", "9-1"}), "file": frozenset({"in/s17_1.jpg", "s17_1.jpg"}),
    },
    other_names={
        "subject": frozenset({"s1", "s171", "9"}), "image": frozenset({"s171_1", "s17_1-b", "7"}),
        "instance": frozenset({"s171_1-1", "s17_1-b-1", "7-1"}),
    },
    photo_hashes=frozenset(),
)  # fmt: skip
