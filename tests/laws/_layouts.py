"""How records of the laws are laid out where their keys alone would not tell a reader enough.

By record name: heading of each key that is printed, and the keys that hold fractions.
"""

from __future__ import annotations

_AGAINST = {
    "metric": "metric", "largest group, % of people": "largest group, % of people",
    "groups": "groups", "rate": "rate", "of": "of", "attribute": "attribute varies",
    "weights": "weights",
}  # fmt: skip
_ANSWERS = {
    "p <= .05, %": "p <= .05, %", "of the two groups, %": "of the two groups, %",
    "both intervals joined, %": "both intervals joined, %",
    "covered where ok, %": "covered where ok, %",
}  # fmt: skip

LAYOUTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "against-everyone-null-*": (
        {**_AGAINST, "positive": "positive, shares", **_ANSWERS},
        ("p <= .05, %", "of the two groups, %", "both intervals joined, %", "covered where ok, %"),
    ),
    "against-everyone-gap-*": (
        {**_AGAINST, "apart": "apart", **_ANSWERS},
        ("p <= .05, %", "of the two groups, %", "both intervals joined, %", "covered where ok, %"),
    ),
    "confounders-first-*": (
        {"metric": "metric", "boxes": "boxes", "size first": "size ranks first, %",
         "probable explanation": "and control lowers the dispersion, %"},
        ("size first", "probable explanation"),
    ),
    "confounders-cover-*": (
        {"matters": "what matters", "varies": "tone varies by", "planted": "planted gap",
         "stratified": "stratified: holds it, %", "regression": "regression: holds it, %",
         "agree": "the two agree, %"},
        ("stratified", "regression", "agree"),
    ),
    "confounders-bins": (
        {"bins": "bins of the area", "as it stands": "gap as it stands", "left": "gap left",
         "covers 0": "interval holds 0, %"},
        ("covers 0",),
    ),
    "confounders-null-*": (
        {"metric": "metric", "varies": "tone varies by", "any finding": "any finding, %",
         "probable by the paper's rule": "probable by the paper's rule alone, %"},
        ("any finding", "probable by the paper's rule"),
    ),
    "confounders-cells": (
        {"clusters": "clusters", "people a cell": "fewest people a cell",
         "compared": "of all people compared, %", "judged": "worlds judged, %",
         "covers 0": "interval holds 0, %", "width": "its width"},
        ("compared", "judged", "covers 0"),
    ),
    "confounders-audited-*": (
        {"varies": "tone varies by", "the audit's gap": "the audit's gap found, %",
         "the gaps at an equal mix": "a gap at an equal mix found, %", "either": "either, %"},
        ("the audit's gap", "the gaps at an equal mix", "either"),
    ),
    "confounders-published": (
        {"metric": "metric", "any finding": "any finding, %",
         "probable by the paper's rule": "probable by the paper's rule alone, %"},
        ("any finding", "probable by the paper's rule"),
    ),
    "confounders-unequal": (
        {"reading": "reading", "share of tone b": "share of tone b", "b less a": "AP of b less a",
         "any finding": "any finding, %"},
        ("any finding",),
    ),
    "scenes-cover-*": (
        {"matters": "what matters", "varies": "tone varies by", "rates": "recalls held, %",
         "average recalls": "average recalls held, %", "differences": "differences held, %",
         "judged": "judged, %"},
        ("rates", "average recalls", "differences", "judged"),
    ),
    "scenes-null-*": (
        {"varies": "tone varies by", "tests": "tests", "any claim": "any claim, %"},
        ("any claim",),
    ),
}  # fmt: skip
