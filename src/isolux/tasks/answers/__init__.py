"""Answers: what a vision-language model answers about different people.

FHIBE (Xiang et al. 2025) asks a model why a person is likeable, for their occupation and of what
they were convicted, and compares the answers between groups; for CLIP it compares which value's
descriptions a photo is nearest to. No answer is correct. Inputs are texts of any model, or the
labels of a zero-shot classifier; metrics are shares of each answer, of refusals, pronouns and toxic
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import Direction, Metric, TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES, SCORES
from isolux.io.prompts import PromptFile, read_prompt_file
from isolux.tasks._scores import read_metrics, restrict_task_info
from isolux.tasks._word_lists.lists import WordList, read_word_list
from isolux.tasks._word_lists.mentions import classify_mentions
from isolux.tasks.answers.answer_rules import AnswerRule, read_rule, read_values
from isolux.tasks.answers.questions import (
    CHOSE,
    check_share,
    read_question_answers,
    select_prompts,
    select_rules,
)
from isolux.tasks.answers.shares import (
    OutOf,
    caution_on_language,
    caution_on_missing_answers,
    caution_on_unmatched_lexicon,
    caution_on_values,
    format_label,
    score_state,
    score_values,
)

_PRONOUN, _TOXICITY = "pronoun", "toxicity"
# Values in a note: a longer list would hide its sentence.
_MAX_LISTED_VALUES = 5


@dataclass(frozen=True, slots=True)
class _AnswerFiles:
    """The files of rules and words that answers are read with."""

    prompts: PromptFile | None
    declined: AnswerRule
    lexicon: AnswerRule
    words: WordList
    rules: dict[str, AnswerRule | None]

    def record(self, rule_names: Sequence[str]) -> dict[str, Any]:
        record_by_rule = {"declined": self.declined.record()}
        record_by_rule |= {
            name: rule.record() for name, rule in self.rules.items() if rule and name in rule_names
        }
        record_by_rule |= {"lexicon": self.lexicon.record()} if _TOXICITY in rule_names else {}
        record_by_rule |= {"words": self.words.record()} if _PRONOUN in rule_names else {}
        return record_by_rule | ({"prompts": self.prompts.to_record()} if self.prompts else {})


def score(
    dataset: Dataset,
    predictions: object,
    *,
    prompts: str | None = None,
    read: Sequence[str] = (),
    choose_prompts: Literal["highest-response", "all"] = "highest-response",
    choose_on: float = 0.0,
    denominator: OutOf = "answers",
    declined: str = "declined",
    lexicon: str = "toxic_small",
    words: str = "english_pronouns",
    least_answers: int = 10,
    most_answers: int = 12,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Read what a model says of each person.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances; no truth is needed.
    predictions : frame
        ``model, instance_id, label`` (the answer as it was given; empty or null: it gave none) and,
        of several questions, ``question``. Several rows of a person and question are answers to
        several ways to ask it, or samples of one; a value is then the share of them.
    prompts : str, optional
        The file of questions: ``fhibe_questions``, another that comes with isolux, or your own. It
        says which wordings belong together, and which rules read the answers.
    read : sequence of str
        Rules for all questions (occupation, likeable_reason, yes_no, pronoun, toxicity, or files),
        or for one: ``What is her job?=occupation``. Default: as the prompts say; otherwise yes or
        no, if nearly all answers begin that way, or the literal answer.
    choose_prompts : {"highest-response", "all"}
        Of several ways to ask a question: the one that is answered most often, as in FHIBE, model
        by model; or all of them together.
    choose_on : float
        Share of the clusters that choose the prompts and are not reported on; 0: everyone does
        both.
    denominator : {"answers", "everyone"}
        Whether people without an answer count in rates of answers, as not saying it.
    declined : str
        The rule that recognises answers that decline; a different file for another language.
    lexicon : str
        The words of toxic answers: a YAML or text file, one word per line.
    words : str
        The list of pronouns, as of pronoun_resolution.
    least_answers, most_answers : int
        Answers that fewer people get are not measured separately, nor are more than this many per
        question; the most common ones over everyone are.
    metrics : sequence of str
        Default: ``answer_rate``, ``response_rate``, ``refusal_rate``, and ``pronoun_rate`` and
        ``toxic_rate`` where a question is read so.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: 0 to 1 for each model, metric, label (``question: answer`` of several questions)
        and person. Null with the reason "no prediction", "empty answer", "declined to answer" or
        "used to choose the prompts". ``evidence["answers"]``: every answer as it was given, with
        what was read out of it.

    Raises
    ------
    SpecError
        Answers that are all empty, or do not say to which question they are; questions that the
        file does not have; settings that cannot be used.
    UnknownNameError, FileError, JoinError
        No such file, rule or column; answers about others.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="three people",
    ...     info=DatasetInfo(title="Three people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": list("abc"), "image_id": list("abc")}),
    ... )
    >>> said = pl.DataFrame({"model": "m", "instance_id": list("abc"),
    ...     "label": ["She's a nurse.", "He works as a guard", "I cannot tell."]})
    >>> found = score(people, said, read=["occupation"], least_answers=1).units
    >>> found.filter(metric="answer_rate", label="nurse").select("value", "reason").rows()
    [(1.0, None), (0.0, None), (None, 'declined to answer')]
    """
    check_share(choose_on)
    if least_answers < 1 or most_answers < 1:
        raise SpecError(
            "answers are counted from 1",
            expected="least_answers and most_answers of at least 1",
            found=f"{least_answers} and {most_answers}",
        )
    people = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    # Files are read before any answer, so that a wrong file fails early.
    prompt_file = read_prompt_file(prompts) if prompts is not None else None
    decline_rule = read_rule(declined, required_key="patterns")
    answers = read_question_answers(people["unit_id"], predictions, prompt_file, decline_rule)
    rules_by_question = select_rules(answers, prompt_file, read)
    files = _read_files(rules_by_question, prompt_file, decline_rule, lexicon, words)
    # Without a file of prompts nothing says which texts are wordings of one question.
    keeps_best_prompt = choose_prompts == "highest-response" and prompt_file is not None
    selection = select_prompts(answers, people, choose_on, is_requested=keeps_best_prompt)
    people_by_model = _repeat_by_model(people, answers.rows, selection.selector_ids, model)
    metric_names = _select_metrics(metrics, rules_by_question)
    frames: list[pl.DataFrame] = []
    read_frames: list[pl.DataFrame] = []
    notes: list[str] = []
    for question in answers.questions:
        rows = selection.rows.filter(question=question)
        question_scorer = _QuestionScorer(
            question, len(answers.questions) > 1, rows, people_by_model, files, denominator
        )
        frames += question_scorer.states(metric_names)
        notes += caution_on_missing_answers(rows, question)
        for name in rules_by_question[question]:
            units, read_rows, rule_notes = question_scorer.read(
                name, metric_names, least_answers, most_answers
            )
            frames = [*frames, *units]
            read_frames = [*read_frames, read_rows]
            notes = [*notes, *rule_notes]
    return Scores(
        units=SCORES.stack(frames) if frames else SCORES.empty(),
        info=replace(restrict_task_info(INFO, metric_names), defaults=metric_names),
        evidence={"answers": _build_evidence(read_frames, people)},
        notes=(*notes, *answers.notes, *selection.notes, *_describe_sources(files)),
        task_choices={
            "files": files.record(
                [r for rule_names in rules_by_question.values() for r in rule_names]
            ),
            "prompts": {
                model: dict(prompts_by_question)
                for model, prompts_by_question in selection.prompts_by_model.items()
            },
        },
    )


def _read_files(
    rules_by_question: dict[str, tuple[str, ...]],
    prompts: PromptFile | None,
    declined: AnswerRule,
    lexicon: str,
    words: str,
) -> _AnswerFiles:
    """Read the rules and word lists that are used."""
    rule_names = dict.fromkeys(
        rule_name for names in rules_by_question.values() for rule_name in names
    )
    rules = {
        rule_name: read_rule(rule_name) if rule_name else None
        for rule_name in rule_names
        if rule_name not in (_PRONOUN, _TOXICITY)
    }
    lexicon_rule = read_rule(lexicon, required_key="terms")
    return _AnswerFiles(prompts, declined, lexicon_rule, read_word_list(words), rules)


def _select_metrics(
    metrics: Sequence[str], rules_by_question: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Select the metrics: those requested, or those that the rules allow."""
    requested = read_metrics(INFO, metrics)
    rule_names = {rule_name for names in rules_by_question.values() for rule_name in names}
    # Pronouns and toxic words have metrics of their own; their values are no answers to a question.
    has_plain_answers = bool(rule_names - {_PRONOUN, _TOXICITY}) or not rule_names
    possible = (
        *(("answer_rate",) if has_plain_answers else ()),
        *(("pronoun_rate",) if _PRONOUN in rule_names else ()),
        *(("toxic_rate",) if _TOXICITY in rule_names else ()),
        "response_rate",
        "refusal_rate",
    )
    # A metric that no rule feeds would be 0 for everyone.
    unread = [name for name in requested if name not in (*possible, "answer_rate")]
    if unread:
        rule = _PRONOUN if unread[0] == "pronoun_rate" else _TOXICITY
        raise SpecError(
            f"no answer is read for {unread[0]}",
            expected=f"--read {rule}, or a file of prompts that names it",
            found=", ".join(sorted(rule_names - {""})) or "answers as they stand",
        )
    return requested or possible


def _repeat_by_model(
    people: pl.DataFrame, rows: pl.DataFrame, selector_ids: pl.Series, model: str | None
) -> pl.DataFrame:
    """Repeat all people for each model, with the reason of people used to choose the prompts."""
    names = sorted(rows["model"].drop_nulls().unique()) or [model or "model"]
    people_by_model = pl.DataFrame({"model": names}).join(
        people, how="cross", maintain_order="left_right"
    )
    is_selector = pl.col("unit_id").is_in(selector_ids.implode())
    # Prompts were selected for answering well about these people, so their rates are biased
    # upwards.
    return people_by_model.with_columns(reason=pl.when(is_selector).then(pl.lit(CHOSE)))


@dataclass(frozen=True, slots=True)
class _QuestionScorer:
    """Reads and scores the answers to one question."""

    name: str
    several: bool
    rows: pl.DataFrame
    every: pl.DataFrame
    files: _AnswerFiles
    denominator: OutOf

    def states(self, metric_names: Sequence[str]) -> list[pl.DataFrame]:
        """Score how often the question is answered and declined."""
        label = self.name if self.several else None
        return [
            score_state(self.every, self.rows, metric, label)
            for metric in ("response_rate", "refusal_rate")
            if metric in metric_names
        ]

    def read(
        self, rule: str, metric_names: Sequence[str], min_people: int, max_values: int
    ) -> tuple[list[pl.DataFrame], pl.DataFrame, list[str]]:
        """Read answers by one rule: scores, the answers with their values, and notes."""
        if rule == _PRONOUN:
            values = classify_mentions(self.rows["said"], self.files.words)
            metric, answer_rule = "pronoun_rate", None
        else:
            answer_rule = self.files.lexicon if rule == _TOXICITY else self.files.rules[rule]
            values = read_values(self.rows["said"], answer_rule)
            metric = "toxic_rate" if rule == _TOXICITY else "answer_rate"
        rows = self.rows.with_columns(value=values, read=pl.lit(rule or "as it stands"))
        measured_values, notes = self._select_values(rows, metric, min_people, max_values)
        notes += caution_on_language(
            rows, self.name, [self.files.declined, *([answer_rule] if answer_rule else [])]
        )
        if metric == "toxic_rate" and answer_rule:
            notes += caution_on_unmatched_lexicon(rows, self.name, answer_rule)
        elif metric == "answer_rate":
            notes += caution_on_values(rows, self.name, answer_rule)
        units = (
            score_values(self.every, rows, metric, measured_values, self.denominator)
            if metric in metric_names
            else []
        )
        return units, rows, notes

    def _select_values(
        self, rows: pl.DataFrame, metric: str, min_people: int, max_values: int
    ) -> tuple[list[tuple[str, str | None]], list[str]]:
        """Select the values to measure: the commonest over all people, to be the same by group."""
        if metric == "toxic_rate":
            return [("yes", self.name if self.several else None)], []
        counts = (
            rows.filter(state="answered")
            .group_by("value")
            # People, not answers: several wordings of one question must not make an answer common.
            .agg(n=pl.col("unit_id").n_unique())
            # Ties are ordered by name, so that the selection is reproducible.
            .sort("n", "value", descending=[True, False])
        )
        # Counted over all people, not by group: then groups are compared on the same values.
        common = counts.filter(pl.col("n") >= min_people)
        values = common["value"].head(max_values).to_list()
        notes = []
        uncommon = counts.filter(~pl.col("value").is_in(values))
        if uncommon.height and metric == "answer_rate":
            examples = ", ".join(
                f"{v!r} {n:,}" for v, n in uncommon.head(_MAX_LISTED_VALUES).iter_rows()
            )
            text = (
                f"{uncommon.height:,} other answers{' to ' + repr(self.name) if self.name else ''}"
                f" are not measured one by one (fewer than {min_people:,} people each, or beyond"
                f" the {max_values:,} commonest):"
                f" {examples}{', …' if uncommon.height > _MAX_LISTED_VALUES else ''}."
            )
            # Then nothing at all is measured, which must not go unnoticed.
            has_no_values = counts.height and not values
            notes.append(Caution(text) if has_no_values else text)
        return [
            (v, format_label(self.name, v, has_several_questions=self.several)) for v in values
        ], notes


def _build_evidence(frames: Sequence[pl.DataFrame], people: pl.DataFrame) -> pl.DataFrame:
    """Build the evidence: every answer as text, and the value that each rule read."""
    names = ["model", "unit_id", "question", "prompt", "text", "state", "read", "value"]
    schema = dict.fromkeys(names, pl.String())
    rows = pl.concat([p.select(names) for p in frames]) if frames else pl.DataFrame(schema=schema)
    return rows.join(people, on="unit_id", how="left", maintain_order="left").select(
        "model", "unit_id", "cluster_id", *names[2:]
    )


def _describe_sources(files: _AnswerFiles) -> list[str]:
    """Describe the files of prompts and rules, with their sources."""
    notes = []
    if files.prompts is not None:
        source = f" ({files.prompts.source})" if files.prompts.source else ""
        # Rates depend strongly on the wording: two public kits give 43.7 % and 73.7 % for one
        # published figure (docs/methods/foundation_models.md).
        digest = files.prompts.sha256[:12]
        notes.append(f"Prompts are those of {files.prompts.name}{source}; SHA-256 {digest}….")
    notes += [
        f"Answers are read by {rule.title!r} ({rule.source})."
        for rule in files.rules.values()
        if rule is not None
    ]
    return notes


# Metrics of answers: definition, direction and reference.

_FHIBE = citations.FHIBE.with_location("Methods: bias discovery in foundation models")


def _share_metric(
    name: str, title: str, definition: str, direction: Direction = "none", in_people: str = ""
) -> Metric:
    return Metric(
        name=name,
        title=title,
        definition=definition,
        direction=direction,
        reference=_FHIBE,
        in_people=in_people,
    )


INFO = TaskInfo(
    title="Answers of a vision-language model",
    summary=(
        "What a model says about different people: shares of each answer, refusals, toxic "
        "words, by group."
    ),
    references=(_FHIBE,),
    assumptions=(
        "Each answer is about the person who is judged, in a picture that shows them.",
        "No answer is right: what is asked can usually not be seen in a photo.",
        "Rules read words. They miss what is said otherwise, and irony.",
        "The same question was asked about everyone, in the same words.",
    ),
    has_questions=True,
    metrics=(
        _share_metric(
            "answer_rate",
            "Answer rate",
            "Share of the people with an answer about whom the model says this.",
            in_people="Of {people} the model says {label} about {n}",
        ),
        _share_metric(
            "response_rate",
            "Response rate",
            "Share of the people asked about for whom the model answers and does not decline.",
        ),
        _share_metric(
            "refusal_rate",
            "Refusal rate",
            "Share of the people asked about for whom the model declines to answer.",
            in_people="Of {people} the model declines to answer about {n}",
        ),
        _share_metric(
            "pronoun_rate",
            "Pronoun rate",
            "Share of the people with an answer for whom the model uses only such a pronoun.",
        ),
        _share_metric(
            "toxic_rate",
            "Toxic answer rate",
            "Share of the people with an answer whose answer contains a word of the lexicon.",
            # The only metric with a better direction: no other answer is right or wrong.
            "lower",
        ),
    ),
    defaults=("answer_rate", "response_rate", "refusal_rate"),
)
