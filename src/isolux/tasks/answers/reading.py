"""What an answer says: files of rules that read a value, a refusal or toxic words out of a text.

Patterns are Rust's regular expressions, which take a time that grows with the text alone: a
pattern of someone else's cannot hang an audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.frames import refuse_unless_file
from isolux.io.hashing import sha256_file
from isolux.tasks._words.files import find_words, read_words
from isolux.vocabulary.errors import FileError, SpecError

NOTHING_READ = "nothing read"
"""The value of an answer in which a rule finds none."""

_HERE = Path(__file__).parent / "rules"
_KEYS = ("title", "language", "source", "patterns", "values", "terms", "same", "not", "unless")
_LONGEST = 60  # letters of an answer that is taken as it stands


@dataclass(frozen=True, slots=True)
class Rule:
    """One file of rules.

    Parameters
    ----------
    name, title, language, source, sha256 : str
    patterns : tuple of str
        The first that matches counts, and what stands in its brackets is the value.
    words : mapping of str to tuple of str
        Value to words: the value whose words alone stand in a text.
    terms : tuple of str
        Words of which any makes the text one of them (a lexicon).
    same : mapping of str to str
        Other spellings, and the value that is meant.
    never : frozenset of str
        Values that say nothing.
    unless : tuple of str
        Patterns of texts in which nothing is found, whatever else stands there.
    """

    name: str
    title: str
    language: str
    source: str
    sha256: str
    patterns: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    same: Mapping[str, str] = field(default_factory=dict)
    never: frozenset[str] = frozenset()
    unless: tuple[str, ...] = ()

    def record(self) -> dict[str, str]:
        """Say which file it was, for a run's record."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "sha256": self.sha256,
        }


def read_rule(named: str, *, holds: str | None = None) -> Rule:
    """Read a rule of one's own, or one that comes with isolux.

    Examples
    --------
    >>> said = pl.Series(["She's a Teacher.", "teacher", "I like tea, and so on."])
    >>> value_of(plain(said), read_rule("occupation")).to_list()
    ['teacher', 'teacher', 'nothing read']
    """
    path = find_words("rule", named, _HERE, "--read")
    refuse_unless_file(path)
    digest = sha256_file(path)
    if path.suffix.lower() == ".txt":
        terms, source = _terms(_lines(path), named), f"the user's file {path.name}"
        return Rule(named, path.stem, "language not said", source, digest, terms=terms)
    found = read_words("rule", path, _KEYS, named)
    given = [key for key in ("patterns", "values", "terms") if found.get(key)]
    if len(given) != 1 or (holds is not None and given != [holds]):
        raise SpecError(
            "it is not clear what this file reads by",
            expected=f"{holds}: [...]" if holds else "one of patterns, values, terms",
            found=", ".join(given) or "none",
            where=named,
        )
    values, same = found.get("values") or {}, found.get("same") or {}
    return Rule(
        named,
        found["title"],
        found["language"],
        found["source"],
        digest,
        _patterns(found.get("patterns") or [], named, captures=holds is None),
        {_name(value): _terms(words or [""], named) for value, words in values.items()},
        _terms(found.get("terms") or [], named),
        {
            _word(old): _word(new)
            for new, olds in same.items()
            for old in (olds if isinstance(olds, list) else [olds])
        },
        frozenset(_word(one) for one in found.get("not") or []),
        _patterns(found.get("unless") or [], named, captures=False),
    )


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    kept = [line.strip() for line in text.splitlines()]
    return [line for line in kept if line and not line.startswith("#")]


def _patterns(found: Sequence[Any], where: str, *, captures: bool) -> tuple[str, ...]:
    for one in found:
        try:
            groups = pl.select(pl.lit("x").str.extract_groups(str(one))).to_series()
            if captures and not groups.struct.fields:
                raise SpecError(
                    "a pattern does not say where the value stands",
                    expected="brackets around it, as in 'works as an? ([a-z ]+)'",
                    found=repr(one),
                    where=where,
                )
        except pl.exceptions.PolarsError as error:
            raise SpecError(
                "a pattern cannot be used",
                expected="a regular expression of Rust: no look-around, no back references",
                found=f"{one!r}: {str(error).splitlines()[-1]}",
                where=where,
            ) from error
    return tuple(map(str, found))


def _terms(found: Any, where: str) -> tuple[str, ...]:
    items = [found] if isinstance(found, str) else found
    words = [_word(one) for one in items] if isinstance(items, list) else []
    if isinstance(items, list) and not items:
        return ()
    if not words or not all(words):
        raise SpecError(
            "a list of words has an empty one, or none",
            expected="[word, word]",
            found=repr(found),
            where=where,
        )
    return tuple(dict.fromkeys(words))


def _word(one: object) -> str:
    return " ".join(_name(one).lower().replace("’", "'").split())


def _name(one: object) -> str:
    """Write a word; YAML takes yes and no for true and false."""
    return ("yes" if one else "no") if isinstance(one, bool) else str(one)


def plain(texts: pl.Series) -> pl.Series:
    r"""Write texts in lower case, with straight quotes and single blanks; null: nothing was said.

    Examples
    --------
    >>> plain(pl.Series(["  She’s a\nnurse ", "...", None])).to_list()
    ["she's a nurse", None, None]
    """
    text = texts.cast(pl.String).str.to_lowercase().str.replace_all("[’‘`]", "'")
    text = text.str.replace_all("(s)he", "they", literal=True)
    text = text.str.replace_all(r"\s+", " ").str.strip_chars()
    said = text.str.contains(r"[\p{L}\p{N}]")
    return pl.select(pl.when(said).then(text).alias(texts.name)).to_series()


def found_in(texts: pl.Series, rule: Rule) -> pl.Series:
    """Say of each text of ``plain`` whether a pattern or a term of the rule is in it; null: none.

    Examples
    --------
    >>> said = plain(pl.Series(["I'm sorry, but no.", "I cannot help but smile", "a nurse"]))
    >>> found_in(said, read_rule("declined", holds="patterns")).to_list()
    [True, False, False]
    """
    held = pl.lit(value=False)
    for pattern in rule.patterns or _of_words(rule.terms):
        held = held | pl.col("text").str.contains(pattern)
    for pattern in rule.unless:
        held = held & ~pl.col("text").str.contains(pattern)
    return texts.alias("text").to_frame().select(held).to_series()


def _of_words(words: Sequence[str]) -> tuple[str, ...]:
    """Make one pattern of whole words."""
    escaped = "|".join(pl.Series(words).str.escape_regex().to_list())
    return (rf"(?:^|[^\p{{L}}\p{{N}}])(?:{escaped})(?:$|[^\p{{L}}\p{{N}}])",) if words else ()


def value_of(texts: pl.Series, rule: Rule | None) -> pl.Series:
    """Read a value out of each text of ``plain``; without a rule, the text as it stands.

    Examples
    --------
    >>> value_of(plain(pl.Series(["A nurse.", None])), None).to_list()
    ['a nurse', None]
    """
    if rule is None:
        cut = texts.str.strip_chars(" .!?,;:\"'()").str.slice(0, _LONGEST)
        return cut.replace("", NOTHING_READ)
    if rule.words or rule.terms:
        return _named(texts, rule)
    frame = texts.alias("text").to_frame()
    first = pl.coalesce(*(pl.col("text").str.extract(one, 1) for one in rule.patterns))
    found = frame.select(first.str.strip_chars(" -'\"")).to_series()
    found = found.replace(dict(rule.same))
    bare = found.is_null() | found.is_in(list(rule.never)) | (found == "")
    return pl.select(
        pl.when(texts.is_null())
        .then(None)
        .when(bare.fill_null(value=True))
        .then(pl.lit(NOTHING_READ))
        .otherwise(found)
    ).to_series()


def _named(texts: pl.Series, rule: Rule) -> pl.Series:
    """Give the value whose words stand in a text; nothing where none or several do."""
    words = rule.words or {"yes": rule.terms}
    frame = texts.alias("text").to_frame()
    held = frame.select(
        pl.col("text").str.contains(_of_words(own)[0]).alias(value) for value, own in words.items()
    )
    n = held.select(pl.sum_horizontal(pl.all().cast(pl.Int64))).to_series()
    one = held.select(pl.coalesce(*(pl.when(pl.col(v)).then(pl.lit(v)) for v in words))).to_series()
    return pl.select(
        pl.when(texts.is_null()).then(None).when(n == 1).then(one).otherwise(pl.lit(NOTHING_READ))
    ).to_series()
