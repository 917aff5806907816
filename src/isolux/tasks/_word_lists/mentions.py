"""Which group a text mentions, and a model's first text for each person."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.schema import to_polars
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._word_lists.lists import WordList

NEUTRAL, SEVERAL_GROUPS, NO_WORD = "neutral", "several groups", "no word for a person"
# Combining marks (\p{M}) belong to words: some scripts and decomposed accents need them.
_WORD = r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*"
_CONTRACTION = r"['’](?:s|d|ll|re|ve|m)$"
_BREAK_IN_WORD = r"[\x{AD}\x{200B}\x{2060}\x{FEFF}]\s*|-[ \t]*\r?\n\s*"
# Without this, the word pattern would read "(s)he" as "he", which is masculine.
_SHE_OR_HE = r"\bs/he\b|\(s\)he\b"
# From this share of texts without a word of the list, it may be for another language.
_MAX_UNMATCHED_SHARE = 0.5


def split_words(texts: pl.Series) -> pl.Series:
    """Split texts into words in lower case, without ``'s`` or ``'ll``; null stays null.

    "s/he" is two words; a word that is broken over two lines, or holds a soft hyphen, is one.

    Examples
    --------
    >>> split_words(pl.Series(["The WOMAN's bag.", None])).to_list()
    [['the', 'woman', 'bag'], None]
    """
    whole_texts = texts.cast(pl.String).str.normalize("NFKC").str.replace_all(_BREAK_IN_WORD, "")
    lower_texts = whole_texts.str.to_lowercase().str.replace_all(_SHE_OR_HE, "she he")
    words = lower_texts.str.extract_all(_WORD)
    return words.list.eval(pl.element().str.replace(_CONTRACTION, ""))


def classify_mentions(texts: pl.Series, words: WordList) -> pl.Series:
    """Return the group that each text mentions, or why it mentions none.

    Examples
    --------
    >>> from isolux.tasks._word_lists.lists import read_word_list
    >>> said = pl.Series(["a man rides", "a man and a girl", "a person", "a dog", "", None])
    >>> classify_mentions(said, read_word_list("english_people")).to_list()
    ['masculine', 'several groups', 'neutral', 'no word for a person', None, None]
    """
    text_words = split_words(texts)
    frame = pl.DataFrame(
        {name: _contains_any(text_words, group_words) for name, group_words in words.groups.items()}
        # The blank avoids a collision with a group called "neutral"; words contain none.
        | {" neutral": _contains_any(text_words, words.neutral)}
    )
    n = pl.sum_horizontal(*(pl.col(name).cast(pl.Int64) for name in words.groups))
    # Where a text has words of one group only, the first that matches is that group.
    only_group = pl.coalesce(
        *(pl.when(pl.col(name)).then(pl.lit(name)) for name in words.groups),
        pl.lit(None, dtype=pl.String),
    )
    mention_expr = (
        pl.when(n == 1)
        .then(only_group)
        .when(n > 1)
        .then(pl.lit(SEVERAL_GROUPS))
        # Neutral words count only where no group is named: "a person, he" names a group.
        .when(pl.col(" neutral"))
        .then(pl.lit(NEUTRAL))
        .otherwise(pl.lit(NO_WORD))
    )
    is_empty = texts.is_null() | (texts.cast(pl.String).str.strip_chars() == "")
    mentions = frame.select(said=mention_expr)["said"]
    return pl.select(pl.when(~is_empty).then(mentions)).to_series().rename("said")


def _contains_any(text_words: pl.Series, words: Collection[str]) -> pl.Series:
    """Return whether each text has any of these words; false where there is no text."""
    contains = text_words.list.eval(pl.element().is_in(sorted(words))).list.any()
    return contains.fill_null(value=False)


def _describe_word_list(mentions: pl.Series, words: WordList, text_kind: str) -> tuple[str, ...]:
    """Describe the list that was used; a caution where most texts have no word of it."""
    source = f"Words for people are those of {words.title!r} ({words.source})"
    valid_mentions = mentions.drop_nulls()
    share = float((valid_mentions == NO_WORD).mean() or 0.0) if len(valid_mentions) else 0.0  # type: ignore[arg-type]
    caution = Caution(
        f"{share:.0%} of the {text_kind}s have no word for a person that is on the list"
        f" {words.title!r}: is it for these texts, and for their language ({words.language})?"
    )
    return (caution, source) if share > _MAX_UNMATCHED_SHARE else (source,)


NO_PREDICTION = "no prediction"
_REQUIRED_COLUMNS = ("model", "instance_id", "label")
# Agreement is compared with chance from this many texts; a smaller excess counts as chance.
_MIN_TEXTS, _MIN_EXCESS = 30, 0.02


def select_first_texts(
    people: pl.DataFrame, predictions: object, model: str | None
) -> pl.DataFrame:
    """Select every model's first text for each person."""
    frame = to_polars(predictions)
    require_columns(frame, _REQUIRED_COLUMNS)
    rows = frame.with_columns(pl.col("model", "instance_id", "label").cast(pl.String))
    if "rank" in rows.columns:
        rows = rows.sort("rank", maintain_order=True)
    # One text a person: several would give people with many texts more weight.
    first = rows.unique(["model", "instance_id"], keep="first", maintain_order=True)
    matched = first.join(people, left_on="instance_id", right_on="unit_id", how="semi")
    refuse_no_match(
        "no text is of a person of the dataset",
        first["instance_id"],
        people["unit_id"],
        n_matched=matched.height,
        expected="",
    )
    names = sorted(matched["model"].drop_nulls().unique()) or [model or "model"]
    people_by_model = people.join(
        pl.DataFrame({"model": names}), how="cross", maintain_order="left_right"
    )
    texts = matched.select("model", unit_id="instance_id", text="label")
    first_rows = people_by_model.join(
        texts, on=["model", "unit_id"], how="left", maintain_order="left"
    )
    return first_rows.sort("model", maintain_order=True)


def classify_texts(
    people: pl.DataFrame,
    predictions: object,
    model: str | None,
    words: WordList,
    text_kind: str,
    *,
    empty: str | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Classify whom the first text of each person mentions, or why that is unknown; with notes."""
    rows = select_first_texts(people, predictions, model)
    mentions = classify_mentions(rows["text"], words)
    valid_mentions = mentions.drop_nulls()
    # A list of another language would give an error rate of 0 in every group.
    if len(valid_mentions) and (valid_mentions == NO_WORD).all():
        raise SpecError(
            f"not one {text_kind} has a word of the list {words.title!r}",
            expected=f"texts in {words.language}, with words such as "
            + ", ".join(repr(min(group_words)) for group_words in words.groups.values()),
            found="other words alone",
            where="words",
            hint="name a list of that language, --words FILE (words=…), or the texts' column",
        )
    classified = rows.with_columns(
        mentions,
        reason=pl.coalesce(
            pl.col("reason"),
            pl.when(pl.col("text").is_null()).then(pl.lit(NO_PREDICTION)),
            # A row with an empty text is a statement of the model; a missing row is not.
            pl.when(mentions.is_null()).then(pl.lit(empty or f"no {text_kind}")),
        ),
    )
    return classified, _describe_word_list(mentions, words, text_kind)


def caution_on_chance_agreement(
    classified: pl.DataFrame, groups: Collection[str]
) -> tuple[Caution, ...]:
    """Caution where texts name the true group no more often than expected by chance."""
    notes = []
    valid_rows = classified.filter(
        pl.col("said").is_in(list(groups)), pl.col("truth").is_not_null()
    )
    for (model,), rows in valid_rows.group_by("model", maintain_order=True):
        n = rows.height
        # With one true group, agreement equals chance, whatever the texts say.
        if n < _MIN_TEXTS or rows["truth"].n_unique() == 1:
            continue
        agreement = rows.select((pl.col("said") == pl.col("truth")).mean()).item()
        # Expected agreement of independent mentions and truths, as in Cohen's kappa.
        chance = sum(
            rows.select((pl.col("said") == g).mean()).item()
            * rows.select((pl.col("truth") == g).mean()).item()
            for g in groups
        )
        error = (max(chance * (1.0 - chance), 0.0) / n) ** 0.5
        if agreement <= chance + max(3.0 * error, _MIN_EXCESS):
            notes.append(
                Caution(
                    f"The texts of {model!r} name the true group of {agreement:.0%}, and of"
                    f" {chance:.0%} they would by chance. Are they of these people?"
                )
            )
    return tuple(notes)
