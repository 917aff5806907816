"""Whether answers and truth speak of the same classes; equal numbers are equal classes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.vocabulary.counts import how_often, people_in
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.notes import Caution

_SIGNS_BEFORE = re.compile(r"\s*([-+<>≤≥=\N{MINUS SIGN}]*)")
_SIGNS_AFTER = re.compile(r"([-+<>≤≥=\N{MINUS SIGN}]*)\s*$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FEW = 0.1
"""Share of answers that must be classes of the truth. Below it a vocabulary is another one; a model
of a thousand classes on a dataset of two is brought to those two by a map of its labels."""
_TOLD = 0.05
"""Share of answers outside the truth's classes from which the report's first screen says so."""
_LEAST = 30  # answers below which a class that only one side knows is a coincidence
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Words:
    """How labels are read: what each spelling means, before anything is judged.

    Parameters
    ----------
    unknown : frozenset of str
        Spellings, among those that occur, that mean "not known".
    merge : dict of str to str
        Spelling to the class it is merged into.
    same : dict of str to str
        Spelling of a number to the one that stands for it: ``1.0`` to ``1``.
    unmatched : tuple of str
        Old classes of a merge that neither truth nor answers hold.
    """

    unknown: frozenset[str]
    merge: dict[str, str]
    same: dict[str, str]
    unmatched: tuple[str, ...] = ()

    def known_as(self, label: str | None) -> str | None:
        """Return the spelling that stands for a label that a setting names."""
        return label if label is None else self.same.get(label, label)


def read_words(
    truth: Iterable[str],
    answers: Iterable[str],
    merge: Mapping[str, str],
    unknown_values: Collection[str],
    named: Iterable[str] = (),
) -> Words:
    """Read every spelling that occurs; equal numbers are equal labels.

    Examples
    --------
    >>> words = read_words(["0", "1"], ["1.0", "-1"], {}, ["-1"])
    >>> words.same, sorted(words.unknown)
    ({'1.0': '1'}, ['-1'])
    """
    first, second = sorted(set(truth) | set(merge.values())), sorted(set(answers))
    every = list(dict.fromkeys([*first, *second]))
    of_number: dict[float, list[str]] = {}
    for label in [*sorted(first, key=len), *sorted(second, key=len), *named]:
        if (value := _number(label)) is not None:
            of_number.setdefault(value, []).append(label)
    words = [word.strip().lower() for word in unknown_values]
    numbers = {value for word in words if (value := _number(word)) is not None}
    unknown = {w for w in every if w.strip().lower() in words or _number(w) in numbers}
    read: dict[str, str] = {}
    unmatched = []
    for old, new in merge.items():
        spelled = [w for w in of_number.get(_number(old) or math.nan, ()) if w in every]
        held = {*spelled, *([old] if old in every else [])}
        read |= dict.fromkeys(held, new)
        if not held & {*truth, *answers}:
            unmatched.append(old)
    same = {label: group[0] for group in of_number.values() for label in group[1:]}
    same = {label: word for label, word in same.items() if label != word}
    return Words(frozenset(unknown), read, same, tuple(unmatched))


def refuse_twins(units: pl.DataFrame) -> None:
    """Refuse classes that differ by case or blanks alone: ``Male`` and ``male``."""
    counts = how_often(units, pl.col("truth"))
    folded = counts.with_columns(folded=pl.col("label").map_elements(_folded, pl.String))
    twins = folded.filter(pl.col("folded").is_duplicated()).sort("folded", "label")
    if twins.height:
        one = twins.filter(pl.col("folded") == twins["folded"][0])
        kept = one.sort("count", descending=True)["label"][0]
        others = ",".join(label for label in one["label"] if label != kept)
        raise TableError(
            "classes of the truth differ by case or blanks alone",
            expected="one spelling for each class",
            found=list_classes(one, quoted=True),
            hint=f'if they are one class, --label-map "{kept}={others}"',
        )


def foreign_answers(units: pl.DataFrame, ranked: pl.DataFrame) -> list[Caution]:
    """Refuse a model whose answers are not the truth's classes; caution where some are not."""
    notes = []
    judged = units.filter(pl.col("unjudged").is_null() & pl.col("prediction").is_not_null())
    for (model,), mine in judged.group_by(["model"], maintain_order=True):
        true, given = (how_often(mine, pl.col(side)) for side in ("truth", "prediction"))
        foreign = given.join(true, on="label", how="anti")
        n, every, text = int(foreign["count"].sum()), people_in(mine), ""
        if n:
            # Lower ranks may hold the truth's classes where the first answers do not.
            lower = ranked.join(mine.select("unit", "prediction"), on="unit")
            others = lower.filter(pl.col("label") != pl.col("prediction"))["label"]
            met = bool(others.is_in(true["label"].implode()).any())
            share = n / every if not met else min(n / every, 1 - _FEW)
            _refuse_foreign(str(model), true, given, foreign, share)
            # Where one class is true of everyone, each mistake names another.
            if n / every >= (_TOLD if true.height > 1 else 0.5):
                text = (
                    f"{n:,} of {every:,} answers of {model!r} name classes that are true of nobody "
                    f"here, and count as mistakes: {list_classes(foreign, quoted=True)}."
                )
        elif true.height == 1:
            text = (
                f"Truth and answers of {model!r} are one class, {true['label'][0]!r}: no answer can"
                " be wrong, so nothing is shown of the model."
            )
        if text and every >= _LEAST:
            notes.append(Caution(text))
    return notes


def _refuse_foreign(
    model: str, true: pl.DataFrame, given: pl.DataFrame, foreign: pl.DataFrame, share: float
) -> None:
    classes, labels = true["label"].sort().to_list(), foreign["label"].to_list()
    never = true.join(given, on="label", how="anti")["label"].to_list()
    alike, numbers = _spelled_alike(labels, classes, never), _are_scores(labels, classes)
    if share <= 1 - _FEW and not alike and not numbers:
        return
    problem = f"hardly any answer of {model!r} is a class that is true of anyone"
    if numbers:
        problem = f"the answers of {model!r} look like scores, not classes"
    elif share == 1:
        problem = f"no answer of {model!r} is a class that is true of anyone"
    elif alike:
        problem = f"some answers of {model!r} are other spellings of the truth's classes"
    raise TableError(
        problem,
        expected=f"the truth's classes: {list_classes(true, quoted=True)}",
        found=f"answers: {list_classes(given, quoted=True)}",
        hint=_advice(alike, numbers, classes, labels),
    )


def _advice(alike: dict[str, str], numbers: bool, classes: list[str], foreign: list[str]) -> str:
    if numbers:
        return (
            "name the column with the class as --prediction-column (column=…) and the one with the"
            " score as --score-column (score=…)"
        )
    pairs = alike or dict(zip(sorted(foreign), classes, strict=False))
    by_class: dict[str, list[str]] = {}
    for answer, label in pairs.items():
        by_class.setdefault(label, []).append(answer)
    flags = " ".join(f'--label-map "{k}={",".join(v)}"' for k, v in list(by_class.items())[:_SHOWN])
    mapping = ", ".join(f"{k!r}: {v!r}" for k, v in list(by_class.items())[:_SHOWN])
    if alike:
        return f"{flags} (label_map={{{mapping}}})"
    return (
        f"say which answer means which class, for example {flags} (label_map={{…}}); or give the"
        " answers of the same people and the same question"
    )


def _spelled_alike(foreign: list[str], classes: list[str], never: list[str]) -> dict[str, str]:
    """Map answers to the class that they seem to spell: other case, blanks or signs; initials."""
    folded = {_folded(label): label for label in classes}
    found = {f: folded[_folded(f)] for f in foreign if _folded(f) in folded}
    for answer in foreign:
        short = _folded(answer)
        if answer in found or not short or _number(answer) is not None:
            continue
        near = [
            label
            for label in never
            if (long := _folded(label)) and (long.startswith(short) or short.startswith(long))
        ]
        if len(near) == 1:
            found[answer] = near[0]
    return found


def _are_scores(foreign: list[str], classes: list[str]) -> bool:
    """Tell a column of scores: fractions where no class has one, or many different numbers."""
    numbers, own = (
        {value for label in labels if (value := _number(label)) is not None}
        for labels in (foreign, classes)
    )
    if any(value != round(value) for value in own):
        return False
    is_fraction = any(value != round(value) for value in numbers)
    return is_fraction or len(numbers) > max(10, 2 * len(classes))


def _number(label: str) -> float | None:
    text = label.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _folded(label: str) -> str:
    """Bring spellings of one class together; a sign at either end is content: ``-1``, ``A-``."""
    inner = re.sub(r"[\W_]+", " ", label).strip().casefold()
    before, after = _SIGNS_BEFORE.match(label), _SIGNS_AFTER.search(label)
    signs = (before[1] if before else "", after[1] if after else "")
    return signs[0] + inner + signs[1] if inner else label


def list_classes(counts: pl.DataFrame, n: int = _SHOWN, *, quoted: bool = False) -> str:
    """List the commonest classes with their counts, and how many more there are."""
    top = counts.sort("count", "label", descending=[True, False]).head(n)
    rows = top.select("label", "count").iter_rows()
    shown = [f"{repr(label) if quoted else label} ({count:,})" for label, count in rows]
    more = counts.height - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def refuse_unmatched(words: Words, known: Iterable[str]) -> None:
    """Refuse a merge of a class that nobody has and no answer names."""
    if words.unmatched:
        shown = sorted(set(known))[:30]
        raise SpecError(
            f"--label-map merges what is neither true of anyone nor answered: "
            f"{', '.join(map(repr, words.unmatched))}",
            expected="labels that occur: " + ", ".join(map(repr, shown)),
            where="label_map",
        )


LabelMap = Mapping[str, Sequence[str]]


def old_to_new(label_map: LabelMap | None) -> dict[str, str]:
    """Turn "new class: the old ones it unites" round; classes it does not name stay themselves.

    Examples
    --------
    >>> old_to_new({"Asian": ("East Asian", "Southeast Asian")})
    {'East Asian': 'Asian', 'Southeast Asian': 'Asian'}
    """
    merged: dict[str, str] = {}
    for new, old_ones in (label_map or {}).items():
        for old in (old_ones,) if isinstance(old_ones, str) else old_ones:
            if merged.setdefault(old, new) != new:
                raise SpecError(
                    f"the class {old!r} is merged into two classes",
                    expected="every class in one merge at most",
                    found=f"{merged[old]!r} and {new!r}",
                    where="label_map",
                )
    return merged
