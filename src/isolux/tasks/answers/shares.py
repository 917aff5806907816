"""From values of answers to scores, and cautions about shares that are misleading."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import polars as pl

from isolux.core.notes import Caution
from isolux.tasks._scores import score_rows
from isolux.tasks.answers.answer_rules import NOTHING_READ, AnswerRule

OutOf = Literal["answers", "everyone"]
_JOIN_COLUMNS = ["model", "unit_id"]


def format_label(question: str, answer: str, *, has_several_questions: bool) -> str:
    """Format a value as a label, with its question where there are several.

    Examples
    --------
    >>> (
    ...     format_label("neutral", "nurse", has_several_questions=True),
    ...     format_label("What work?", "nurse", has_several_questions=True),
    ... )
    ('nurse (neutral)', 'nurse (What work?)')
    >>> format_label("neutral", "nurse", has_several_questions=False)
    'nurse'
    """
    if not has_several_questions:
        return answer
    return f"{answer} ({question})"


def score_state(
    people: pl.DataFrame, rows: pl.DataFrame, metric: str, label: str | None
) -> pl.DataFrame:
    """Score the share of a person's answers that are answers, or that decline."""
    state = "answered" if metric == "response_rate" else "declined"
    # A person with several answers counts once, with the share of them that are answers.
    shares = rows.group_by(_JOIN_COLUMNS).agg(value=(pl.col("state") == state).mean())
    return _build_scores(people, shares, metric, label)


def score_values(
    people: pl.DataFrame,
    rows: pl.DataFrame,
    metric: str,
    values: Sequence[tuple[str, str | None]],
    denominator: OutOf,
) -> list[pl.DataFrame]:
    """Score each value: the share of each person's answers that have it."""
    answered = pl.col("state") == "answered"
    # Averaging a person's answers first gives every person the same weight.
    counted_rows = rows if denominator == "everyone" else rows.filter(answered)
    missing_reasons = rows.group_by(_JOIN_COLUMNS).agg(
        why=pl.when(answered.any() | pl.lit(denominator == "everyone"))
        .then(pl.lit(None, dtype=pl.String))
        # Declining goes before an empty answer: it is the model's own statement.
        .when((pl.col("state") == "declined").any())
        .then(pl.lit("declined to answer"))
        .otherwise(pl.lit("empty answer"))
    )
    people_with_reason = people.join(
        missing_reasons, on=_JOIN_COLUMNS, how="left", maintain_order="left"
    ).with_columns(reason=pl.coalesce("reason", "why"))
    frames = []
    for answer, label in values:
        # With out_of="everyone" a refusal counts as not giving this answer.
        says_answer = (answered & (pl.col("value") == answer)).fill_null(value=False)
        shares = counted_rows.group_by(_JOIN_COLUMNS).agg(value=says_answer.mean())
        frames.append(_build_scores(people_with_reason, shares, metric, label))
    return frames


def _build_scores(
    people: pl.DataFrame, shares: pl.DataFrame, metric: str, label: str | None
) -> pl.DataFrame:
    """Build rows of scores; people without a share have the reason "no prediction"."""
    rows = people.select("model", "unit_id", "cluster_id", "reason").join(
        shares, on=_JOIN_COLUMNS, how="left", maintain_order="left"
    )
    no_prediction = pl.when(pl.col("value").is_null()).then(pl.lit("no prediction"))
    reason = pl.coalesce("reason", no_prediction)
    return score_rows(rows, "answers", metric, pl.col("value"), label=label, reason=reason)


# A caution from this share of empty and declining answers; others where most answers are
# concerned.
_MAX_MISSING_SHARE, _MAJORITY = 0.2, 0.5
# With fewer answers, shares of them are too noisy for a caution.
_MIN_ANSWERS = 20
# An answer must have this many words to test its language by one common word, or by two.
_MIN_WORDS, _MIN_WORDS_LONG = 4, 6
# Function words: nearly every English sentence has some, whatever it is about.
_ENGLISH_WORDS = (
    "a",
    "about",
    "an",
    "and",
    "are",
    "as",
    "at",
    "because",
    "but",
    "for",
    "from",
    "has",
    "have",
    "he",
    "her",
    "his",
    "i",
    "in",
    "is",
    "it",
    "its",
    "like",
    "not",
    "of",
    "on",
    "or",
    "she",
    "so",
    "that",
    "the",
    "their",
    "there",
    "they",
    "this",
    "to",
    "very",
    "was",
    "who",
    "with",
    "you",
)


def _format_question(question: str) -> str:
    return f" to {question!r}" if question else ""


def caution_on_missing_answers(rows: pl.DataFrame, question: str) -> list[Caution]:
    """Caution where many answers are empty or decline: rates are about the others."""
    notes = []
    for (model,), model_rows in rows.group_by("model", maintain_order=True):
        empty, declined = (
            int((model_rows["state"] == state).sum()) for state in ("empty", "declined")
        )
        text = (
            f"{empty + declined:,} of {model_rows.height:,} answers of"
            f" {model!r}{_format_question(question)} are none ({empty:,} empty, {declined:,}"
            " decline): rates of answers are about the others. Compare response rates by group"
            " first; --denominator everyone counts those without an answer too."
        )
        if (
            model_rows.height >= _MIN_ANSWERS
            and empty + declined >= _MAX_MISSING_SHARE * model_rows.height
        ):
            notes.append(Caution(text))
    return notes


def caution_on_values(rows: pl.DataFrame, question: str, rule: AnswerRule | None) -> list[Caution]:
    """Caution where all answers are the same, or the rule does not match most of them."""
    notes = []
    answered = rows.filter(state="answered")
    for (model,), model_rows in answered.group_by("model", maintain_order=True):
        if model_rows.height < _MIN_ANSWERS:
            continue
        values, subject = model_rows["value"], f"answers of {model!r}{_format_question(question)}"
        unread_share = float((values == NOTHING_READ).mean() or 0.0)  # type: ignore[arg-type]
        if unread_share > _MAJORITY and rule is not None:
            example = model_rows.filter(value=NOTHING_READ)["text"][0]
            text = (
                f"The rule {rule.title!r} reads nothing out of {unread_share:.0%} of the {subject},"
                f" such as {str(example)[:60]!r}. Is it for these answers, and for their language"
                f" ({rule.language})?"
            )
        # Literally compared sentences are nearly all different, so no answer would be common.
        elif rule is None and _are_sentences(model_rows["said"]):
            text = (
                f"Most {subject} are sentences, compared literally: {model_rows['said'][0]!r} in"
                " other words is another answer. --read occupation, likeable_reason, pronoun,"
                " toxicity or a file of rules reads what they say."
            )
        elif values.n_unique() == 1:
            text = (
                f"All {model_rows.height:,} {subject} are the same ({values[0]!r}): no group can"
                " differ, and that says nothing about the model's associations."
            )
        else:
            continue
        notes.append(Caution(text))
    return notes


def _are_sentences(texts: pl.Series) -> bool:
    """Return whether most texts have several words, and they are not all equal."""
    words = texts.str.extract_all(r"[\p{L}']+").list.len()
    return float((words >= _MIN_WORDS).mean() or 0.0) > _MAJORITY and texts.n_unique() > 1  # type: ignore[arg-type]


def caution_on_language(
    rows: pl.DataFrame, question: str, rules: Collection[AnswerRule]
) -> list[Caution]:
    """Caution where longer answers have no common English word, but the rules are English."""
    # A rule of another language makes no claim about English answers.
    english_rules = [rule.title for rule in rules if rule.language.lower() == "english"]
    if not english_rules:
        return []
    notes = []
    words = pl.col("said").str.extract_all(r"[\p{L}']+")
    long_answers = rows.filter(words.list.len() >= _MIN_WORDS, state="answered")
    for (model,), model_rows in long_answers.group_by("model", maintain_order=True):
        n_common = words.list.eval(pl.element().is_in(_ENGLISH_WORDS)).list.sum()
        # Two words of a longer answer: "in" and "a" are words of other languages, too.
        min_common = pl.when(words.list.len() >= _MIN_WORDS_LONG).then(2).otherwise(1)
        # Share of longer answers without enough common English words.
        share = 1.0 - float(model_rows.select((n_common >= min_common).mean()).item())
        if model_rows.height >= _MIN_ANSWERS and share > _MAJORITY:
            notes.append(
                Caution(
                    f"{share:.0%} of the longer answers of {model!r}{_format_question(question)}"
                    " have hardly a common English word, such as"
                    f" {str(model_rows['text'][0])[:60]!r}. What reads them is for English"
                    f" ({', '.join(english_rules)}): other files go to --read, --declined and"
                    " --lexicon."
                )
            )
    return notes


def caution_on_unmatched_lexicon(
    rows: pl.DataFrame, question: str, lexicon: AnswerRule
) -> list[Caution]:
    """Caution where no answer has a word of the lexicon."""
    answered = rows.filter(state="answered")
    return [
        Caution(
            f"Not one of {model_rows.height:,} answers of {model!r}{_format_question(question)} has"
            f" a word of {lexicon.title!r}: a rate of 0 says that those words are missing, not that"
            " the answers are harmless."
        )
        for (model,), model_rows in answered.group_by("model", maintain_order=True)
        if model_rows.height >= _MIN_ANSWERS and not (model_rows["value"] == "yes").any()
    ]
