"""Which labels say what of a picture of a person: five types of labels, from a file.

Fairness Indicators' own lists (Table 3) lie in ``taxonomies/``: what a dog means depends on what
the pictures show. Any other list of labels is a file of the same form.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isolux.io.settings_files import read_label_map_file, read_mapping
from isolux.vocabulary.errors import SpecError, UnknownNameError

__all__ = ["HARMFUL", "TYPES", "Taxonomy", "plain", "read_taxonomy", "spellings_of"]

TYPES = {
    "human": "Human",
    "possibly_human": "Possibly-human",
    "non_human": "Non-human",
    "possibly_non_human": "Possibly-non-human",
    "crime": "Crime",
}
"""Names in files and of columns, and how the paper writes them."""
HARMFUL = ("non_human", "crime")

_OWN = Path(__file__).parent / "taxonomies"
_SOURCE = "source"
_SYNSET = re.compile(r"^n\d{8}\b[\s:]*")


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Labels by type.

    Parameters
    ----------
    name : str
        One of those that come with isolux, or the path of a file.
    source : str
        Where its lists stand; empty: the file does not say.
    type_of : mapping of str to str
        Label, as ``plain`` writes it, to its type.
    digest : str
        SHA-256 of the file.
    """

    name: str
    source: str
    type_of: Mapping[str, str]
    digest: str

    def labels(self, kind: str) -> tuple[str, ...]:
        """List the labels of a type."""
        return tuple(label for label, one in self.type_of.items() if one == kind)


def plain(label: str) -> str:
    """Write a label in lower case, its words parted by one blank.

    Examples
    --------
    >>> plain(" Mountain_Gorilla ")
    'mountain gorilla'
    """
    return " ".join(re.split(r"[\s_-]+", label.strip().lower())).strip()


def spellings_of(label: str) -> tuple[str, ...]:
    """List what a model's label may be called: itself, its synset, each of its synonyms.

    Examples
    --------
    >>> spellings_of("n02084071 dog, domestic dog, Canis familiaris")
    ('n02084071 dog, domestic dog, canis familiaris', 'n02084071', 'dog', 'domestic dog',
     'canis familiaris')
    """
    synset = _SYNSET.match(label.strip())
    rest = label.strip()[synset.end() :] if synset else label
    first = (synset.group().strip(" :"),) if synset else ()
    found = (plain(label), *first, *map(plain, rest.split(",")))
    return tuple(dict.fromkeys(one for one in found if one))


def read_taxonomy(given: str | None, dataset: str) -> Taxonomy:
    """Read a taxonomy by its name, from a file, or as it goes with the dataset.

    Examples
    --------
    >>> faces, scenes = (read_taxonomy(None, name) for name in ("casual_conversations", "miap"))
    >>> faces.type_of["dog"], scenes.type_of["dog"]
    ('non_human', 'possibly_non_human')
    """
    own = sorted(file.stem for file in _OWN.glob("*.yaml"))
    name = given or (dataset if dataset in own else None)
    if name is None:
        raise SpecError(
            "it is not said which labels are harmful",
            expected=f"--taxonomy {', '.join(own)} or FILE (taxonomy=…): what a dog beside a person"
            " means depends on the pictures",
            found=f"no taxonomy, and the dataset {dataset!r}",
        )
    spelled = name.replace("-", "_")
    file = _OWN / f"{spelled}.yaml" if spelled in own else Path(name).expanduser()
    where = spelled if spelled in own else name
    if spelled not in own and not file.exists() and not file.suffix:
        raise UnknownNameError("taxonomy", name, own, where="--taxonomy")
    lists, source = _lists(file, where)
    type_of: dict[str, str] = {}
    for kind, labels in lists.items():
        for label in labels:
            if type_of.setdefault(plain(label), kind) != kind:
                raise SpecError(
                    f"the label {label!r} is of two types",
                    expected="each label under one type",
                    found=f"{TYPES[type_of[plain(label)]]} and {TYPES[kind]}",
                    where=where,
                )
    if not type_of:
        raise SpecError("the taxonomy holds no label", expected=_FORM, found="none", where=where)
    return Taxonomy(where, source, type_of, hashlib.sha256(file.read_bytes()).hexdigest())


_FORM = "lines such as `non_human: [ape, rat]`; types: " + ", ".join(TYPES)


def _lists(file: Path, where: str) -> tuple[dict[str, list[str]], str]:
    """Read the labels by type, and the words of the source."""
    if file.suffix.lower() in (".csv", ".tsv"):
        found: dict[str, list[str]] = {}
        for label, kind in read_label_map_file(file).items():
            found.setdefault(_type(kind, where), []).append(label)
        return found, ""
    read = read_mapping(file)
    source = str(read.pop(_SOURCE, ""))
    return {_type(key, where): _labels(key, value, where) for key, value in read.items()}, source


def _type(word: str, where: str) -> str:
    name = plain(word).replace(" ", "_")
    if name not in TYPES:
        raise UnknownNameError("type of label", word, list(TYPES), where=where)
    return name


def _labels(key: str, value: Any, where: str) -> list[str]:
    items = [value] if isinstance(value, str | int) else value
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(one, str | int) for one in items):
        raise SpecError(
            f"the labels of {key!r} cannot be read", expected=_FORM, found=repr(value), where=where
        )
    return [str(one) for one in items]
