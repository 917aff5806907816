"""Questions and answers: rows of answers to questions, and the selection of one prompt for each.

FHIBE asks each question in several wordings and keeps the one that is answered most often (Xiang et
al. 2025, Methods, BLIP-2). The people used to select it can be excluded from the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.notes import Caution
from isolux.core.schema import to_polars
from isolux.io.prompts import PromptFile
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks.answers.answer_rules import (
    AnswerRule,
    matches_rule,
    normalise_texts,
    read_rule,
    read_values,
)

CHOSE = "used to choose the prompts"
"""The reason of people who were used to choose the prompts."""

_REQUIRED_COLUMNS = ("model", "instance_id", "label")
# A column with more distinct texts is refused as one of questions.
_MAX_QUESTIONS = 50
# From this share of answers that begin with yes or no, they are read so.
_MIN_YES_NO_SHARE = 0.95
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class QuestionAnswers:
    """Answers to questions, one per row.

    Parameters
    ----------
    rows : polars.DataFrame
        ``model, unit_id, question`` (its name; empty: the only one), ``prompt`` (the words that
        were asked, empty: not said), ``text`` (as it was answered), ``said`` (of ``plain``),
        ``state`` ("answered", "declined", "empty").
    questions : tuple of str
        Their names, in the order of the file, else of the alphabet.
    notes : tuple of str
    has_wordings : bool
        Whether prompts are ways to ask, of which everyone has an answer to each. Of a zero-shot
        label the prompt is the description that decided: another one for another person.
    """

    rows: pl.DataFrame
    questions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    has_wordings: bool = True


def read_question_answers(
    people: pl.Series, predictions: object, prompts: PromptFile | None, declined: AnswerRule
) -> QuestionAnswers:
    """Read answers, name the question of each, and find those that are empty or decline."""
    frame = to_polars(predictions)
    require_columns(frame, _REQUIRED_COLUMNS)
    text_columns = [
        name for name in (*_REQUIRED_COLUMNS, "question", "prompt") if name in frame.columns
    ]
    rows = frame.with_columns(pl.col(text_columns).cast(pl.String))
    matched = rows.filter(pl.col("instance_id").is_in(people.implode()))
    refuse_no_match(
        "no answer is about a person of the dataset",
        rows["instance_id"],
        people,
        n_matched=matched.height,
        expected="",
    )
    has_wordings = "question" in matched.columns and bool(matched["question"].is_not_null().any())
    named_rows, questions, notes = (_name_questions if has_wordings else _take_first_answers)(
        matched, prompts
    )
    plain_texts = normalise_texts(named_rows["label"])
    # The first that applies.
    state = (
        pl.when(plain_texts.is_null())
        .then(pl.lit("empty"))
        .when(matches_rule(plain_texts, declined))
        .then(pl.lit("declined"))
        .otherwise(pl.lit("answered"))
    )
    answers = named_rows.select("model", "question", "prompt", unit_id="instance_id", text="label")
    answers = answers.with_columns(said=plain_texts, state=state)
    # All rates would be undefined, and a response rate of 0 in every group reads as no difference.
    if answers.height and plain_texts.is_null().all():
        raise SpecError(
            "the model answers nothing: every answer is empty",
            expected="texts",
            found=f"{answers.height:,} answers without a letter or digit",
            where="predictions",
            hint="is the column of answers the right one (--prediction-column)?",
        )
    return QuestionAnswers(answers, questions, tuple(notes), has_wordings)


def _take_first_answers(
    answers: pl.DataFrame, prompts: PromptFile | None
) -> tuple[pl.DataFrame, tuple[str, ...], list[str]]:
    """Keep each person's first answer, where the table does not name the question."""
    question_names = (
        list(prompts.prompts) if prompts is not None and prompts.has_read_rules() else []
    )
    # Keeping the first answer would mix answers to different questions.
    if len(question_names) > 1:
        raise SpecError(
            "the answers do not say which question they belong to",
            expected="a column question, or --option question_column=COLUMN: "
            + ", ".join(question_names[:_MAX_LISTED]),
            found="none",
            where="predictions",
        )
    if "rank" in answers.columns:
        answers = answers.sort("rank", maintain_order=True)
    first_answers = answers.unique(["model", "instance_id"], keep="first", maintain_order=True)
    prompt = (
        pl.col("prompt") if "prompt" in first_answers.columns else pl.lit(None, dtype=pl.String)
    )
    name = question_names[0] if question_names else ""
    return first_answers.with_columns(question=pl.lit(name), prompt=prompt), (name,), []


def _name_questions(
    answers: pl.DataFrame, prompts: PromptFile | None
) -> tuple[pl.DataFrame, tuple[str, ...], list[str]]:
    """Name the question of each row: as in the file of prompts, else by its own text."""
    words = pl.col("question").str.replace_all(r"\s+", " ").str.strip_chars()
    rows = answers.with_columns(prompt=words)
    if prompts is None:
        names = rows["prompt"].drop_nulls().unique().sort().to_list()
        # Then the column probably holds answers, or a prompt of its own for each image.
        if len(names) > _MAX_QUESTIONS:
            raise SpecError(
                f"there are {len(names):,} different questions",
                expected=f"at most {_MAX_QUESTIONS}, each asked of everyone",
                found=", ".join(map(repr, names[:3])),
                where="predictions, column 'question'",
                hint="a file of prompts says which ones belong together (--prompts FILE)",
            )
        questioned_rows = rows.drop_nulls("prompt").with_columns(question="prompt")
        n_excluded = rows.height - questioned_rows.height
        note = f"{n_excluded:,} of {rows.height:,} answers have no question, and were left out."
        return questioned_rows, tuple(names), [Caution(note)] if n_excluded else []
    question_by_key = {
        _normalise_question(text): name for name, texts in prompts.prompts.items() for text in texts
    }
    # Tables may name a question by its short name instead of its text.
    question_by_key |= {_normalise_question(name): name for name in prompts.prompts}
    question_by_text = {
        text: question_by_key.get(_normalise_question(text))
        for text in rows["prompt"].drop_nulls().unique()
    }
    named_rows = rows.with_columns(
        question=pl.col("prompt").replace_strict(
            question_by_text, default=None, return_dtype=pl.String
        )
    )
    kept_rows = named_rows.drop_nulls("question")
    unknown_texts = sorted(text for text, name in question_by_text.items() if name is None)
    example_list = ", ".join(map(repr, unknown_texts[:3]))
    if not kept_rows.height and rows.height:
        raise SpecError(
            "not one question is in the file of prompts",
            expected=", ".join(repr(texts[0]) for texts in prompts.prompts.values()),
            found=example_list,
            where=prompts.name,
        )
    notes: list[str] = []
    if kept_rows.height < rows.height:
        text = (
            f"{rows.height - kept_rows.height:,} of {rows.height:,} answers are to questions that"
            f" {prompts.name} does not have, and were left out: "
            f"{example_list or 'rows without a question'}."
        )
        notes.append(Caution(text))
    present_names = set(kept_rows["question"].unique())
    unused = ", ".join(repr(name) for name in prompts.prompts if name not in present_names)
    notes += [f"These prompts of {prompts.name} were not used: {unused}."] if unused else []
    return kept_rows, tuple(name for name in prompts.prompts if name in present_names), notes


def _normalise_question(text: str) -> str:
    """Reduce a question to lower case and single blanks, for comparison."""
    return " ".join(text.lower().split())


@dataclass(frozen=True, slots=True)
class SelectedPrompts:
    """The answers to the selected prompts, the people used to select them, and the prompts."""

    rows: pl.DataFrame
    selector_ids: pl.Series
    prompts_by_model: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]


def select_prompts(
    answers: QuestionAnswers,
    clusters: pl.DataFrame,
    share: float,
    *,
    is_requested: bool,
) -> SelectedPrompts:
    """Keep the prompt of each question that is answered most often, for each model."""
    prompt_counts = answers.rows.select("question", "prompt").unique().group_by("question").len()
    # With one wording each there is nothing to select.
    if not (is_requested and answers.has_wordings and (prompt_counts["len"] > 1).any()):
        return SelectedPrompts(answers.rows, pl.Series("unit_id", [], dtype=pl.String), {}, ())
    selector_ids = _sample_selectors(clusters, share)
    selection_rows = (
        answers.rows.filter(pl.col("unit_id").is_in(selector_ids.implode()))
        if share
        else answers.rows
    )
    rates = (
        selection_rows.group_by("model", "question", "prompt")
        # FHIBE keeps the prompt with the highest response rate (Methods, BLIP-2). Models answer
        # different wordings best, so each model has its own.
        .agg(rate=(pl.col("state") == "answered").mean(), n=pl.len())
        # Equal rates: the first by name, so that a repeated audit selects the same wording.
        .sort("model", "question", "rate", "prompt", descending=[False, False, True, False])
    )
    best_prompts = rates.unique(["model", "question"], keep="first", maintain_order=True)
    kept_rows = answers.rows.join(best_prompts, on=["model", "question", "prompt"], how="semi")
    prompts_by_model: dict[str, dict[str, str]] = {}
    for model, question, prompt in best_prompts.select("model", "question", "prompt").iter_rows():
        prompts_by_model.setdefault(model, {})[question] = prompt
    return SelectedPrompts(
        kept_rows,
        selector_ids,
        prompts_by_model,
        _describe_selection(rates, share, len(selector_ids)),
    )


def _sample_selectors(clusters: pl.DataFrame, share: float) -> pl.Series:
    """Sample clusters of people to select prompts: the same ones for any order of rows."""
    # Whole clusters: photos of one person in both parts would undo the separation.
    clusters_by_unit = clusters.select("unit_id", cluster=pl.coalesce("cluster_id", "unit_id"))
    # Sorted, so that the sample does not depend on the order of rows.
    cluster_names = clusters_by_unit["cluster"].unique().sort()
    order = np.random.default_rng(0).permutation(len(cluster_names))
    sampled_clusters = cluster_names.gather(order[: round(share * len(cluster_names))].tolist())
    return clusters_by_unit.filter(pl.col("cluster").is_in(sampled_clusters.implode()))["unit_id"]


def _describe_selection(rates: pl.DataFrame, share: float, n_selectors: int) -> tuple[str, ...]:
    """Describe which prompts were selected, and on whom."""
    notes = []
    for (model, question), prompt_rates in rates.group_by(
        ["model", "question"], maintain_order=True
    ):
        if prompt_rates.height == 1:
            continue
        other_rates = ", ".join(f"{rate:.1%}" for rate in prompt_rates["rate"][1 : _MAX_LISTED + 1])
        notes.append(
            f"Of {prompt_rates.height} ways to ask {question!r}, {model!r} answered"
            f" {prompt_rates['prompt'][0]!r} most often ({prompt_rates['rate'][0]:.1%} of"
            f" {prompt_rates['n'][0]:,}; the others {other_rates}): it is the one that is reported."
        )
    explanation = (
        f"Prompts were chosen by the answers about {n_selectors:,} people, who are in none of the"
        " numbers."
        if share
        else "Prompts were chosen on the same people that are reported on, so their response rates "
        "are slightly too high; --choose-on 0.2 chooses on a fifth of the clusters and "
        "reports on the others."
    )
    return (*notes, explanation) if notes else ()


def check_share(share: float) -> None:
    """Refuse a share of clusters that leaves no one to report on."""
    # 0 is allowed: everyone selects and is reported on, as FHIBE does.
    if not 0.0 <= share < 1.0:
        raise SpecError(
            "choose_on is a share of the clusters",
            expected="0 (everyone chooses and is reported on) to below 1",
            found=f"{share:g}",
            where="--choose-on",
        )


def select_rules(
    answers: QuestionAnswers, prompts: PromptFile | None, read: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Select the rules for the answers to each question; an empty name: the literal answer."""
    requested = (read,) if isinstance(read, str) else tuple(read)
    question_by_key = {_normalise_question(name): name for name in answers.questions}
    shared_rules: list[str] = []
    rules_by_question: dict[str, list[str]] = {}
    for entry in requested:
        # From the right: a question may contain an equals sign, the name of a rule does not.
        question, equals, rule = entry.rpartition("=")
        if not equals:
            shared_rules.append(entry)
        elif _normalise_question(question) in question_by_key:
            rules_by_question.setdefault(question_by_key[_normalise_question(question)], []).append(
                rule.strip()
            )
        else:
            raise UnknownNameError("question", question, answers.questions, where="--read")
    file_rules = {} if prompts is None else prompts.read_rules
    return {
        # The most specific setting wins: for this question, for all, in the file of prompts, then a
        # guess.
        name: tuple(rules_by_question.get(name, ()))
        or tuple(shared_rules)
        or file_rules.get(name, ())
        or _guess_rules(answers, name)
        for name in answers.questions
    }


def _guess_rules(answers: QuestionAnswers, question: str) -> tuple[str, ...]:
    """Guess a rule: yes or no where nearly all answers say one; else the literal answer."""
    answered = answers.rows.filter(question=question, state="answered")
    yes_no_share = read_values(answered["said"], read_rule("yes_no")).is_in(["yes", "no"]).mean()
    return ("yes_no",) if float(yes_no_share or 0.0) >= _MIN_YES_NO_SHARE else ("",)  # type: ignore[arg-type]
