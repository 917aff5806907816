"""Lists of words by group, and the group that is true of each person in their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.hashing import sha256_file
from isolux.tasks._truth import instances_with_truth, values_of_truth
from isolux.tasks._words.files import find_words, read_words
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

_KEYS = ("title", "language", "source", "groups", "neutral")


@dataclass(frozen=True, slots=True)
class WordList:
    """Words by group.

    Parameters
    ----------
    title, source, language : str
    groups : mapping of str to frozenset of str
        Group to its words, lower case.
    neutral : frozenset of str
        Words for a person that tell no group.
    values : mapping of str to str
        What a dataset may call a group, lower case, to the group.
    sha256 : str
        Of the file.
    """

    title: str
    source: str
    language: str
    groups: Mapping[str, frozenset[str]]
    neutral: frozenset[str]
    values: Mapping[str, str]
    sha256: str

    def record(self) -> dict[str, str]:
        """Say which list it was, for a run's record."""
        return {"title": self.title, "source": self.source, "sha256": self.sha256}


def read_word_list(named: str | Path) -> WordList:
    """Read a list of one's own, or one that comes with isolux.

    Examples
    --------
    >>> words = read_word_list("english_pronouns")
    >>> sorted(words.groups["feminine"])
    ['her', 'hers', 'herself', 'she']
    >>> words.values["woman"]
    'feminine'
    """
    where = str(named)
    path = find_words("word list", where, Path(__file__).parent, "words")
    found = read_words("word list", path, _KEYS, where)
    groups, values = _groups(found.get("groups"), where)
    neutral = _words(found.get("neutral") or [], "neutral", where)
    owner: dict[str, str] = {}
    for name, words in {**groups, "neutral": neutral}.items():
        for word in sorted(words):
            if owner.setdefault(word, name) != name:
                raise SpecError(
                    f"the word {word!r} is of two groups",
                    expected="each word in one",
                    found=f"{owner[word]!r} and {name!r}",
                    where=where,
                )
    return WordList(
        title=found["title"],
        source=found["source"],
        language=found["language"],
        groups=groups,
        neutral=neutral,
        values=values,
        sha256=sha256_file(path),
    )


def _groups(found: Any, where: str) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    if (
        not isinstance(found, Mapping)
        or len(found) < 2
        or not all(isinstance(part, Mapping) for part in found.values())
    ):
        raise SpecError(
            "a word list has words by group",
            expected="groups: two or more, each with words: [...]",
            found=type(found).__name__ if not isinstance(found, Mapping) else ", ".join(found),
            where=where,
        )
    groups: dict[str, frozenset[str]] = {}
    values: dict[str, str] = {}
    for name, part in found.items():
        groups[str(name)] = _words(part.get("words") or [], str(name), where)
        if not groups[str(name)]:
            raise SpecError(
                f"the group {name!r} has no words", expected="words: [...]", where=where
            )
        for value in (name, *(part.get("values") or [])):
            key = str(value).strip().lower()
            if values.setdefault(key, str(name)) != name:
                raise SpecError(
                    f"the value {value!r} is called two groups",
                    expected="each value in one group",
                    found=f"{values[key]!r} and {name!r}",
                    where=where,
                )
    return groups, values


def _words(found: Sequence[Any], group: str, where: str) -> frozenset[str]:
    words = [str(word).strip().lower() for word in found]
    bad = [word for word in words if not word or not word.replace("'", "").isalpha()]
    if bad:
        raise SpecError(
            f"a word of {group!r} is not a single word",
            expected="letters alone; texts are read word by word",
            found=repr(bad[0]),
            where=where,
        )
    return frozenset(words)


def people_by_group(
    dataset: Dataset,
    target: str | None,
    words: WordList,
    label_map: Mapping[str, Sequence[str]] | None,
    unknown_values: Sequence[str],
) -> pl.DataFrame:
    """List the people with their group."""
    own = {
        str(old).strip().lower(): new
        for new, olds in (label_map or {}).items()
        for old in ((olds,) if isinstance(olds, str) else olds)
    }
    strange = [new for new in own.values() if new not in words.groups]
    if strange:
        raise SpecError(
            f"the word list has no group {strange[0]!r}",
            expected="one of " + ", ".join(words.groups),
            found=repr(strange[0]),
            where="label_map",
        )
    known = {**words.values, **own}
    values = values_of_truth(dataset, target).to_list()
    if values and not any(str(value).strip().lower() in known for value in values):
        raise SpecError(
            f"no value of {target or 'classes'!r} is one that the word list knows",
            expected=", ".join(sorted(known)),
            found=", ".join(map(repr, sorted(map(str, values))[:8])),
            where="target",
            hint=f'say which is which: --label-map "{next(iter(words.groups))}={values[0]}"',
        )
    people = instances_with_truth(dataset, target, {}, unknown_values)
    groups = pl.col("truth").list.eval(
        pl.element().str.strip_chars().str.to_lowercase().replace_strict(known, default=None)
    )
    unique = groups.list.drop_nulls().list.unique()
    n = unique.list.len().fill_null(0)
    return people.select(
        "unit_id",
        "cluster_id",
        truth=pl.when(n == 1).then(unique.list.first()),
        reason=pl.when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        .when(n == 0)
        .then(pl.lit("no words for this value"))
        .when(n > 1)
        .then(pl.lit("several groups are true")),
    )
