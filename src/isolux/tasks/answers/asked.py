"""What was asked and answered: rows of answers to questions, and of several ways to ask, one.

FHIBE asks each question in several ways and keeps the one that is answered most often (Xiang et al.
2025, Methods, BLIP-2). People by whom it was chosen may be kept out of what is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.io.prompts import PromptFile
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks.answers.reading import Rule, found_in, plain
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.schema import to_polars

CHOSE = "used to choose the prompts"
"""The reason of people by whom prompts were chosen."""

_NEEDED = ("model", "instance_id", "label")
_MOST_QUESTIONS = 50
_NEARLY_ALL = 0.95
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """Answers, one a row.

    Parameters
    ----------
    rows : polars.DataFrame
        ``model, unit_id, question`` (its name; empty: the only one), ``prompt`` (the words that
        were asked, empty: not said), ``text`` (as it was answered), ``said`` (of ``plain``),
        ``state`` ("answered", "declined", "empty").
    questions : tuple of str
        Their names, in the order of the file, else of the alphabet.
    notes : tuple of str
    ways : bool
        Whether prompts are ways to ask, of which everyone has an answer to each. Of a zero-shot
        label the prompt is the description that decided: another one for another person.
    """

    rows: pl.DataFrame
    questions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    ways: bool = True


def answered_rows(
    people: pl.Series, predictions: object, prompts: PromptFile | None, declined: Rule
) -> Asked:
    """Read answers, name the question of each, and tell which are none."""
    frame = to_polars(predictions)
    require_columns(frame, _NEEDED)
    text = [name for name in (*_NEEDED, "question", "prompt") if name in frame.columns]
    rows = frame.with_columns(pl.col(text).cast(pl.String))
    met = rows.filter(pl.col("instance_id").is_in(people.implode()))
    refuse_no_match(
        "no answer is about a person of the dataset",
        rows["instance_id"],
        people,
        n_matched=met.height,
        expected="",
    )
    ways = "question" in met.columns and bool(met["question"].is_not_null().any())
    named, questions, notes = (_named if ways else _first)(met, prompts)
    said = plain(named["label"])
    state = (
        pl.when(said.is_null())
        .then(pl.lit("empty"))
        .when(found_in(said, declined))
        .then(pl.lit("declined"))
        .otherwise(pl.lit("answered"))
    )
    held = named.select("model", "question", "prompt", unit_id="instance_id", text="label")
    held = held.with_columns(said.alias("said"), state=state)
    if held.height and said.is_null().all():
        raise SpecError(
            "the model answers nothing: every answer is empty",
            expected="texts",
            found=f"{held.height:,} answers without a letter or digit",
            where="predictions",
            hint="is the column of answers the right one (--prediction-column)?",
        )
    return Asked(held, questions, tuple(notes), ways)


def _first(
    met: pl.DataFrame, prompts: PromptFile | None
) -> tuple[pl.DataFrame, tuple[str, ...], list[str]]:
    """Take each person's first answer; it is to one question that the file does not name."""
    of_prompts = list(prompts.prompts) if prompts is not None and prompts.reads_any() else []
    if len(of_prompts) > 1:
        raise SpecError(
            "the answers do not say which question they belong to",
            expected="a column question, or --option question_column=COLUMN: "
            + ", ".join(of_prompts[:_SHOWN]),
            found="none",
            where="predictions",
        )
    if "rank" in met.columns:
        met = met.sort("rank", maintain_order=True)
    first = met.unique(["model", "instance_id"], keep="first", maintain_order=True)
    prompt = pl.col("prompt") if "prompt" in first.columns else pl.lit(None, dtype=pl.String)
    name = of_prompts[0] if of_prompts else ""
    return first.with_columns(question=pl.lit(name), prompt=prompt), (name,), []


def _named(
    met: pl.DataFrame, prompts: PromptFile | None
) -> tuple[pl.DataFrame, tuple[str, ...], list[str]]:
    """Name the question of each row: as the file does, else by its own words."""
    words = pl.col("question").str.replace_all(r"\s+", " ").str.strip_chars()
    rows = met.with_columns(prompt=words)
    if prompts is None:
        names = rows["prompt"].drop_nulls().unique().sort().to_list()
        if len(names) > _MOST_QUESTIONS:
            raise SpecError(
                f"there are {len(names):,} different questions",
                expected=f"at most {_MOST_QUESTIONS}, each asked of everyone",
                found=", ".join(map(repr, names[:3])),
                where="predictions, column 'question'",
                hint="a file of prompts says which ones belong together (--prompts FILE)",
            )
        asked = rows.filter(pl.col("prompt").is_not_null()).with_columns(question="prompt")
        lost = rows.height - asked.height
        told = f"{lost:,} of {rows.height:,} answers have no question, and were left out."
        return asked, tuple(names), [Caution(told)] if lost else []
    owner = {_key(text): name for name, texts in prompts.prompts.items() for text in texts}
    owner |= {_key(name): name for name in prompts.prompts}
    known = {text: owner.get(_key(text)) for text in rows["prompt"].drop_nulls().unique()}
    named = rows.with_columns(
        question=pl.col("prompt").replace_strict(known, default=None, return_dtype=pl.String)
    )
    kept = named.filter(pl.col("question").is_not_null())
    strange = sorted(text for text, name in known.items() if name is None)
    shown = ", ".join(map(repr, strange[:3]))
    if not kept.height and rows.height:
        raise SpecError(
            "not one question is in the file of prompts",
            expected=", ".join(repr(texts[0]) for texts in prompts.prompts.values()),
            found=shown,
            where=prompts.name,
        )
    notes: list[str] = []
    if kept.height < rows.height:
        text = (
            f"{rows.height - kept.height:,} of {rows.height:,} answers are to questions that"
            f" {prompts.name} does not have, and were left out: "
            f"{shown or 'rows without a question'}."
        )
        notes.append(Caution(text))
    there = set(kept["question"].unique())
    absent = ", ".join(repr(name) for name in prompts.prompts if name not in there)
    notes += [f"These prompts of {prompts.name} were not used: {absent}."] if absent else []
    return kept, tuple(name for name in prompts.prompts if name in there), notes


def _key(text: str) -> str:
    return " ".join(text.lower().split())


@dataclass(frozen=True, slots=True)
class Chosen:
    """The answers to the prompts that were chosen, who chose them, and what was chosen."""

    rows: pl.DataFrame
    by: pl.Series
    asked: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]


def choose(
    asked: Asked, clusters: pl.DataFrame, share: float, *, is_asked: bool, seed: int = 0
) -> Chosen:
    """Keep of each question the prompt that is answered most often, model by model."""
    ways = asked.rows.select("question", "prompt").unique().group_by("question").len()
    if not (is_asked and asked.ways and (ways["len"] > 1).any()):
        return Chosen(asked.rows, pl.Series("unit_id", [], dtype=pl.String), {}, ())
    by = _drawn(clusters, share, seed)
    seen = asked.rows.filter(pl.col("unit_id").is_in(by.implode())) if share else asked.rows
    rates = (
        seen.group_by("model", "question", "prompt")
        .agg(rate=(pl.col("state") == "answered").mean(), n=pl.len())
        .sort("model", "question", "rate", "prompt", descending=[False, False, True, False])
    )
    best = rates.unique(["model", "question"], keep="first", maintain_order=True)
    kept = asked.rows.join(best, on=["model", "question", "prompt"], how="semi")
    told: dict[str, dict[str, str]] = {}
    for model, question, prompt in best.select("model", "question", "prompt").iter_rows():
        told.setdefault(model, {})[question] = prompt
    return Chosen(kept, by, told, _said(rates, share, len(by)))


def _drawn(clusters: pl.DataFrame, share: float, seed: int) -> pl.Series:
    """Draw people whose clusters choose: the same ones, in whatever order they stand."""
    whose = clusters.select("unit_id", cluster=pl.coalesce("cluster_id", "unit_id"))
    names = whose["cluster"].unique().sort()
    order = np.random.default_rng(seed).permutation(len(names))
    drawn = names.gather(order[: round(share * len(names))].tolist())
    return whose.filter(pl.col("cluster").is_in(drawn.implode()))["unit_id"]


def _said(rates: pl.DataFrame, share: float, n_by: int) -> tuple[str, ...]:
    notes = []
    for (model, question), own in rates.group_by(["model", "question"], maintain_order=True):
        if own.height == 1:
            continue
        others = ", ".join(f"{rate:.1%}" for rate in own["rate"][1 : _SHOWN + 1])
        notes.append(
            f"Of {own.height} ways to ask {question!r}, {model!r} answered {own['prompt'][0]!r}"
            f" most often ({own['rate'][0]:.1%} of {own['n'][0]:,}; the others {others}): it is"
            " the one that is reported."
        )
    how = (
        f"Prompts were chosen by the answers about {n_by:,} people, who are in none of the numbers."
        if share
        else "Prompts were chosen on the same people that are reported on, so their response rates "
        "are slightly too high; --choose-on 0.2 chooses on a fifth of the clusters and "
        "reports on the others."
    )
    return (*notes, how) if notes else ()


def refuse_share(share: float) -> None:
    """Refuse a share of clusters that leaves no one to choose or to report on."""
    if not 0.0 <= share < 1.0:
        raise SpecError(
            "choose_on is a share of the clusters",
            expected="0 (everyone chooses and is reported on) to below 1",
            found=f"{share:g}",
            where="--choose-on",
        )


def rules_of(
    asked: Asked, prompts: PromptFile | None, read: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Say by which rules the answers to each question are read; an empty name: as they stand."""
    named = (read,) if isinstance(read, str) else tuple(read)
    owner = {_key(one): one for one in asked.questions}
    of_all: list[str] = []
    own: dict[str, list[str]] = {}
    for one in named:
        question, equals, rule = one.rpartition("=")
        if not equals:
            of_all.append(one)
        elif _key(question) in owner:
            own.setdefault(owner[_key(question)], []).append(rule.strip())
        else:
            raise UnknownNameError("question", question, asked.questions, where="--read")
    reads = {} if prompts is None else prompts.reads
    return {
        one: tuple(own.get(one, ())) or tuple(of_all) or reads.get(one, ()) or _guessed(asked, one)
        for one in asked.questions
    }


def _guessed(asked: Asked, question: str) -> tuple[str, ...]:
    """Read yes or no where nearly all answers begin so; the answer as it stands elsewhere."""
    given = asked.rows.filter((pl.col("question") == question) & (pl.col("state") == "answered"))
    begins = given["said"].str.contains(r"^[^\p{L}]*(?:yes|no)\b").mean()
    return ("yes_no",) if float(begins or 0.0) >= _NEARLY_ALL else ("",)  # type: ignore[arg-type]
