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

from isolux.io.frames import refuse_unless_file
from isolux.io.settings_files import read_label_map_file
from isolux.vocabulary.errors import FileError, SpecError

_SYNSET = re.compile(r"n\d{8}")
_SHOWN = 10
_SUM = 1e-3  # by which the probabilities of a row may miss 1


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
        return np.stack([scores[:, list(own)].max(axis=1) for own in self.members], axis=1)


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of a model's classes in their order."""
    path = Path(path).expanduser()
    refuse_unless_file(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            "the names of the classes cannot be read", found=str(error), where=str(path)
        ) from error
    if path.suffix.lower() == ".json":
        names = _names_in(text, path)
    else:
        names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise FileError("the file of class names is empty", where=str(path))
    return tuple(names)


def _names_in(text: str, path: Path) -> list[str]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError("the file is no JSON", found=str(error), where=str(path)) from error
    if isinstance(found, Mapping):
        found = found.get("id2label", found)
    if isinstance(found, Mapping):
        numbers = sorted((int(key), value) for key, value in found.items() if str(key).isdigit())
        if [k for k, _ in numbers] == list(range(len(found))):
            return [str(value) for _, value in numbers]
    elif isinstance(found, list):
        return [str(one) for one in found]
    raise FileError(
        "the file does not name classes",
        expected='a list of names, or {"0": name, "1": name, …}',
        where=str(path),
    )


def class_map(names: Sequence[str], path: str | Path | None) -> ClassMap:
    """Read which classes to answer with: a map of ``label: class`` or ``class: [labels]``."""
    if path is None:
        return _own(tuple(names))
    return _mapped(tuple(names), read_label_map_file(path), str(path))


def _own(names: tuple[str, ...]) -> ClassMap:
    once = tuple(dict.fromkeys(names))
    if len(once) == len(names):
        return ClassMap(names, count=len(names))
    members = tuple(tuple(k for k, name in enumerate(names) if name == one) for one in once)
    twice = [one for one, own in zip(once, members, strict=True) if len(own) > 1]
    note = (
        f"{len(twice):,} names stand for several of the model's {len(names):,} classes, and score"
        f" the highest of them: {_listed(twice)}."
    )
    return ClassMap(once, members, (note,), len(names))


def _mapped(names: tuple[str, ...], wanted: Mapping[str, str], where: str) -> ClassMap:
    known = _aliases(names)
    members: dict[str, list[int]] = {one: [] for one in wanted.values()}
    strange: list[str] = []
    for label, of_class in wanted.items():
        found = _meant(label, names, known)
        if not found:
            strange.append(label)
        elif len(found) > 1:
            raise SpecError(
                f"the label {label!r} may be several of the model's classes",
                expected="its number, its synset or its full name",
                found="; ".join(f"{k}: {names[k]}" for k in sorted(found)[:_SHOWN]),
                where=where,
            )
        else:
            members[of_class] += [k for k in found if k not in members[of_class]]
    kept = {one: tuple(own) for one, own in members.items() if own}
    if not kept:
        raise SpecError(
            "no label of the map is one of the model's classes",
            expected="labels such as " + ", ".join(map(repr, names[:_SHOWN])),
            found=_listed(strange),
            where=where,
        )
    notes = []
    if strange:
        n, file = len(strange), Path(where).name
        notes.append(f"{n:,} labels of {file} are not classes of the model: {_listed(strange)}.")
    if lost := [one for one, own in members.items() if not own]:
        notes.append(f"The model has no class for {_listed(lost)}: it can never answer with these.")
    used = {k for own in kept.values() for k in own}
    if rest := len(names) - len(used):
        notes.append(
            f"{rest:,} of the model's {len(names):,} classes map to none of the dataset's."
        )
    return ClassMap(tuple(kept), tuple(kept.values()), tuple(notes), len(names))


def _listed(labels: Sequence[str]) -> str:
    more = f", … ({len(labels) - _SHOWN:,} more)" if len(labels) > _SHOWN else ""
    return ", ".join(map(repr, labels[:_SHOWN])) + more


def _aliases(names: Sequence[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for k, name in enumerate(names):
        synset = _SYNSET.match(name.strip())
        rest = name.strip()[synset.end() :] if synset else name
        told = {_plain(part) for part in rest.split(",")} | ({synset.group()} if synset else set())
        for one in told - {""}:
            found.setdefault(one, set()).add(k)
    return found


def _meant(label: str, names: Sequence[str], known: Mapping[str, set[int]]) -> set[int]:
    exact = {k for k, name in enumerate(names) if name == label}
    if exact:
        return exact
    if label.isdigit() and int(label) < len(names):
        return {int(label)}
    whole = {k for k, name in enumerate(names) if _plain(name) == _plain(label)}
    return whole or known.get(_plain(label), set())


def _plain(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.strip().lower())).strip()


def probabilities(scores: npt.NDArray[Any], activation: str) -> npt.NDArray[np.float64]:
    """Make probabilities ``[n, c]`` of a network's scores.

    Shapes: ``scores`` [n, c].

    Examples
    --------
    >>> probabilities(np.array([[0.0, 0.0], [0.25, 0.75]]), "softmax").tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    found = np.asarray(scores, dtype=np.float64)
    if activation == "none":
        return found
    if activation == "sigmoid":
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * found)))
    powers = np.exp(found - found.max(axis=1, keepdims=True, initial=-np.inf))
    soft = powers / powers.sum(axis=1, keepdims=True)
    inside = ((found >= 0) & (found <= 1)).all(axis=1)
    already = inside & (np.abs(found.sum(axis=1) - 1) < _SUM)
    return np.asarray(np.where(already[:, None], found, soft))


def label_rows(scores: npt.NDArray[np.float64], names: Sequence[str], top: int) -> pl.DataFrame:
    """Make the table of labels of scores ``[n, k]``: the ``top`` classes of each, the best first.

    Classes of equal score stand in the order of their numbers.
    """
    if top < 1:
        raise SpecError(
            "no label of a picture would be kept", expected="top of 1 or more", found=str(top)
        )
    n, k = scores.shape
    top = min(top, k)
    order = _best(scores, top)
    return pl.DataFrame(
        {
            "picture": np.repeat(np.arange(n), top),
            "label": pl.Series([names[j] for j in order.ravel().tolist()], dtype=pl.String),
            "score": np.take_along_axis(scores, order, axis=1).ravel(),
            "rank": np.tile(np.arange(1, top + 1), n),
        }
    )


def vector_rows(vectors: npt.NDArray[Any]) -> pl.DataFrame:
    """Make a row of each picture's vector; vectors: [pictures, size]."""
    rows = pl.Series(vectors.astype(np.float32).tolist(), dtype=pl.List(pl.Float32))
    return pl.DataFrame({"picture": pl.int_range(len(vectors), eager=True), "embedding": rows})


def _best(scores: npt.NDArray[np.float64], top: int) -> npt.NDArray[np.int64]:
    """Order the ``top`` highest of each row ``[n, top]``; of equal ones the first stands first."""
    low = -scores
    worst = np.partition(low, top - 1, axis=1)[:, top - 1 : top]
    among = low <= worst
    if (among.sum(axis=1) != top).any():  # equal ones at the border, or NaN
        return np.argsort(low, axis=1, kind="stable")[:, :top]
    own = np.nonzero(among)[1].reshape(-1, top)
    order = np.argsort(np.take_along_axis(low, own, axis=1), axis=1, kind="stable")
    return np.take_along_axis(own, order, axis=1)
