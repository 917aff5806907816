"""Words among the answers that stand for no answer, or for another answer in other letters.

``None``, ``-1`` and ``*`` count as answers that are wrong, or as kinds of their own. "Guard" beside
"guard" is one answer to people and two to a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.core.placeholders import CODES, find_placeholder_words, is_blank_word
from isolux.plausibility._audit_inputs import AuditInputs

_MIN_ANSWERS, _MIN_SHARE = 5, 0.01
_MAX_KINDS = 200  # of a closed list; of more, and of sentences, other words say the same
_FREE_TEXT = ("answers", "pronoun_resolution")
"""Tasks whose answers are sentences: a model may answer "none" or "unknown"."""

INFO = PlausibilityInfo(
    title="Words for no answer, and two spellings of one",
    summary="The words that answers are, against those for an empty cell and against each other.",
    rule=f"Warns from {_MIN_ANSWERS} answers and 1 % on: of -1, None, *, unknown or an empty text "
    "that is no true class; of words that differ in capitals, spaces or quotes alone.",
    needs_predictions=True,
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on placeholders among the answers, and on two spellings of one answer."""
    rows = inputs.predictions
    if rows is None or "label" not in rows.columns:
        return []
    truths = _list_true_classes(inputs)
    models = rows["model"] if "model" in rows.columns else pl.repeat("m", rows.height, eager=True)
    table = pl.DataFrame({"model": models, "label": rows["label"].cast(pl.String)}).drop_nulls()
    cautions: list[Caution] = []
    for (model,), answers in table.group_by(["model"], maintain_order=True):
        label_counts = (
            answers["label"].value_counts(sort=True).sort("count", "label", descending=True)
        )
        counts = dict(label_counts.iter_rows())
        minimum = max(_MIN_ANSWERS, _MIN_SHARE * answers.height)
        for word, n in _find_placeholders(inputs, counts).items():
            if n >= minimum and word not in truths:
                cautions.append(
                    Caution(
                        f"{n:,} of {answers.height:,} answers of {model!r} are {word!r}. If that"
                        " stands for no answer: empty those cells."
                    )
                )
        if len(counts) <= _MAX_KINDS:
            cautions += _describe_spellings(str(model), counts, minimum)
    return cautions


def _list_true_classes(inputs: AuditInputs) -> set[str]:
    """List the classes that are true of someone."""
    people, target = inputs.dataset.instances, pl.lit(inputs.options.get("target"), pl.String)
    values = inputs.dataset.attributes.filter(pl.col("attribute") == target)["value"].drop_nulls()
    if "classes" not in people.columns:
        return set(values)
    return {*values, *people["classes"].explode().drop_nulls().cast(pl.String)}


def _find_placeholders(inputs: AuditInputs, counts: Mapping[str, int]) -> dict[str, int]:
    """Find answers that stand for an empty cell, with their counts."""
    numbers = [word for word in counts if _is_number(word)]
    placeholders = {
        word: n for word, n in counts.items() if is_blank_word(word) or not word.strip()
    }
    if 2 * len(numbers) <= len(counts):  # a code among words
        placeholders |= {word: counts[word] for word in numbers if float(word) in CODES}
    if inputs.task not in _FREE_TEXT:
        placeholders |= find_placeholder_words(counts)
        placeholders |= {w: n for w, n in counts.items() if w.strip().lower() == "unknown"}
    return placeholders if len(placeholders) < len(counts) else {}


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _describe_spellings(model: str, counts: Mapping[str, int], minimum: float) -> Iterator[Caution]:
    """Describe words that are another in capitals, spaces or quotes alone."""
    by_word: dict[str, list[str]] = {}
    for word in counts:
        by_word.setdefault(" ".join(word.strip("'\" ").split()).lower(), []).append(word)
    doubles = [words for words in by_word.values() if len(words) > 1]
    n = sum(counts[word] for words in doubles for word in words[1:])
    if doubles and n >= minimum:
        first, second = doubles[0][:2]
        yield Caution(
            f"Answers of {model!r} are spelt in two ways ({first!r} {counts[first]:,} times,"
            f" {second!r} {counts[second]:,} times), and count as different answers. Write one."
        )
