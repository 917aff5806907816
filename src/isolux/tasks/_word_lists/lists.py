"""Lists of words by group, and the true group of each person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.io.hashing import sha256_file
from isolux.tasks._truth import instances_with_truth, list_truth_values
from isolux.tasks._word_lists.files import find_word_file, read_word_file

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
        Words for a person that name no group.
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
        """Return title, source and hash for a run's record."""
        return {"title": self.title, "source": self.source, "sha256": self.sha256}


def read_word_list(name_or_path: str | Path) -> WordList:
    """Read a list of one's own, or one that comes with isolux.

    Examples
    --------
    >>> words = read_word_list("english_pronouns")
    >>> sorted(words.groups["feminine"])
    ['her', 'hers', 'herself', 'she']
    >>> words.values["woman"]
    'feminine'
    """
    source = str(name_or_path)
    path = find_word_file("word list", source, Path(__file__).parent, "words")
    mapping = read_word_file("word list", path, _KEYS, source)
    groups, values = _read_groups(mapping.get("groups"), source)
    neutral = _read_group_words(mapping.get("neutral") or [], "neutral", source)
    group_by_word: dict[str, str] = {}
    for name, words in {**groups, "neutral": neutral}.items():
        for word in sorted(words):
            # A word of two groups would make a text ambiguous by itself.
            if group_by_word.setdefault(word, name) != name:
                raise SpecError(
                    f"the word {word!r} is of two groups",
                    expected="each word in one",
                    found=f"{group_by_word[word]!r} and {name!r}",
                    where=source,
                )
    return WordList(
        title=mapping["title"],
        source=mapping["source"],
        language=mapping["language"],
        groups=groups,
        neutral=neutral,
        values=values,
        # The run's record names the exact list: results with other words are not comparable.
        sha256=sha256_file(path),
    )


def _read_groups(entries: Any, source: str) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """Read the words of each group, and the values of datasets that mean it."""
    if (
        not isinstance(entries, Mapping)
        or len(entries) < 2
        or not all(isinstance(group_entry, Mapping) for group_entry in entries.values())
    ):
        raise SpecError(
            "a word list has words by group",
            expected="groups: two or more, each with words: [...]",
            found=type(entries).__name__
            if not isinstance(entries, Mapping)
            else ", ".join(entries),
            where=source,
        )
    groups: dict[str, frozenset[str]] = {}
    values: dict[str, str] = {}
    for name, group_entry in entries.items():
        groups[str(name)] = _read_group_words(group_entry.get("words") or [], str(name), source)
        # A group without words is never mentioned: its error rate would be 100 %.
        if not groups[str(name)]:
            raise SpecError(
                f"the group {name!r} has no words", expected="words: [...]", where=source
            )
        for alias in (name, *(group_entry.get("values") or [])):
            key = str(alias).strip().lower()
            # With a value of two groups, people would be assigned by the order of the file.
            if values.setdefault(key, str(name)) != name:
                raise SpecError(
                    f"the value {alias!r} is called two groups",
                    expected="each value in one group",
                    found=f"{values[key]!r} and {name!r}",
                    where=source,
                )
    return groups, values


def _read_group_words(entries: Sequence[Any], group: str, source: str) -> frozenset[str]:
    """Read one group's words in lower case; each must be a single word."""
    words = [str(word).strip().lower() for word in entries]
    # A phrase would never match, because texts are compared word by word.
    invalid_words = [word for word in words if not word or not word.replace("'", "").isalpha()]
    if invalid_words:
        raise SpecError(
            f"a word of {group!r} is not a single word",
            expected="letters alone; texts are read word by word",
            found=repr(invalid_words[0]),
            where=source,
        )
    return frozenset(words)


def assign_word_groups(
    dataset: Dataset,
    target: str | None,
    words: WordList,
    label_map: Mapping[str, Sequence[str]] | None,
    unknown_values: Sequence[str],
) -> pl.DataFrame:
    """Map each person's true value to a group of the word list."""
    user_map = {
        str(old).strip().lower(): new
        for new, olds in (label_map or {}).items()
        for old in ((olds,) if isinstance(olds, str) else olds)
    }
    unknown_groups = [new for new in user_map.values() if new not in words.groups]
    if unknown_groups:
        raise SpecError(
            f"the word list has no group {unknown_groups[0]!r}",
            expected="one of " + ", ".join(words.groups),
            found=repr(unknown_groups[0]),
            where="label_map",
        )
    if "" in user_map:
        raise SpecError(
            "an empty cell of the truth is unknown here",
            expected="values of the truth that are no empty cells",
            found=f'{user_map[""]}=""',
            where="label_map",
        )
    # The user's map overrides the list.
    group_by_value = {**words.values, **user_map}
    values = list_truth_values(dataset, target).to_list()
    # Otherwise everyone would be excluded, and the report would be empty without an error.
    if values and not any(str(value).strip().lower() in group_by_value for value in values):
        raise SpecError(
            f"no value of {target or 'classes'!r} is one that the word list knows",
            expected=", ".join(sorted(group_by_value)),
            found=", ".join(map(repr, sorted(map(str, values))[:8])),
            where="target",
            hint=f'say which is which: --label-map "{next(iter(words.groups))}={values[0]}"',
        )
    people = instances_with_truth(dataset, target, {}, unknown_values)
    groups = pl.col("truth").list.eval(
        pl.element()
        .str.strip_chars()
        .str.to_lowercase()
        .replace_strict(group_by_value, default=None)
    )
    unique = groups.list.drop_nulls().list.unique()
    n = unique.list.len().fill_null(0)
    return people.select(
        "unit_id",
        "cluster_id",
        # Annotators may have recorded both; no single mention would be right or wrong.
        truth=pl.when(n == 1).then(unique.list.first()),
        reason=pl.when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        .when(n == 0)
        .then(pl.lit("no words for this value"))
        .when(n > 1)
        .then(pl.lit("several groups are true")),
    )
