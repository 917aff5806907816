"""Whom a text mentions, and the first text that a model gave for each person."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._words.lists import WordList
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.schema import to_polars

NEUTRAL, BOTH, NO_WORD = "neutral", "several groups", "no word for a person"
_WORD = r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*"
_EITHER = r"\bs/he\b|\(s\)he\b"  # read as "he" alone it would be masculine
_FEW = 0.5


def words_of(texts: pl.Series) -> pl.Series:
    """List a text's words in lower case, without ``'s``; null stays null. "s/he" is two words.

    Examples
    --------
    >>> words_of(pl.Series(["The WOMAN's bag.", None])).to_list()
    [['the', 'woman', 'bag'], None]
    """
    plain = texts.cast(pl.String).str.to_lowercase().str.replace_all(_EITHER, "she he")
    parts = plain.str.extract_all(_WORD)
    return parts.list.eval(pl.element().str.replace(r"['’]s$", ""))


def mentioned(texts: pl.Series, words: WordList) -> pl.Series:
    """Say whom each text mentions.

    Examples
    --------
    >>> from isolux.tasks._words.lists import read_word_list
    >>> said = pl.Series(["a man rides", "a man and a girl", "a person", "a dog", "", None])
    >>> mentioned(said, read_word_list("english_people")).to_list()
    ['masculine', 'several groups', 'neutral', 'no word for a person', None, None]
    """
    parts = words_of(texts)
    frame = pl.DataFrame(
        {name: _any_of(parts, own) for name, own in words.groups.items()}
        | {" neutral": _any_of(parts, words.neutral)}
    )
    n = pl.sum_horizontal(*(pl.col(name).cast(pl.Int64) for name in words.groups))
    one = pl.coalesce(
        *(pl.when(pl.col(name)).then(pl.lit(name)) for name in words.groups),
        pl.lit(None, dtype=pl.String),
    )
    said = (
        pl.when(n == 1)
        .then(one)
        .when(n > 1)
        .then(pl.lit(BOTH))
        .when(pl.col(" neutral"))
        .then(pl.lit(NEUTRAL))
        .otherwise(pl.lit(NO_WORD))
    )
    empty = texts.is_null() | (texts.cast(pl.String).str.strip_chars() == "")
    known = frame.select(said.alias("said"))["said"]
    return pl.select(pl.when(~empty).then(known)).to_series().rename("said")


def _any_of(parts: pl.Series, words: Collection[str]) -> pl.Series:
    held = parts.list.eval(pl.element().is_in(sorted(words))).list.any()
    return held.fill_null(value=False)


def _on_words(said: pl.Series, words: WordList, what: str) -> tuple[str, ...]:
    """Say which list was used; a caution where most texts have no word of it."""
    source = f"Words for people are those of {words.title!r} ({words.source})"
    known = said.drop_nulls()
    share = float((known == NO_WORD).mean() or 0.0) if len(known) else 0.0  # type: ignore[arg-type]
    few = Caution(
        f"{share:.0%} of the {what}s have no word for a person that is on the list"
        f" {words.title!r}: is it for these texts, and for their language ({words.language})?"
    )
    return (few, source) if share > _FEW else (source,)


NO_ANSWER = "no prediction"
_NEEDED = ("model", "instance_id", "label")
_FEWEST, _ROOM = 30, 0.02  # texts, and the excess over chance that is none


def first_texts(people: pl.DataFrame, predictions: object, model: str | None) -> pl.DataFrame:
    """Give every model's first text for each person."""
    frame = to_polars(predictions)
    require_columns(frame, _NEEDED)
    rows = frame.with_columns(pl.col("model", "instance_id", "label").cast(pl.String))
    if "rank" in rows.columns:
        rows = rows.sort("rank", maintain_order=True)
    first = rows.unique(["model", "instance_id"], keep="first", maintain_order=True)
    met = first.join(people, left_on="instance_id", right_on="unit_id", how="semi")
    refuse_no_match(
        "no text is of a person of the dataset",
        first["instance_id"],
        people["unit_id"],
        n_matched=met.height,
        expected="",
    )
    names = sorted(met["model"].drop_nulls().unique()) or [model or "model"]
    every = people.join(pl.DataFrame({"model": names}), how="cross", maintain_order="left_right")
    texts = met.select("model", unit_id="instance_id", text="label")
    joined = every.join(texts, on=["model", "unit_id"], how="left", maintain_order="left")
    return joined.sort("model", maintain_order=True)


def judge_texts(
    people: pl.DataFrame,
    predictions: object,
    model: str | None,
    words: WordList,
    what: str,
    *,
    empty: str | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Say whom the first text of each person mentions, or why nothing is known; and what it is."""
    rows = first_texts(people, predictions, model)
    said = mentioned(rows["text"], words)
    known = said.drop_nulls()
    if len(known) and (known == NO_WORD).all():
        raise SpecError(
            f"not one {what} has a word of the list {words.title!r}",
            expected=f"texts in {words.language}, with words such as "
            + ", ".join(repr(min(own)) for own in words.groups.values()),
            found="other words alone",
            where="words",
            hint="name a list of that language, --words FILE (words=…), or the texts' column",
        )
    judged = rows.with_columns(
        said,
        reason=pl.coalesce(
            pl.col("reason"),
            pl.when(pl.col("text").is_null()).then(pl.lit(NO_ANSWER)),
            pl.when(said.is_null()).then(pl.lit(empty or f"no {what}")),
        ),
    )
    return judged, _on_words(said, words, what)


def told_of_chance(judged: pl.DataFrame, groups: Collection[str]) -> tuple[Caution, ...]:
    """Caution where texts name the true group no more often than they would by chance."""
    notes = []
    named = judged.filter(pl.col("said").is_in(list(groups)), pl.col("truth").is_not_null())
    for (model,), rows in named.group_by("model", maintain_order=True):
        n = rows.height
        if n < _FEWEST or rows["truth"].n_unique() == 1:
            continue
        right = rows.select((pl.col("said") == pl.col("truth")).mean()).item()
        chance = sum(
            rows.select((pl.col("said") == g).mean()).item()
            * rows.select((pl.col("truth") == g).mean()).item()
            for g in groups
        )
        error = (max(chance * (1.0 - chance), 0.0) / n) ** 0.5
        if right <= chance + max(3.0 * error, _ROOM):
            notes.append(
                Caution(
                    f"The texts of {model!r} name the true group of {right:.0%}, and of"
                    f" {chance:.0%} they would by chance. Are they of these people?"
                )
            )
    return tuple(notes)
