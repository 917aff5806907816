"""A ``--label-map`` for answers that are no classes of the truth, tried before it is advised."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl
import polars.selectors as cs

from isolux.core.counts import TIMES, count_people
from isolux.stats.label_assignment import encode_answers, find_label_assignment

_MAX_LISTED_CLASSES = 8
_MIN_ANSWERS = 30
"""With fewer people, the truth cannot confirm or contradict what spellings suggest."""


def advise_label_map(
    people: pl.DataFrame, foreign: Collection[str], class_by_answer: Mapping[str, str]
) -> str:
    """Advise a map of foreign answers: what the truth shows, or what is spelt alike and agrees.

    Parameters
    ----------
    people : polars.DataFrame
        The judged people of one model: ``unit, cluster_id, truth, prediction``.
    foreign : collection of str
        Answers that are no classes of the truth.
    class_by_answer : mapping of str to str
        The class that a foreign answer seems to spell.
    """
    answers = people.filter(pl.col("truth").list.len() == 1).select(
        "prediction",
        cs.by_name(TIMES, require_all=False),
        truth=pl.col("truth").list.first(),
        cluster=pl.coalesce(pl.col("cluster_id").cast(pl.String), pl.col("unit").cast(pl.String)),
    )
    mapping = {**class_by_answer, **_find_foreign_classes(answers, foreign)}
    share = _measure_share_right(answers, mapping)
    if not mapping or (share is not None and share[0] <= share[1]):
        return (
            "say which answer means which class: --label-map CLASS=ANSWER, once for each"
            " (label_map={…}); or give the answers of the same people and the same question"
        )
    answers_by_class: dict[str, list[str]] = {}
    for answer, label in sorted(mapping.items()):  # the same advice in every run
        answers_by_class.setdefault(label, []).append(answer)
    entries = list(answers_by_class.items())[:_MAX_LISTED_CLASSES]
    flags = " ".join(f'--label-map "{k}={",".join(v)}"' for k, v in entries)
    python = ", ".join(f"{k!r}: {v!r}" for k, v in entries)
    text = f"{flags} (label_map={{{python}}})"
    return text if share is None else f"{text}: then {100 * share[0]:.1f} % of these answers agree"


def _find_foreign_classes(answers: pl.DataFrame, foreign: Collection[str]) -> dict[str, str]:
    """Find the class of each foreign answer, where the truth of its people shows it."""
    if answers.is_empty():
        return {}
    codes, labels = encode_answers(answers)
    assignment = find_label_assignment(codes)
    pairs = {labels[label]: labels[name] for label, name in sorted(assignment.items())}
    return {answer: name for answer, name in pairs.items() if answer in set(foreign)}


def _measure_share_right(
    answers: pl.DataFrame, mapping: Mapping[str, str]
) -> tuple[float, float] | None:
    """Return the share of mapped answers that is right, and that by chance, or None."""
    mapped = answers.filter(pl.col("prediction").is_in(list(mapping))).with_columns(
        pl.col("prediction").replace(dict(mapping)),
        pl.col(TIMES) if TIMES in answers.columns else pl.lit(1, dtype=pl.Int64).alias(TIMES),
    )
    n = count_people(mapped)
    if n < _MIN_ANSWERS:
        return None
    n_right = mapped.filter(truth=pl.col("prediction"))[TIMES].sum()
    truth_counts, answer_counts = (
        mapped.group_by(label=name).agg(pl.col(TIMES).sum()) for name in ("truth", "prediction")
    )
    label_counts = truth_counts.join(answer_counts, on="label")
    return float(n_right) / n, float(
        (label_counts[TIMES] * label_counts[f"{TIMES}_right"]).sum()
    ) / n**2
