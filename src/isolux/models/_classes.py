"""A model's classes: their names, and a dataset's classes made of them.

A model of 21,000 classes is brought to a dataset's own by a map from its labels; a class scores the
highest of its labels (FACET, appendix A.5.3, with ImageNet-21k's synsets). A label of the map is
found among the model's by its number, its synset (``n02084071``) or its name, whatever the case and
whatever parts its words; of ``"tench, Tinca tinca"`` each name counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import FileError, SpecError
from isolux.io.frames import refuse_unless_file
from isolux.io.settings_files import read_label_map_file

_SYNSET = re.compile(r"n\d{8}")
_MAX_LISTED = 10
_SUM_TOLERANCE = 1e-3  # by which the probabilities of a row may miss 1


@dataclass(frozen=True, slots=True)
class ClassMap:
    """Which of a model's classes make up each class that is answered with.

    Parameters
    ----------
    names : tuple of str
        The classes that are answered with.
    members : tuple of tuple of int, or None
        Of each of them, the model's classes; None: they are the model's own.
    notes : tuple of str
        What did not map.
    count : int
        How many classes the model has.
    """

    names: tuple[str, ...]
    members: tuple[tuple[int, ...], ...] | None = None
    notes: tuple[str, ...] = ()
    count: int = 0

    def __call__(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Give the classes' scores ``[n, k]`` of the model's ``[n, c]``: the highest of each."""
        if self.members is None:
            return scores
        return np.stack(
            [scores[:, list(class_members)].max(axis=1) for class_members in self.members], axis=1
        )


def read_class_names(names_or_path: str | Path | Sequence[str]) -> tuple[str, ...]:
    """Read the names of a model's classes in their order: a list, ``day,night``, or a file's.

    Examples
    --------
    >>> read_class_names("day, night")
    ('day', 'night')
    """
    if not isinstance(names_or_path, str | Path):
        return tuple(map(str, names_or_path))
    path = Path(names_or_path).expanduser()
    if "," in str(names_or_path) and not path.exists():
        return tuple(name.strip() for name in str(names_or_path).split(","))
    refuse_unless_file(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            "the names of the classes cannot be read", found=str(error), where=str(path)
        ) from error
    if path.suffix.lower() == ".json":
        names = _parse_class_names_json(text, path)
    else:
        names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise FileError("the file of class names is empty", where=str(path))
    return tuple(names)


def _parse_class_names_json(text: str, path: Path) -> list[str]:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError("the file is no JSON", found=str(error), where=str(path)) from error
    if isinstance(content, Mapping):
        content = content.get("id2label", content)
    if isinstance(content, Mapping):
        numbers = sorted((int(key), name) for key, name in content.items() if str(key).isdigit())
        if [k for k, _ in numbers] == list(range(len(content))):
            return [str(name) for _, name in numbers]
    elif isinstance(content, list):
        return [str(class_name) for class_name in content]
    raise FileError(
        "the file does not name classes",
        expected='a list of names, or {"0": name, "1": name, …}',
        where=str(path),
    )


def build_class_map(names: Sequence[str], label_map_path: str | Path | None) -> ClassMap:
    """Read which classes to answer with: a map of ``label: class`` or ``class: [labels]``."""
    if label_map_path is None:
        return _merge_classes_of_equal_name(tuple(names))
    return _map_labels_to_dataset_classes(
        tuple(names), read_label_map_file(label_map_path), str(label_map_path)
    )


def _merge_classes_of_equal_name(names: tuple[str, ...]) -> ClassMap:
    unique_names = tuple(dict.fromkeys(names))
    if len(unique_names) == len(names):
        return ClassMap(names, count=len(names))
    members = tuple(
        tuple(k for k, name in enumerate(names) if name == unique_name)
        for unique_name in unique_names
    )
    repeated_names = [
        unique_name
        for unique_name, class_members in zip(unique_names, members, strict=True)
        if len(class_members) > 1
    ]
    note = (
        f"{len(repeated_names):,} names stand for several of the model's {len(names):,} "
        f"classes, and score"
        f" the highest of them: {_format_label_examples(repeated_names)}."
    )
    return ClassMap(unique_names, members, (note,), len(names))


def _map_labels_to_dataset_classes(
    names: tuple[str, ...], class_by_label: Mapping[str, str], source: str
) -> ClassMap:
    aliases = _find_class_indices_by_alias(names)
    members: dict[str, list[int]] = {class_name: [] for class_name in class_by_label.values()}
    unknown_labels: list[str] = []
    for label, dataset_class in class_by_label.items():
        numbers = _find_class_indices(label, names, aliases)
        if not numbers:
            unknown_labels.append(label)
        elif len(numbers) > 1:
            raise SpecError(
                f"the label {label!r} may be several of the model's classes",
                expected="its number, its synset or its full name",
                found="; ".join(f"{k}: {names[k]}" for k in sorted(numbers)[:_MAX_LISTED]),
                where=source,
            )
        else:
            members[dataset_class] += [k for k in numbers if k not in members[dataset_class]]
    kept_members = {
        class_name: tuple(class_members)
        for class_name, class_members in members.items()
        if class_members
    }
    if not kept_members:
        raise SpecError(
            "no label of the map is one of the model's classes",
            expected="labels such as " + ", ".join(map(repr, names[:_MAX_LISTED])),
            found=_format_label_examples(unknown_labels),
            where=source,
        )
    notes = []
    if unknown_labels:
        n, file = len(unknown_labels), Path(source).name
        notes.append(
            f"{n:,} labels of {file} are not classes of the model: "
            f"{_format_label_examples(unknown_labels)}."
        )
    if empty_classes := [
        class_name for class_name, class_members in members.items() if not class_members
    ]:
        notes.append(
            f"The model has no class for {_format_label_examples(empty_classes)}: it can never "
            f"answer with these."
        )
    used_numbers = {k for class_members in kept_members.values() for k in class_members}
    if n_unused := len(names) - len(used_numbers):
        notes.append(
            f"{n_unused:,} of the model's {len(names):,} classes map to none of the dataset's."
        )
    return ClassMap(tuple(kept_members), tuple(kept_members.values()), tuple(notes), len(names))


def _format_label_examples(labels: Sequence[str]) -> str:
    remainder = f", … ({len(labels) - _MAX_LISTED:,} more)" if len(labels) > _MAX_LISTED else ""
    return ", ".join(map(repr, labels[:_MAX_LISTED])) + remainder


def _find_class_indices_by_alias(names: Sequence[str]) -> dict[str, set[int]]:
    numbers_by_alias: dict[str, set[int]] = {}
    for k, name in enumerate(names):
        synset = _SYNSET.match(name.strip())
        name_text = name.strip()[synset.end() :] if synset else name
        aliases = {_normalise_class_name(name_part) for name_part in name_text.split(",")} | (
            {synset.group()} if synset else set()
        )
        for alias in aliases - {""}:
            numbers_by_alias.setdefault(alias, set()).add(k)
    return numbers_by_alias


def _find_class_indices(
    label: str, names: Sequence[str], aliases: Mapping[str, set[int]]
) -> set[int]:
    exact = {k for k, name in enumerate(names) if name == label}
    if exact:
        return exact
    if label.isdigit() and int(label) < len(names):
        return {int(label)}
    matches = {
        k
        for k, name in enumerate(names)
        if _normalise_class_name(name) == _normalise_class_name(label)
    }
    return matches or aliases.get(_normalise_class_name(label), set())


def _normalise_class_name(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.strip().lower())).strip()


def to_probabilities(scores: npt.NDArray[Any], activation: str) -> npt.NDArray[np.float64]:
    """Make probabilities ``[n, c]`` of a network's scores.

    Shapes: ``scores`` [n, c].

    Examples
    --------
    >>> to_probabilities(np.array([[0.0, 0.0], [0.25, 0.75]]), "softmax").tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    raw_scores = np.asarray(scores, dtype=np.float64)
    if activation == "none":
        return raw_scores
    if activation == "sigmoid":
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * raw_scores)))
    powers = np.exp(raw_scores - raw_scores.max(axis=1, keepdims=True, initial=-np.inf))
    softmax = powers / powers.sum(axis=1, keepdims=True)
    is_in_unit_interval = ((raw_scores >= 0) & (raw_scores <= 1)).all(axis=1)
    is_normalised = is_in_unit_interval & (np.abs(raw_scores.sum(axis=1) - 1) < _SUM_TOLERANCE)
    return np.asarray(np.where(is_normalised[:, None], raw_scores, softmax))


def build_top_label_table(
    scores: npt.NDArray[np.float64], names: Sequence[str], top: int
) -> pl.DataFrame:
    """Make the table of labels of scores ``[n, k]``: the ``top`` classes of each, the best first.

    Classes of equal score stand in the order of their numbers.
    """
    if top < 1:
        raise SpecError(
            "no label of a picture would be kept", expected="top of 1 or more", found=str(top)
        )
    n, k = scores.shape
    top = min(top, k)
    order = _find_top_class_indices(scores, top)
    return pl.DataFrame(
        {
            "picture": np.repeat(np.arange(n), top),
            "label": pl.Series([names[j] for j in order.ravel().tolist()], dtype=pl.String),
            "score": np.take_along_axis(scores, order, axis=1).ravel(),
            "rank": np.tile(np.arange(1, top + 1), n),
        }
    )


def build_embedding_table(vectors: npt.NDArray[Any]) -> pl.DataFrame:
    """Make a row of each picture's vector; vectors: [pictures, size]."""
    rows = pl.Series(vectors.astype(np.float32).tolist(), dtype=pl.List(pl.Float32))
    return pl.DataFrame({"picture": pl.int_range(len(vectors), eager=True), "embedding": rows})


def _find_top_class_indices(scores: npt.NDArray[np.float64], top: int) -> npt.NDArray[np.int64]:
    """Order the ``top`` highest of each row ``[n, top]``; of equal ones the first stands first."""
    negated_scores = -scores
    threshold = np.partition(negated_scores, top - 1, axis=1)[:, top - 1 : top]
    is_candidate = negated_scores <= threshold
    if (is_candidate.sum(axis=1) != top).any():  # equal ones at the border, or NaN
        return np.argsort(negated_scores, axis=1, kind="stable")[:, :top]
    candidates = np.nonzero(is_candidate)[1].reshape(-1, top)
    order = np.argsort(
        np.take_along_axis(negated_scores, candidates, axis=1), axis=1, kind="stable"
    )
    return np.take_along_axis(candidates, order, axis=1)
