"""Proof that nothing of a person is left below folders: a search of every byte, and of pictures.

``needles`` knows how a name is written, ``unpacking`` what is packed in a file, ``blind`` into
what no search can look. What a photo looks like, ``withdrawal.looks`` knows.
"""

from __future__ import annotations

from isolux.curation.proof.searching import ALIKE, CELL, CELLS, NAME, TEXT, Proof, in_lines, prove
from isolux.curation.withdrawal.gathering import as_text, from_text, thumbnail

__all__ = [
    "ALIKE", "CELL", "CELLS", "NAME", "TEXT", "Proof", "as_text", "from_text", "in_lines", "prove",
    "thumbnail",
]  # fmt: skip
