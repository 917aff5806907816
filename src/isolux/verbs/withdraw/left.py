"""What a withdrawal says of what is left: each file once, with lines, and without anybody's id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from isolux.curation.proof import ALIKE, CELL, CELLS, NAME, TEXT, Proof, in_lines
from isolux.curation.withdrawal import Searched
from isolux.vocabulary.notes import Caution

_WHAT_TO_DO = (
    "isolux takes an id out of a sentence only if it can hardly be another word (four characters "
    "or more with a letter and a digit, or seven digits). In the files that still hold one, take "
    "it out by hand, or delete or rename the file; then give the same command again. `isolux "
    "withdraw --prove` with the same folders and ids shows which id stands where."
)
_WORDS = {TEXT: "it still holds", CELLS: "its cells still hold", NAME: "its name still holds"}


def searched(done: Proof, *, keep_alike: bool) -> Searched:
    """Tell what is left from what a search found."""
    kept = [one for one in done.found if keep_alike and one[1] == ALIKE]
    words = [one for one in done.found if one[1].startswith(CELL)]
    notes = list(done.notes)
    if words:  # rows and entries in columns of ids are gone: what is left may be any word
        notes.append(
            f"{len(words):,} files hold a cell that is spelt as an id of fewer than four characters"
            " and may be any word: isolux withdraw --prove names them."
        )
    left = [one for one in done.found if one not in (*kept, *words)]
    found = counted(left, done.lines)
    if found != left:
        notes.append(Caution(_WHAT_TO_DO))
    counts = {"files": done.files, "bytes": done.bytes, "pictures": done.pictures, "found": 0,
              "alike_kept": len(kept), "ids_not_in_text": done.cells_only}  # fmt: skip
    return Searched(counts, tuple(found), tuple(done.blind), tuple(notes))


def counted(
    found: Iterable[tuple[str, str]], lines: Mapping[str, Sequence[int]]
) -> list[tuple[str, str]]:
    """Say of each file once how many ids and names it holds, and in which lines.

    Examples
    --------
    >>> counted([("d/x.txt", "it holds 's-17' in line 2"), ("d/x.txt", "it holds 's-18' in line 2"),
    ...          ("d/y.jpg", "a picture that looks like theirs")], {"d/x.txt": [2]})
    [('d/x.txt', 'it still holds 2 of their ids or file names, in line 2'),
     ('d/y.jpg', 'a picture that looks like theirs')]
    """
    held: dict[tuple[str, str], set[str]] = {}
    for where, how in found:
        begun = next((one for one in _WORDS if how.startswith(f"{one} ")), None)
        held.setdefault((where, how if begun is None else begun), set()).add(how)
    said = []
    for (where, how), names in held.items():
        if how not in _WORDS:
            said.append((where, how))
            continue
        n = len(names)
        of = "1 of their ids or file names" if n == 1 else f"{n:,} of their ids or file names"
        at = in_lines(lines.get(where, ())) if how == TEXT else ""
        said.append((where, f"{_WORDS[how]} {of}" + (f",{at}" if at else "")))
    return said
