"""Matching of predicted and true labels; equal numbers are equal classes."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.core.counts import count_people, count_people_by_label
from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux.core.spelling import describe_variants, fold_spelling
from isolux.tasks.classification.label_advice import advise_label_map

# Signs distinguish classes: "-1" and "1", "<18" and "18", "A+" and "A-".
_SIGNS_BEFORE = re.compile(r"\s*([-+<>≤≥=\N{MINUS SIGN}]*)")
_SIGNS_AFTER = re.compile(r"([-+<>≤≥=\N{MINUS SIGN}]*)\s*$")
# Stricter than float(), which also reads "nan", "infinity" and "1_000".
_NUMBER_PATTERN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MIN_SHARED_SHARE = 0.1
"""Share of predictions that must be classes of the truth. Below it the model has other classes; one
with a thousand classes on a dataset of two needs a map of its labels to those two."""
_CAUTION_SHARE = 0.05
"""From this share of predictions outside the truth's classes, the report begins with a caution."""
# With fewer predictions, a class that only one side has may be a coincidence.
_MIN_ANSWERS = 30
_MAX_LISTED_CLASSES = 8
BLANK = ""
"""What a merge calls the truth of an empty cell."""


@dataclass(frozen=True, slots=True)
class LabelMatching:
    """How labels are matched: the class of each spelling.

    Parameters
    ----------
    unknown_spellings : frozenset of str
        Spellings, among those that occur, that mean "not known".
    merge : dict of str to str
        Spelling to the class it is merged into.
    canonical_spellings : dict of str to str
        Spelling of a number to the one that is used for it: ``1.0`` to ``1``.
    unmatched : tuple of str
        Old classes of a merge that neither truth nor predictions have.
    blank_class : str or None
        The class of a truth that is an empty cell; None: such a truth is unknown.
    """

    unknown_spellings: frozenset[str]
    merge: dict[str, str]
    canonical_spellings: dict[str, str]
    unmatched: tuple[str, ...] = ()
    blank_class: str | None = None

    def canonical(self, label: str | None) -> str | None:
        """Return the spelling that is used for a label of a setting."""
        return label if label is None else self.canonical_spellings.get(label, label)


def match_labels(
    truth: Iterable[str],
    answers: Iterable[str],
    merge: Mapping[str, str],
    unknown_values: Collection[str],
    extra_labels: Iterable[str] = (),
) -> LabelMatching:
    """Match all spellings that occur; equal numbers are equal labels.

    The old class ``""`` of a merge is that of empty cells of the truth.

    Examples
    --------
    >>> words = match_labels(["0", "1"], ["1.0", "-1"], {}, ["-1"])
    >>> words.canonical_spellings, sorted(words.unknown_spellings)
    ({'1.0': '1'}, ['-1'])
    """
    blank_class = merge.get(BLANK)
    merge = {old: new for old, new in merge.items() if old != BLANK}
    truth_labels, answer_labels = sorted(set(truth) | set(merge.values())), sorted(set(answers))
    if blank_class is not None:
        extra_labels = (*extra_labels, blank_class)
    spellings = list(dict.fromkeys([*truth_labels, *answer_labels]))
    labels_by_number: dict[float, list[str]] = {}
    # Truth before predictions, and shortest first within each: the first spelling of a number
    # becomes the canonical one, such as "1" rather than "1.0".
    for label in [*sorted(truth_labels, key=len), *sorted(answer_labels, key=len), *extra_labels]:
        if (number := _parse_number(label)) is not None:
            labels_by_number.setdefault(number, []).append(label)
    unknown_words = [word.strip().lower() for word in unknown_values]
    # "-9" as a word for unknown also matches "-9.0", as pandas writes it.
    unknown_numbers = {
        number for word in unknown_words if (number := _parse_number(word)) is not None
    }
    unknown_spellings = {
        w
        for w in spellings
        if w.strip().lower() in unknown_words or _parse_number(w) in unknown_numbers
    }
    new_by_old: dict[str, str] = {}
    unmatched = []
    for old, new in merge.items():
        number = _parse_number(old)
        same_labels = () if number is None else labels_by_number.get(number, ())
        spelled = [label for label in same_labels if label in spellings]
        old_spellings = {*spelled, *([old] if old in spellings else [])}
        new_by_old |= dict.fromkeys(old_spellings, new)
        # Collected and refused later: a merge of nothing is a spelling mistake.
        if not old_spellings & {*truth, *answers}:
            unmatched.append(old)
    canonical = {label: group[0] for group in labels_by_number.values() for label in group[1:]}
    canonical = {label: word for label, word in canonical.items() if label != word}
    if blank_class is not None:
        classes = {
            new_by_old.get(w, canonical.get(w, w)) for w in spellings if w not in unknown_spellings
        }
        blank_class = canonical.get(blank_class, blank_class)
        _refuse_foreign_blank_class(blank_class, classes)
    return LabelMatching(
        frozenset(unknown_spellings), new_by_old, canonical, tuple(unmatched), blank_class
    )


def _refuse_foreign_blank_class(blank_class: str, classes: Collection[str]) -> None:
    """Refuse a class of empty cells that is none of two or more: a spelling mistake."""
    if len(classes) > 1 and blank_class not in classes:
        raise SpecError(
            f"--label-map gives empty cells the class {blank_class!r}, which nothing else has",
            expected="one of " + ", ".join(map(repr, sorted(classes)[:_MAX_LISTED_CLASSES])),
            where="label_map",
        )


def check_similar_classes(units: pl.DataFrame) -> None:
    """Refuse classes whose names look alike: ``Male`` and ``male``."""
    counts = count_people_by_label(units, pl.col("truth"))
    folded = counts.with_columns(folded=pl.col("label").map_elements(_fold_spelling, pl.String))
    duplicates = folded.filter(pl.col("folded").is_duplicated()).sort("folded", "label")
    # As two classes, predictions of one would be errors for people of the other.
    if duplicates.height:
        similar_rows = duplicates.filter(folded=duplicates["folded"][0])
        commonest = similar_rows.sort("count", descending=True)["label"][0]
        other_names = ",".join(label for label in similar_rows["label"] if label != commonest)
        raise TableError(
            "classes of the truth differ by case, blanks or letters of the same look alone",
            expected="one spelling for each class",
            found=", ".join(
                f"{text} ({n:,})"
                for text, n in zip(
                    describe_variants(similar_rows["label"]), similar_rows["count"], strict=True
                )
            ),
            hint=f'if they are one class, --label-map "{commonest}={other_names}"',
        )


def check_foreign_answers(units: pl.DataFrame, ranked: pl.DataFrame) -> list[Caution]:
    """Refuse a model whose labels are not the truth's classes; caution where some are not."""
    notes = []
    scored = units.filter(pl.col("unjudged").is_null(), pl.col("prediction").is_not_null())
    for (model,), model_rows in scored.group_by(["model"], maintain_order=True):
        truth_counts, answer_counts = (
            count_people_by_label(model_rows, pl.col(column)) for column in ("truth", "prediction")
        )
        foreign = answer_counts.join(truth_counts, on="label", how="anti")
        n_foreign, n_people, text = int(foreign["count"].sum()), count_people(model_rows), ""
        if n_foreign:
            # Lower ranks may hold the truth's classes where the first answers do not.
            lower_ranks = ranked.join(model_rows.select("unit", "prediction"), on="unit")
            lower_labels = lower_ranks.filter(pl.col("label") != pl.col("prediction"))["label"]
            has_truth_class = bool(lower_labels.is_in(truth_counts["label"].implode()).any())
            share = (
                n_foreign / n_people
                if not has_truth_class
                else min(n_foreign / n_people, 1 - _MIN_SHARED_SHARE)
            )
            _refuse_foreign(model_rows, truth_counts, answer_counts, foreign, share)
            # Where one class is true of everyone, each mistake names another.
            if n_foreign / n_people >= (_CAUTION_SHARE if truth_counts.height > 1 else 0.5):
                text = (
                    f"{n_foreign:,} of {n_people:,} answers of {model!r} name classes that are true"
                    f" of nobody here, and count as mistakes: {list_classes(foreign, quoted=True)}."
                )
        elif truth_counts.height == 1:
            text = (
                f"Truth and answers of {model!r} are one class, {truth_counts['label'][0]!r}: no"
                " answer can be wrong, so nothing is shown of the model."
            )
        if text and n_people >= _MIN_ANSWERS:
            notes.append(Caution(text))
    return notes


def _refuse_foreign(
    people: pl.DataFrame,
    truth_counts: pl.DataFrame,
    answer_counts: pl.DataFrame,
    foreign: pl.DataFrame,
    share: float,
) -> None:
    """Refuse labels that are scores, other spellings, or hardly ever classes of the truth."""
    model = people["model"][0]
    classes, labels = truth_counts["label"].sort().to_list(), foreign["label"].to_list()
    unseen_classes = truth_counts.join(answer_counts, on="label", how="anti")["label"].to_list()
    class_by_answer = _match_spellings(labels, classes, unseen_classes)
    are_scores = _are_scores(labels, classes)
    # A model may know more classes than the data; those predictions are mistakes, not a wrong file.
    if share <= 1 - _MIN_SHARED_SHARE and not class_by_answer and not are_scores:
        return
    problem = f"hardly any answer of {model!r} is a class that is true of anyone"
    if are_scores:
        problem = f"the answers of {model!r} look like scores, not classes"
    elif share == 1:
        problem = f"no answer of {model!r} is a class that is true of anyone"
    elif class_by_answer:
        problem = f"some answers of {model!r} are other spellings of the truth's classes"
    raise TableError(
        problem,
        expected=f"the truth's classes: {list_classes(truth_counts, quoted=True)}",
        found=f"answers: {list_classes(answer_counts, quoted=True)}",
        hint=_ADVICE_ON_SCORES if are_scores else advise_label_map(people, labels, class_by_answer),
    )


_ADVICE_ON_SCORES = (
    "name the column with the class as --prediction-column (column=…) and the one with the score as"
    " --score-column (score=…)"
)


def _match_spellings(
    foreign: list[str], classes: list[str], unseen_classes: list[str]
) -> dict[str, str]:
    """Map labels to the class that they seem to spell: other case, blanks, signs, or initials."""
    folded = {_fold_spelling(label): label for label in classes}
    class_by_answer = {f: folded[_fold_spelling(f)] for f in foreign if _fold_spelling(f) in folded}
    unanswered_classes = sorted(
        (spelling, c) for c in unseen_classes if (spelling := _fold_spelling(c))
    )
    spellings = [spelling for spelling, _ in unanswered_classes]
    for answer in foreign:
        folded_answer = _fold_spelling(answer)
        # "1" is no abbreviation of "10".
        if answer in class_by_answer or not folded_answer or _parse_number(answer) is not None:
            continue
        candidates = _find_abbreviated(folded_answer, spellings)
        # An abbreviation of one class that no answer names, such as "F" for "Female".
        if len(candidates) == 1:
            class_by_answer[answer] = unanswered_classes[candidates[0]][1]
    return class_by_answer


def _find_abbreviated(text: str, spellings: Sequence[str]) -> list[int]:
    """Find up to two of the sorted spellings that begin with the text, or with which it begins."""
    start = bisect_left(spellings, text)
    nearest = range(start, min(start + 2, len(spellings)))
    matches = [k for k in nearest if spellings[k].startswith(text)]
    for length in range(1, len(text)):
        k = bisect_left(spellings, text[:length])
        while k < len(spellings) and spellings[k] == text[:length] and len(matches) < 2:
            matches.append(k)
            k += 1
    return matches


def _are_scores(foreign: list[str], classes: list[str]) -> bool:
    """Return whether labels are scores: fractions where no class is one, or many numbers."""
    answer_numbers, class_numbers = (
        {number for label in labels if (number := _parse_number(label)) is not None}
        for labels in (foreign, classes)
    )
    # Classes that are fractions themselves (diopters, grades) allow fractions as predictions.
    if any(number != round(number) for number in class_numbers):
        return False
    # Integers may be codes of classes; fractions are not.
    is_fraction = any(number != round(number) for number in answer_numbers)
    # Far more distinct integers than classes are ages or percents, not codes.
    return is_fraction or len(answer_numbers) > max(10, 2 * len(classes))


def _parse_number(label: str) -> float | None:
    """Parse a finite number; None where the label is none."""
    text = label.strip()
    if not _NUMBER_PATTERN.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _fold_spelling(label: str) -> str:
    """Reduce a spelling to words in lower case; a sign at either end is kept: ``-1``, ``A-``."""
    inner = re.sub(r"[\W_]+", " ", fold_spelling(label)).strip()
    before, after = _SIGNS_BEFORE.match(label), _SIGNS_AFTER.search(label)
    signs = (before[1] if before else "", after[1] if after else "")
    # A label of signs alone, such as "+", is kept as it is.
    return signs[0] + inner + signs[1] if inner else label


def list_classes(
    counts: pl.DataFrame, n: int = _MAX_LISTED_CLASSES, *, quoted: bool = False
) -> str:
    """List the commonest classes with their counts, and the number of others."""
    top = counts.sort("count", "label", descending=[True, False]).head(n)
    rows = top.select("label", "count").iter_rows()
    entries = [f"{repr(label) if quoted else label} ({count:,})" for label, count in rows]
    n_more = counts.height - len(entries)
    return ", ".join(entries) + (f" and {n_more:,} more" if n_more else "")


def check_merge(label_matching: LabelMatching, labels: Iterable[str]) -> None:
    """Refuse a merge of a class that neither truth nor predictions have."""
    if label_matching.unmatched:
        examples = sorted(set(labels))[:30]
        raise SpecError(
            f"--label-map merges what is neither true of anyone nor answered: "
            f"{', '.join(map(repr, label_matching.unmatched))}",
            expected="labels that occur: " + ", ".join(map(repr, examples)),
            where="label_map",
        )


LabelMap = Mapping[str, Sequence[str]]


def invert_label_map(label_map: LabelMap | None) -> dict[str, str]:
    """Invert a map of new classes to old ones; classes that it does not name stay.

    Examples
    --------
    >>> invert_label_map({"Asian": ("East Asian", "Southeast Asian")})
    {'East Asian': 'Asian', 'Southeast Asian': 'Asian'}
    """
    new_by_old: dict[str, str] = {}
    for new, old_names in (label_map or {}).items():
        for old in (old_names,) if isinstance(old_names, str) else old_names:
            # Otherwise the order of the settings would decide.
            if new_by_old.setdefault(old, new) != new:
                raise SpecError(
                    f"the class {old!r} is merged into two classes",
                    expected="every class in one merge at most",
                    found=f"{new_by_old[old]!r} and {new!r}",
                    where="label_map",
                )
    return new_by_old
