"""Names that look alike: in other case, with other blanks, or in other letters of the same shape.

Unicode has one letter as one sign or as two (NFC, NFD), full-width and superscript forms (NFKC),
letters of Greek and Cyrillic in the shape of Latin ones, several dashes, and signs without a width.
"""

from __future__ import annotations

import unicodedata

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


def describe_letters(name: str) -> str:
    r"""Quote a name, and name its letters that are not on a plain keyboard.

    Examples
    --------
    >>> print(describe_letters("\u0410sian"))
    'Аsian' with CYRILLIC CAPITAL LETTER A
    >>> describe_letters("Asian")
    "'Asian'"
    """
    letters = dict.fromkeys(c for c in name if not c.isascii())
    names = ", ".join(unicodedata.name(c, f"U+{ord(c):04X}") for c in letters)
    return f"{name!r} with {names}" if names else repr(name)
