"""Names that look alike: in other case, with other blanks, or in other letters of the same shape.

Unicode has one letter as one sign or as two (NFC, NFD), full-width and superscript forms (NFKC),
letters of Greek and Cyrillic in the shape of Latin ones, several dashes, and signs without a width.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# The letters of Unicode's confusables (UTS 39) that have one shape in most fonts.
_CYRILLIC = "АВЕКМНОРСТУХЅІЈаеорсухѕіј"
_CYRILLIC_SHAPES = "ABEKMHOPCTYXSIJaeopcyxsij"
_GREEK = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιν"
_GREEK_SHAPES = "ABEZHIKMNOPTYXoiv"
_DASHES = "‐‑‒–—−"
_SHAPES = str.maketrans(
    _CYRILLIC + _GREEK + _DASHES, _CYRILLIC_SHAPES + _GREEK_SHAPES + "-" * len(_DASHES)
)


def fold_spelling(name: str) -> str:
    r"""Fold a name so that names that look alike are equal.

    Examples
    --------
    >>> fold_spelling("\u0410sian") == fold_spelling("asian ")
    True
    >>> fold_spelling("Cafe\u0301") == fold_spelling("café")
    True
    """
    visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
    # A second time: case folding may take letters apart.
    text = unicodedata.normalize("NFKC", visible.translate(_SHAPES))
    return unicodedata.normalize("NFKC", " ".join(text.split()).casefold())


def describe_variants(names: Iterable[str]) -> list[str]:
    r"""Quote names that look alike, and name the letters that tell them apart where none shows it.

    Examples
    --------
    >>> describe_variants(["Asian", "\u0410sian"])
    ["'Asian'", "'Аsian' with CYRILLIC CAPITAL LETTER A"]
    >>> describe_variants(["é", "É "])
    ["'é'", "'É '"]
    """
    names = list(names)
    if len({" ".join(name.split()).casefold() for name in names}) == 1:
        return [repr(name) for name in names]
    letters = [", ".join(dict.fromkeys(map(_name_letter, filter(_is_odd, n)))) for n in names]
    return [
        f"{name!r} with {text}" if text else repr(name)
        for name, text in zip(names, letters, strict=True)
    ]


def _is_odd(letter: str) -> bool:
    return not letter.isascii()


def _name_letter(letter: str) -> str:
    return unicodedata.name(letter, f"U+{ord(letter):04X}")
