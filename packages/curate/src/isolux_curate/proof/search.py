"""Search every byte below folders for people's names and images."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isolux.checks.duplicates.hashes import find_copies_of
from isolux.core.formatting import pluralise
from isolux.core.notes import Caution
from isolux.io.binary_tables import first_error_line
from isolux.io.images import Pixels
from isolux_curate.privacy import hash_pseudonym_key
from isolux_curate.proof.archives import IMAGE_MAGIC, iterate_inner_files_or_raise
from isolux_curate.proof.cells import (
    explain_unread_cells_or_empty,
    iterate_file_tables,
    iterate_files_in_cells,
    join_texts,
    list_numbers_in_cells,
)
from isolux_curate.proof.readable_text import decode_escapes, iterate_readings
from isolux_curate.proof.search_terms import COMMON_WORDS, MIN_SEARCHED_LENGTH, SearchTerms
from isolux_curate.proof.unsearchable import (
    WEIGHTS_SUFFIXES,
    explain_unsearchable_or_empty,
    is_searchable_text,
)
from isolux_curate.withdrawal.file_walk import (
    FileLocation,
    build_neighbour_lookup,
    list_empty_folders,
    list_links_and_special_files,
)
from isolux_curate.withdrawal.pseudonyms import read_key_hash_or_none
from isolux_curate.withdrawal.rewriting import UnsearchableFile, rewrite_file_without_people
from isolux_curate.withdrawal.table_references import (
    iterate_grey_thumbnails,
    stack_rotated_thumbnails,
)
from isolux_curate.withdrawal.terms import IdentifyingTerms

CELL_IS = "a cell of it is"
TEXT_HOLDS, CELL_HOLDS, NAME_HOLDS = "it holds", "a cell holds", "its name holds"
_PERSON_KINDS = ("subject", "copyright", "annotator")
_MAX_LISTED_LINES = 10
SIMILAR_IMAGE = "a picture that looks like theirs"
_MAX_DEPTH = 8
_METADATA_SUFFIXES = (
    "!metadata",
    "!comment",
)  # inner parts that are text and need no check of their format
_CELL = re.compile(
    rb'"((?:[^"\\\n]|\\.){1,3})"|>\s*([^<>\s]{1,3})\s*<|^\s*(\S{1,3})\s*$', re.MULTILINE
)


_ANOTHER_KEY = "people are in it under pseudonyms of another key: unpack it, and name its folder"


@dataclass
class SearchResult:
    """The matches of a search, and the files that it could not search.

    Parameters
    ----------
    files, bytes : int
        Numbers that were searched, with members of archives and unpacked bytes.
    pictures : int
        Images that were opened and compared.
    matches : list of (str, str)
        Where, and how: its name, a name in it, a row, a picture.
    unsearchable : list of (str, str)
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
    matches: list[tuple[str, str]] = field(default_factory=list)
    unsearchable: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)
    cells_only: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether there is no match, and every file was searched."""
        return not self.matches and not self.unsearchable


def search_files_for_people(
    file_locations: Iterable[FileLocation],
    terms: IdentifyingTerms,
    thumbnail_array: Pixels,
    *,
    folders: Sequence[Path] = (),
    other_ids: Collection[str] = (),
    pseudonym_keys: Iterable[bytes] = (),
) -> SearchResult:
    """Search files below folders for people's names and images."""
    search = _Search(
        terms, frozenset(other_ids), frozenset(map(hash_pseudonym_key, pseudonym_keys))
    )
    location_list = list(file_locations)
    list_neighbours = build_neighbour_lookup(location_list)
    for location in location_list:
        source = f"{location.root.name}/{location.name}"
        search.record_names_in_path(source, location.name)
        try:
            file_bytes = location.path.read_bytes()
        except OSError as error:
            search.proof.unsearchable.append((source, f"it cannot be read: {error.strerror}"))
            continue
        search.record_names_in_bytes(source, file_bytes)
        try:
            n = rewrite_file_without_people(
                location.name, file_bytes, list_neighbours(location), terms
            )[1]
        except UnsearchableFile as blind:
            search.add_entry_once_per_source(search.proof.unsearchable, source, str(blind))
        else:
            if n:  # matches in id columns, in the file's name or by its hash
                description = f"about them (rows, entries, parts): {n:,}"
                search.add_entry_once_per_source(search.proof.matches, source, description)
    for folder in list_empty_folders(folders):
        search.record_names_in_path(str(folder), folder.name)
    for link in list_links_and_special_files(folders):
        if not link.is_symlink():
            search.record_names_in_path(str(link), link.name)
            search.proof.unsearchable.append(
                (str(link), "no file that can be read: a pipe or a device")
            )
            continue
        search.record_names_in_path(str(link), f"{link.name}\n{link.readlink()}")
        target = Path(os.path.realpath(link))  # also of a loop
        if not target.exists() or not any(
            target.is_relative_to(folder.resolve()) for folder in folders
        ):
            search.proof.unsearchable.append(
                (str(link), "a link: what it leads to was not looked into")
            )
    search.record_archives_of_unknown_keys()
    search.record_similar_images(thumbnail_array)
    return search.proof


class _Search:
    def __init__(
        self, terms: IdentifyingTerms, known_hashes: frozenset[str], key_marks: frozenset[str]
    ) -> None:
        self.known_hashes, self.n_damaged, self.key_marks = known_hashes, 0, key_marks
        other_names = [name for id_kind in terms.other_names for name in terms.other_names[id_kind]]
        # Common words and numbers are only searched as cells of id columns, as are names that are
        # also another person's or another kind of id.
        searched = {name for name in terms.all_names if name.lower() not in COMMON_WORDS}
        self.needles = SearchTerms.from_names_without_contained(
            searched - set(other_names), other_names
        )
        self.is_ascii_search = all(map(str.isascii, self.needles.names))
        self.short_names = frozenset(
            name
            for name in terms.all_names
            if len(name) < MIN_SEARCHED_LENGTH and not name.isdigit()
        )
        self.numbers = frozenset(filter(str.isdigit, terms.all_names))
        self.terms, self.proof = terms, SearchResult()
        self._count_and_note_short_ids(set(other_names))
        self.thumbnails: list[tuple[str, Pixels]] = []
        self.n_weights = 0
        self.declared_keys: dict[str, list[tuple[str, str]]] = {}

    def _count_and_note_short_ids(self, other_names: Collection[str]) -> None:
        """Count the ids that are only searched as cells, and add a caution."""
        ids = {
            person_id
            for id_kind in _PERSON_KINDS
            for person_id in self.terms.names_by_kind.get(id_kind, ())
        } - {""}
        n = sum(
            len(person_id) < MIN_SEARCHED_LENGTH
            or person_id.lower() in COMMON_WORDS
            or person_id in other_names
            for person_id in ids
        )
        self.proof.cells_only = n
        if n:
            self.proof.notes.append(
                Caution(
                    f"{pluralise(n, 'id')} could be searched for only as whole cells, and not in "
                    f"sentences: ids of fewer than {MIN_SEARCHED_LENGTH} characters, and words that"
                    " also mean "
                    "something else. Read notes and other texts yourself: they may still name these"
                    " people."
                )
            )

    def record_names_in_path(self, source: str, searched_path: str) -> None:
        """Search a path for names."""
        path_bytes = searched_path.encode("utf-8", "surrogateescape")
        for name in {
            name
            for text_bytes in (path_bytes, decode_escapes(searched_path).encode("utf-8", "replace"))
            for name, _ in self.needles.iterate_names_with_offset(text_bytes)
        }:
            self.proof.matches.append((source, f"{NAME_HOLDS} {name!r}"))

    def record_names_in_bytes(self, source: str, file_bytes: bytes, depth: int = 0) -> None:
        """Search bytes, and the files inside them."""
        self.proof.files += 1
        self.proof.bytes += len(file_bytes)
        names_found = [name for name, _ in self.needles.iterate_names_with_offset(file_bytes)]
        is_text = not names_found and is_searchable_text(file_bytes)
        for reading in iterate_readings(source, file_bytes) if is_text else ():
            names_found += [
                name
                for name, _ in self.needles.iterate_names_with_offset(reading)
                if name not in names_found
            ]
        lines = (
            self.needles.list_line_numbers_with_names(file_bytes)
            if names_found and not depth
            else []
        )
        if lines:
            self.proof.lines[source] = lines
        self.proof.matches += [
            (source, f"{TEXT_HOLDS} {name!r}{format_line_numbers(lines)}") for name in names_found
        ]
        try:
            opened = self._search_contents_and_report_opened(source, file_bytes, depth)
        except UnsearchableFile as blind:
            self.proof.unsearchable.append((source, str(blind)))
            return
        except Exception as error:  # noqa: BLE001  (a reader that fails has not read the file)
            self.proof.unsearchable.append(
                (source, f"it cannot be read: {first_error_line(error)[:80]}")
            )
            return
        is_metadata_part = source.endswith(_METADATA_SUFFIXES)
        if (
            reason := ""
            if is_metadata_part
            else self._note_key_and_explain_unsearchable(source, file_bytes, depth, opened=opened)
        ):
            self.proof.unsearchable.append((source, reason))
        self.n_weights += source.lower().endswith(WEIGHTS_SUFFIXES)

    def _note_key_and_explain_unsearchable(
        self, source: str, file_bytes: bytes, depth: int, *, opened: bool
    ) -> str:
        path = source.replace("!", "/")
        key_hash = read_key_hash_or_none(path, file_bytes) if depth else None
        if key_hash is not None:
            self.declared_keys.setdefault(path.rpartition("/")[0], []).append((source, key_hash))
        return explain_unsearchable_or_empty(
            source,
            file_bytes,
            is_opened=opened,
            is_ascii_search=self.is_ascii_search,
        )

    def _search_contents_and_report_opened(
        self, source: str, file_bytes: bytes, depth: int
    ) -> bool:
        is_opened = self._search_tables_and_report_any(source, file_bytes, depth)
        if not is_opened and self.short_names:
            self._record_short_ids_in_cells(source, file_bytes)
        if file_bytes.startswith(IMAGE_MAGIC) and (
            file_thumbnails := list(iterate_grey_thumbnails(file_bytes))
        ):
            self.thumbnails += [(source, file_thumbnail) for file_thumbnail in file_thumbnails]
            is_opened = True
        elif file_bytes.startswith(IMAGE_MAGIC[:2]):
            if hashlib.sha256(file_bytes).hexdigest() not in self.known_hashes:
                raise UnsearchableFile("a picture that cannot be opened")
            self.n_damaged, is_opened = self.n_damaged + 1, True
        if depth == _MAX_DEPTH:
            raise UnsearchableFile("it is packed in itself too often")
        for inner, inner_bytes in iterate_inner_files_or_raise(source, file_bytes):
            is_opened = True
            self.record_names_in_path(source, inner[len(source) :])
            self.record_names_in_bytes(inner, inner_bytes, depth + 1)
        return is_opened

    def _search_tables_and_report_any(self, source: str, file_bytes: bytes, depth: int) -> bool:
        """Search the cells of tables; whether there are tables."""
        has_tables, is_text = False, is_searchable_text(file_bytes)
        for table in iterate_file_tables(source, file_bytes):
            has_tables = True
            self.proof.matches += [
                (source, f"{CELL_HOLDS} {number!r}")
                for number in list_numbers_in_cells(table, self.needles.names)
            ]
            if not is_text:
                self.record_names_in_bytes(f"{source}!cells", join_texts(table), depth + 1)
            if reason := explain_unread_cells_or_empty(table, self.numbers):
                raise UnsearchableFile(reason)
            for inner, cell_bytes in iterate_files_in_cells(source, table):
                self.record_names_in_bytes(inner, cell_bytes, depth + 1)
        return has_tables

    @staticmethod
    def add_entry_once_per_source(
        entries: list[tuple[str, str]], source: str, description: str
    ) -> None:
        """Add an entry for a file that has none yet."""
        if all(listed_source != source for listed_source, _ in entries):
            entries.append((source, description))

    def _record_short_ids_in_cells(self, source: str, file_bytes: bytes) -> None:
        """Search short ids as whole cells of text: between quotation marks, tags or line ends."""
        cells = {next(filter(None, cell.groups())) for cell in _CELL.finditer(file_bytes)}
        for name in self.short_names:
            if name.encode() in cells:
                self.proof.matches.append((source, f"{CELL_IS} {name!r}"))

    def record_archives_of_unknown_keys(self) -> None:
        """List folders in archives whose pseudonyms were made with a key that was not given."""
        for records in self.declared_keys.values():
            key_hashes = {key_hash for _, key_hash in records} - {""}
            if not key_hashes or not key_hashes <= self.key_marks:
                self.proof.unsearchable.append((records[0][0], _ANOTHER_KEY))

    def record_similar_images(self, person_thumbnails: Pixels) -> None:
        """Compare all images with the people's thumbnails."""
        self.proof.pictures = len(self.thumbnails)
        if self.thumbnails and len(person_thumbnails):
            thumbnail_stack = np.stack([file_thumbnail for _, file_thumbnail in self.thumbnails])
            sources = (
                self.thumbnails[row][0]
                for row in find_copies_of(
                    stack_rotated_thumbnails(person_thumbnails), thumbnail_stack
                )
            )
            self.proof.matches += [(source, SIMILAR_IMAGE) for source in dict.fromkeys(sources)]
        if self.n_damaged:
            self.proof.notes.append(
                f"damaged pictures that could not be compared: {self.n_damaged:,}. The project says"
                " whose they are, and that is someone else."
            )
        if self.n_weights:
            self.proof.notes.append(
                f"files that hold weights of models: {self.n_weights:,}. Names were searched for"
                " in them; whether a model learnt from these people, no search tells."
            )


def format_line_numbers(line_numbers: Sequence[int]) -> str:
    """Format line numbers as the end of a sentence.

    Examples
    --------
    >>> format_line_numbers([]), format_line_numbers([2]), format_line_numbers([2, 5, 9])
    ('', ' in line 2', ' in lines 2, 5 and 9')
    >>> format_line_numbers(range(3, 90))
    ' in 87 lines, the first of them 3, 4, 5, 6, 7, 8, 9, 10, 11 and 12'
    """
    if not line_numbers:
        return ""
    numbers = [f"{number:,}" for number in line_numbers[:_MAX_LISTED_LINES]]
    number_list = " and ".join([", ".join(numbers[:-1]), numbers[-1]] if numbers[1:] else numbers)
    if len(line_numbers) > _MAX_LISTED_LINES:
        return f" in {len(line_numbers):,} lines, the first of them {number_list}"
    return f" in {'lines' if numbers[1:] else 'line'} {number_list}"
