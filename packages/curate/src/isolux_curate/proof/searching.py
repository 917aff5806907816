"""Every byte below folders, for the names and the pictures of someone."""

from __future__ import annotations

import hashlib
import quopri
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np
import polars as pl

from isolux.checks.duplicates.hashes import copies_of
from isolux.io.binary_tables import first_line
from isolux.io.images import Pixels
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.words import numbered
from isolux_curate.id_columns import kinds_of_column
from isolux_curate.privacy import key_mark
from isolux_curate.proof.needles import LEAST, WEIGHTS, Needles, is_text, why_blind
from isolux_curate.proof.unpacking import inner_cells, inner_parts, tables_of
from isolux_curate.withdrawal.gathering import thumbnails, turned
from isolux_curate.withdrawal.pseudonymised import key_mark_in
from isolux_curate.withdrawal.rewriting import Blind, rewrite
from isolux_curate.withdrawal.terms import Terms
from isolux_curate.withdrawal.walking import Place, beside_of, links_below

CELL = "a cell of it is"
TEXT, CELLS, NAME = "it holds", "a cell holds", "its name holds"
_OF_PEOPLE = ("subject", "copyright", "annotator")
_NAMED_LINES = 10
ALIKE = "a picture that looks like theirs"
_DEEPEST = 8
_SAID = ("!metadata", "!comment")  # parts that are searched as they are
_BARE = re.compile(r"(?i)(arr|col|column|f|field|unnamed)?[ _:]*\d*|index|__index_level_\d+__")
_MARKS = (b"\xff\xd8\xff", b"\x89PNG", b"II*\x00", b"MM\x00*", b"GIF8", b"BM", b"RIFF")
_CELL = re.compile(
    rb'"((?:[^"\\\n]|\\.){1,3})"|>\s*([^<>\s]{1,3})\s*<|^\s*(\S{1,3})\s*$', re.MULTILINE
)


_ANOTHER_KEY = "people are in it under pseudonyms of another key: unpack it, and name its folder"
_PRINTABLE = re.compile(rb"(?i)quoted-printable")
_INVISIBLE = re.compile(
    rb"(?i)&shy;|&#173;|&#xad;|&zwnj;|&zwj;|&#820[3-5];|&#x200[bcd];|\xc2\xad|\xe2\x80[\x8b-\x8d]"
    rb"|\xe2\x81\xa0|\xef\xbb\xbf"
)
_TAGGED = re.compile(rb"(?i)<(?:w:t|a:t|text:|html|body|p|b|i|span|text)\b")
_TAG = re.compile(rb"<[^>]*>")
_BREAK = re.compile(
    rb"(?i)<[/\s]*(?:(?:w:|a:)?(?:p|tc|tab|br|cr|tr)|td|th|div|li|dt|dd|h[1-6]|option|section|si|c|v"
    rb"|text:[phs]|text:tab|text:line-break|table:table-cell)\b[^>]*>"
)


@dataclass
class Proof:
    """What a search found, and into what it could not look.

    Parameters
    ----------
    files, bytes : int
        Searched, parts of archives and packed bytes included.
    pictures : int
        That were opened and compared.
    found : list of (str, str)
        Where, and how: its name, a name in it, a row, a picture.
    blind : list of (str, str)
        Where, and why: none of these is clean.
    notes : list of str
    lines : dict of str to list of int
        Of files of text that hold a name: where, and in which lines, from 1.
    cells_only : int
        Ids that were looked for as cells, and not in sentences.
    """

    files: int = 0
    bytes: int = 0
    pictures: int = 0
    found: list[tuple[str, str]] = field(default_factory=list)
    blind: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)
    cells_only: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found, and everything was looked into."""
        return not self.found and not self.blind


def prove(
    places: Iterable[Place],
    terms: Terms,
    looks: Pixels,
    *,
    folders: Sequence[Path] = (),
    others: Collection[str] = (),
    keys: Iterable[bytes] = (),
) -> Proof:
    """Search files for names and pictures."""
    search = _Search(terms, frozenset(others), frozenset(map(key_mark, keys)))
    held = list(places)
    beside = beside_of(held)
    for place in held:
        where = f"{place.root.name}/{place.name}"
        search.name(where, place.name)
        try:
            data = place.path.read_bytes()
        except OSError as error:
            search.proof.blind.append((where, f"it cannot be read: {error.strerror}"))
            continue
        search.look(where, data)
        try:
            n = rewrite(place.name, data, beside(place), terms)[1]
        except Blind as blind:
            search.add_once(search.proof.blind, where, str(blind))
        else:
            if n:  # by the columns of ids that it stands in, by its name or its bytes
                told = f"about them (rows, entries, parts): {n:,}"
                search.add_once(search.proof.found, where, told)
    for link in links_below(folders):
        if not link.is_symlink():
            search.name(str(link), link.name)
            search.proof.blind.append((str(link), "no file that can be read: a pipe or a device"))
            continue
        search.name(str(link), f"{link.name}\n{link.readlink()}")
        to = link.resolve()
        if not to.exists() or not any(to.is_relative_to(one.resolve()) for one in folders):
            search.proof.blind.append((str(link), "a link: what it leads to was not looked into"))
    search.check_keys()
    search.compare(looks)
    return search.proof


class _Search:
    def __init__(self, terms: Terms, known: frozenset[str], key_marks: frozenset[str]) -> None:
        self.known, self.damaged, self.key_marks = known, 0, key_marks
        others = [name for kind in terms.others for name in terms.others[kind]]
        # Words and numbers that stand everywhere are looked for as cells of ids.
        # So are names that someone else has too, as one of another kind.
        searched = {name for name in terms.every if name.lower() not in _WORDS}
        self.needles = Needles.of(searched - set(others), others)
        self.short = frozenset(
            name for name in terms.every if len(name) < LEAST and not name.isdigit()
        )
        self.numbers = frozenset(filter(str.isdigit, terms.every))
        self.terms, self.proof = terms, Proof()
        self._say_what_is_no_word(set(others))
        self.thumbs: list[tuple[str, Pixels]] = []
        self.weights = 0
        self.declared: dict[str, list[tuple[str, str]]] = {}

    def _say_what_is_no_word(self, others: Collection[str]) -> None:
        """Count the ids that bytes are not searched for, and say so before anything else."""
        ids = {one for kind in _OF_PEOPLE for one in self.terms.named.get(kind, ())} - {""}
        n = sum(len(one) < LEAST or one.lower() in _WORDS or one in others for one in ids)
        self.proof.cells_only = n
        if n:
            self.proof.notes.append(
                Caution(
                    f"{numbered(n, 'id')} could be searched for only as whole cells, and not in "
                    f"sentences: ids of fewer than {LEAST} characters, and words that also mean "
                    "something else. Read notes and other texts yourself: they may still name these"
                    " people."
                )
            )

    def name(self, where: str, path: str) -> None:
        """Look at the names that a path is made of."""
        data = path.encode("utf-8", "surrogateescape")
        for name in {name for one in (data, _unquoted(data)) for name, _ in self.needles.hits(one)}:
            self.proof.found.append((where, f"{NAME} {name!r}"))

    def look(self, where: str, data: bytes, depth: int = 0) -> None:
        """Search bytes, and what is packed in them."""
        self.proof.files += 1
        self.proof.bytes += len(data)
        hits = [name for name, _ in self.needles.hits(data)]
        for reading in () if hits else _readings(where, data):
            hits += [name for name, _ in self.needles.hits(reading) if name not in hits]
        lines = self.needles.lines(data) if hits and not depth else []
        if lines:
            self.proof.lines[where] = lines
        self.proof.found += [(where, f"{TEXT} {name!r}{in_lines(lines)}") for name in hits]
        try:
            opened = self._open(where, data, depth, found=bool(hits))
        except Blind as blind:
            self.proof.blind.append((where, str(blind)))
            return
        except Exception as error:  # noqa: BLE001  (a reader that fails has not read the file)
            self.proof.blind.append((where, f"it cannot be read: {first_line(error)[:80]}"))
            return
        inner = where.endswith(_SAID)
        if why := "" if inner else self._hidden(where, data, depth, opened=opened):
            self.proof.blind.append((where, why))
        self.weights += where.lower().endswith(WEIGHTS)

    def _hidden(self, where: str, data: bytes, depth: int, *, opened: bool) -> str:
        path = where.replace("!", "/")
        mark = key_mark_in(path, data) if depth else None
        if mark is not None:
            self.declared.setdefault(path.rpartition("/")[0], []).append((where, mark))
        return why_blind(where, data, opened=opened)

    def _open(self, where: str, data: bytes, depth: int, *, found: bool) -> bool:
        opened = self._rows(where, data, depth, found=found)
        if not opened and self.short:
            self._cells(where, data)
        if data.startswith(_MARKS) and (seen := list(thumbnails(data))):
            self.thumbs += [(where, one) for one in seen]
            opened = True
        elif data.startswith(_MARKS[:2]):
            if hashlib.sha256(data).hexdigest() not in self.known:
                raise Blind("a picture that cannot be opened")
            self.damaged, opened = self.damaged + 1, True
        if depth == _DEEPEST:
            raise Blind("it is packed in itself too often")
        for inner, held in inner_parts(where, data):
            opened = True
            self.name(where, inner[len(where) :])
            self.look(inner, held, depth + 1)
        return opened

    def _rows(self, where: str, data: bytes, depth: int, *, found: bool) -> bool:
        """Look at the cells of tables; tell whether there are tables."""
        opened = False
        for table in tables_of(where, data):
            opened = True
            if not found and (names := {n for n, _ in self.needles.hits(_written(table))}):
                self.proof.found += [(where, f"{CELLS} {name!r}") for name in names]
            if why := _nameless(table, self.numbers):
                raise Blind(why)
            for inner, held in inner_cells(where, table):
                self.look(inner, held, depth + 1)
        return opened

    @staticmethod
    def add_once(places: list[tuple[str, str]], where: str, what: str) -> None:
        """Note a place that is not noted yet."""
        if all(place != where for place, _ in places):
            places.append((where, what))

    def _cells(self, where: str, data: bytes) -> None:
        """Look for short ids as whole cells of text: between quotation marks, tags, line ends."""
        seen = {next(filter(None, cell.groups())) for cell in _CELL.finditer(data)}
        for name in self.short:
            if name.encode() in seen:
                self.proof.found.append((where, f"{CELL} {name!r}"))

    def check_keys(self) -> None:
        """Name folders in archives whose records tell of no key that was given."""
        for records in self.declared.values():
            marks = {mark for _, mark in records} - {""}
            if not marks or not marks <= self.key_marks:
                self.proof.blind.append((records[0][0], _ANOTHER_KEY))

    def compare(self, looks: Pixels) -> None:
        """Lay the pictures that were seen over theirs."""
        self.proof.pictures = len(self.thumbs)
        if self.thumbs and len(looks):
            seen = np.stack([one for _, one in self.thumbs])
            where = (self.thumbs[row][0] for row in copies_of(turned(looks), seen))
            self.proof.found += [(one, ALIKE) for one in dict.fromkeys(where)]
        if self.damaged:
            self.proof.notes.append(
                f"damaged pictures that could not be compared: {self.damaged:,}. The project says"
                " whose they are, and that is someone else."
            )
        if self.weights:
            self.proof.notes.append(
                f"files that hold weights of models: {self.weights:,}. Names were searched for"
                " in them; whether a model learnt from these people, no search tells."
            )


def in_lines(lines: Sequence[int]) -> str:
    """Say in which lines, as the end of a sentence.

    Examples
    --------
    >>> in_lines([]), in_lines([2]), in_lines([2, 5, 9])
    ('', ' in line 2', ' in lines 2, 5 and 9')
    >>> in_lines(range(3, 90))
    ' in 87 lines, the first of them 3, 4, 5, 6, 7, 8, 9, 10, 11 and 12'
    """
    if not lines:
        return ""
    said = [f"{one:,}" for one in lines[:_NAMED_LINES]]
    joined = " and ".join([", ".join(said[:-1]), said[-1]] if said[1:] else said)
    if len(lines) > _NAMED_LINES:
        return f" in {len(lines):,} lines, the first of them {joined}"
    return f" in {'lines' if said[1:] else 'line'} {joined}"


def _written(table: pl.DataFrame) -> bytes:
    """Write all text of a table, each cell once."""
    cells: list[str] = []
    for name, kind in table.schema.items():
        if kind in (pl.String, pl.Categorical, pl.Enum):
            cells += table[name].cast(pl.String).drop_nulls().unique().to_list()
        elif kind.is_nested() or kind == pl.Binary:
            cells += [str(one) for one in table[name].drop_nulls().to_list()]
    return "\n".join([*table.columns, *cells]).encode("utf-8", "surrogatepass")


def _unquoted(data: bytes) -> bytes:
    """Write text without the escapes of addresses, also where it was escaped several times."""
    for _ in range(_DEEPEST):
        data, before = unquote_to_bytes(data), data
        if data == before:
            break
    return data


def _readings(where: str, data: bytes) -> Iterator[bytes]:
    """Write text as a reader sees it: mails decoded, addresses without escapes, pages untagged."""
    if not is_text(data):
        return
    if where.lower().endswith((".eml", ".mbox", ".mht", ".mhtml")) or _PRINTABLE.search(data):
        data = quopri.decodestring(data)
        yield data
    if b"%" in data:
        data = _unquoted(data)
        yield data
    if (seen := _INVISIBLE.sub(b"", data)) != data or _TAGGED.search(data):
        yield _TAG.sub(b"", _BREAK.sub(b" ", seen)) if _TAGGED.search(data) else seen


def _nameless(table: pl.DataFrame, numbers: frozenset[str]) -> str:
    """Say why rows of a table could be theirs though no column of ids tells."""
    if any(kinds_of_column(name) is not None for name in table.columns):
        return ""
    for name, kind in table.schema.items():
        is_bare = _BARE.fullmatch(name) and (kind.is_integer() or kind == pl.String)
        if is_bare and not numbers.isdisjoint(table[name].cast(pl.String)):
            return "a column without a name holds numbers that are spelt as their ids"
    return ""


_WORDS = frozenset(
    {
        "age",
        "box",
        "country",
        "data",
        "face",
        "faces",
        "false",
        "file",
        "files",
        "group",
        "height",
        "image",
        "image_id",
        "images",
        "index",
        "instance",
        "instance_id",
        "label",
        "labels",
        "model",
        "name",
        "none",
        "null",
        "people",
        "person",
        "photo",
        "photos",
        "score",
        "scores",
        "subject",
        "subject_id",
        "table",
        "test",
        "text",
        "train",
        "true",
        "type",
        "valid",
        "value",
        "values",
        "width",
    }
)
"""Words that files of data are full of: an id that is one is looked for as a cell of ids."""
