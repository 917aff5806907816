"""Rules for answers: files that extract a value, a refusal or toxic words from a text.

Patterns are Rust's regular expressions, whose time is linear in the length of the text: a pattern
from someone else cannot hang an audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import FileError, SpecError
from isolux.io.frames import refuse_unless_file
from isolux.io.hashing import sha256_file
from isolux.tasks._word_lists.files import find_word_file, read_word_file

NOTHING_READ = "nothing read"
"""The value of an answer that a rule does not match."""

_RULES_DIR = Path(__file__).parent / "rules"
_KEYS = ("title", "language", "source", "patterns", "values", "terms", "same", "not", "unless")
# Letters of an answer that is compared literally.
_MAX_LITERAL_LETTERS = 60


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """One file of rules.

    Parameters
    ----------
    name, title, language, source, sha256 : str
    patterns : tuple of str
        The first that matches counts, and its group is the value.
    words_by_value : mapping of str to tuple of str
        Value to words: the value that is the only one with words in the text.
    terms : tuple of str
        A lexicon: a text matches with any of these words.
    value_by_spelling : mapping of str to str
        Other spellings, and the value of each.
    empty_values : frozenset of str
        Matches that count as no value.
    exclusion_patterns : tuple of str
        Patterns of texts that match nothing, whatever else they contain.
    """

    name: str
    title: str
    language: str
    source: str
    sha256: str
    patterns: tuple[str, ...] = ()
    words_by_value: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    value_by_spelling: Mapping[str, str] = field(default_factory=dict)
    empty_values: frozenset[str] = frozenset()
    exclusion_patterns: tuple[str, ...] = ()

    def record(self) -> dict[str, str]:
        """Return name, title, source and hash for a run's record."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "sha256": self.sha256,
        }


def read_rule(name_or_path: str, *, required_key: str | None = None) -> AnswerRule:
    """Read a rule from a user's file, or one that comes with isolux.

    Examples
    --------
    >>> said = pl.Series(["She's a Teacher.", "teacher", "I like tea, and so on."])
    >>> read_values(normalise_texts(said), read_rule("occupation")).to_list()
    ['teacher', 'teacher', 'nothing read']
    """
    path = find_word_file("rule", name_or_path, _RULES_DIR, "--read")
    refuse_unless_file(path)
    digest = sha256_file(path)
    if path.suffix.lower() == ".txt":
        terms, source = _read_terms(_read_lines(path), name_or_path), f"the user's file {path.name}"
        return AnswerRule(name_or_path, path.stem, "language not said", source, digest, terms=terms)
    mapping = read_word_file("rule", path, _KEYS, name_or_path)
    present_keys = [key for key in ("patterns", "values", "terms") if mapping.get(key)]
    # With two kinds of rules in one file, their order would decide what is read.
    if len(present_keys) != 1 or (required_key is not None and present_keys != [required_key]):
        raise SpecError(
            "it is not clear what this file reads by",
            expected=f"{required_key}: [...]" if required_key else "one of patterns, values, terms",
            found=", ".join(present_keys) or "none",
            where=name_or_path,
        )
    values, spellings = mapping.get("values") or {}, mapping.get("same") or {}
    return AnswerRule(
        name_or_path,
        mapping["title"],
        mapping["language"],
        mapping["source"],
        digest,
        _check_patterns(
            mapping.get("patterns") or [], name_or_path, must_capture=required_key is None
        ),
        {
            _to_text(value): _read_terms(words or [""], name_or_path)
            for value, words in values.items()
        },
        _read_terms(mapping.get("terms") or [], name_or_path),
        {
            _normalise_word(old): _normalise_word(new)
            for new, olds in spellings.items()
            for old in (olds if isinstance(olds, list) else [olds])
        },
        frozenset(_normalise_word(empty_value) for empty_value in mapping.get("not") or []),
        _check_patterns(mapping.get("unless") or [], name_or_path, must_capture=False),
    )


def _read_lines(path: Path) -> list[str]:
    """Read the lines of a text file, without comments and empty lines."""
    try:
        # "-sig": editors on Windows put a byte order mark first, which would become part of a word.
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def _check_patterns(patterns: Sequence[Any], source: str, *, must_capture: bool) -> tuple[str, ...]:
    """Check that patterns compile and, if needed, have a group for the value."""
    for pattern in patterns:
        try:
            # Compiled on a sample text: a broken pattern fails here rather than after all answers
            # are read.
            groups = pl.select(pl.lit("x").str.extract_groups(str(pattern))).to_series()
            if must_capture and not groups.struct.fields:
                raise SpecError(
                    "a pattern does not say where the value stands",
                    expected="brackets around it, as in 'works as an? ([a-z ]+)'",
                    found=repr(pattern),
                    where=source,
                )
        except pl.exceptions.PolarsError as error:
            raise SpecError(
                "a pattern cannot be used",
                expected="a regular expression of Rust: no look-around, no back references",
                found=f"{pattern!r}: {str(error).splitlines()[-1]}",
                where=source,
            ) from error
    return tuple(map(str, patterns))


def _read_terms(entries: Any, source: str) -> tuple[str, ...]:
    """Read a word or a list of words, without duplicates."""
    items = [entries] if isinstance(entries, str) else entries
    words = [_normalise_word(term) for term in items] if isinstance(items, list) else []
    if isinstance(items, list) and not items:
        return ()
    if not words or not all(words):
        raise SpecError(
            "a list of words has an empty one, or none",
            expected="[word, word]",
            found=repr(entries),
            where=source,
        )
    return tuple(dict.fromkeys(words))


def _normalise_word(word: object) -> str:
    # The same normalisation as that of texts, or words would never match.
    return " ".join(_to_text(word).lower().replace("’", "'").split())


def _to_text(word: object) -> str:
    """Convert a YAML value to text; YAML reads yes and no as true and false."""
    return ("yes" if word else "no") if isinstance(word, bool) else str(word)


def normalise_texts(texts: pl.Series) -> pl.Series:
    r"""Normalise texts: lower case, straight quotes, single blanks; null without letter or digit.

    Examples
    --------
    >>> normalise_texts(pl.Series(["  She’s a\nnurse ", "...", None])).to_list()
    ["she's a nurse", None, None]
    """
    text = texts.cast(pl.String).str.to_lowercase().str.replace_all("[’‘`]", "'")
    # It names no gender, and word patterns would read the "he" in it.
    text = text.str.replace_all("(s)he", "they", literal=True)
    text = text.str.replace_all(r"\s+", " ").str.strip_chars()
    # "…" or "-" is no answer.
    has_letters = text.str.contains(r"[\p{L}\p{N}]")
    return pl.select(pl.when(has_letters).then(text).alias(texts.name)).to_series()


def matches_rule(texts: pl.Series, rule: AnswerRule) -> pl.Series:
    """Return whether each normalised text matches a pattern or term of the rule; null: no text.

    Examples
    --------
    >>> said = normalise_texts(
    ...     pl.Series(["I'm sorry, but no.", "I cannot help but smile", "a nurse"]),
    ... )
    >>> matches_rule(said, read_rule("declined", required_key="patterns")).to_list()
    [True, False, False]
    """
    is_match = pl.lit(value=False)
    for pattern in rule.patterns or _whole_word_patterns(rule.terms):
        is_match = is_match | pl.col("text").str.contains(pattern)
    # Exceptions override matches ("I cannot help but smile" is no refusal).
    for pattern in rule.exclusion_patterns:
        is_match = is_match & ~pl.col("text").str.contains(pattern)
    return texts.alias("text").to_frame().select(is_match).to_series()


def _whole_word_patterns(words: Sequence[str]) -> tuple[str, ...]:
    """Build one pattern that matches any of these as whole words."""
    escaped = "|".join(pl.Series(words).str.escape_regex().to_list())
    # Not \b: Rust counts the underscore as part of a word. Whole words, so that "ass" is not in
    # "class".
    return (rf"(?:^|[^\p{{L}}\p{{N}}])(?:{escaped})(?:$|[^\p{{L}}\p{{N}}])",) if words else ()


def read_values(texts: pl.Series, rule: AnswerRule | None) -> pl.Series:
    """Extract a value from each normalised text; without a rule, the text itself.

    Examples
    --------
    >>> read_values(normalise_texts(pl.Series(["A nurse.", None])), None).to_list()
    ['a nurse', None]
    """
    if rule is None:
        # "Nurse." and "nurse" are one answer.
        literals = texts.str.strip_chars(" .!?,;:\"'()").str.slice(0, _MAX_LITERAL_LETTERS)
        return literals.replace("", NOTHING_READ)
    if rule.words_by_value or rule.terms:
        return _read_named_values(texts, rule)
    frame = texts.alias("text").to_frame()
    first_match = pl.coalesce(
        # The first pattern that matches decides: a file lists specific patterns before general
        # ones.
        *(pl.col("text").str.extract(pattern, 1) for pattern in rule.patterns)
    )
    values = frame.select(first_match.str.strip_chars(" -'\"")).to_series()
    values = values.replace(dict(rule.value_by_spelling))
    is_empty = values.is_null() | values.is_in(list(rule.empty_values)) | (values == "")
    return pl.select(
        pl.when(texts.is_null())
        .then(None)
        .when(is_empty.fill_null(value=True))
        .then(pl.lit(NOTHING_READ))
        .otherwise(values)
    ).to_series()


def _read_named_values(texts: pl.Series, rule: AnswerRule) -> pl.Series:
    """Return the value whose words are in a text; nothing read where none or several are."""
    words = rule.words_by_value or {"yes": rule.terms}
    frame = texts.alias("text").to_frame()
    contains_words = frame.select(
        pl.col("text").str.contains(_whole_word_patterns(value_words)[0]).alias(name)
        for name, value_words in words.items()
    )
    # A text with words of several values is ambiguous, and has none.
    n = contains_words.select(pl.sum_horizontal(pl.all().cast(pl.Int64))).to_series()
    only_value = contains_words.select(
        pl.coalesce(*(pl.when(pl.col(v)).then(pl.lit(v)) for v in words))
    ).to_series()
    return pl.select(
        pl.when(texts.is_null())
        .then(None)
        .when(n == 1)
        .then(only_value)
        .otherwise(pl.lit(NOTHING_READ))
    ).to_series()
