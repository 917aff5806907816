"""Identifying terms: a person's ids and file names, and the tests whether a cell or name is theirs.

A cell of an id column names a person if it equals one of their ids of that kind: the photo 7 is not
the subject 7. A longer text names a person if it contains one of their ids as a separate word that
is no part of someone else's longer name. Ids that could be any word or number (``1``, ``table``)
are only searched as whole cells of id columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote

WORD_CHARACTERS = r"0-9A-Za-z\u00c0-\u058f\u1e00-\u1fff"
"""Characters that extend a word: digits, and letters of scripts with spaces between words. In
「被験者s17さん」 the id is a separate word."""
_FILE_KINDS = ("image", "instance", "file", "task")
_SUFFIX = re.compile(r"(?s)^(.+)\.[^./\\]{1,8}$")
_CROP = re.compile(r"(?s)^(.+)-[0-9a-f]{16}$")
_MIN_LENGTH, _MIN_DIGITS = 4, 7
_MASK = "(withdrawn)"


def list_path_endings(path: str) -> tuple[str, ...]:
    """List a path and its endings without the first folders.

    Examples
    --------
    >>> list_path_endings("a/b/1.jpg")
    ('a/b/1.jpg', 'b/1.jpg', '1.jpg')
    """
    segments = [segment for segment in re.split(r"[/\\]", path) if segment not in ("", ".")]
    return tuple("/".join(segments[k:]) for k in range(len(segments)))


def separate_own_and_other_names(
    names_by_kind: Mapping[str, frozenset[str]], other_names: Mapping[str, Iterable[str]]
) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Separate a person's names from everyone else's; files of both may have the same name."""
    path_endings = {
        tail
        for path in names_by_kind.get("file", ())
        if "/" in path
        for tail in list_path_endings(path)[:-1]
    }
    own_names = dict(names_by_kind)
    all_names = frozenset[str]().union(*names_by_kind.values())
    remaining_names = {
        id_kind: {
            name
            for name in set(names) - names_by_kind.get(id_kind, frozenset())
            if not _is_list_with_any_name(name, all_names)
        }
        for id_kind, names in other_names.items()
    }
    bare_names = {name for name in names_by_kind.get("file", ()) if "/" not in name}
    for id_kind in ("file", "image"):
        for path in [
            name for name in remaining_names.get(id_kind, ()) if "/" in name or "\\" in name
        ]:
            short_matches = bare_names.intersection(list_file_name_and_stem(path))
            if path_endings.intersection(list_path_endings(path)[:-1]) or any(
                map(_contains_hex_hash, short_matches)
            ):
                remaining_names[id_kind].discard(path)
            else:
                bare_names -= short_matches
    if "file" in names_by_kind:
        paths = frozenset(name for name in names_by_kind["file"] if "/" in name)
        own_names["file"] = paths | frozenset(bare_names) | frozenset(path_endings)
    return own_names, {id_kind: frozenset(names) for id_kind, names in remaining_names.items()}


def _is_list_with_any_name(cell: str, names: frozenset[str]) -> bool:
    """Check whether a cell is a list of names that contains one of these: ``s16; s17``."""
    entries = [entry.strip() for entry in re.split("[;|,]", cell)]
    return len(entries) > 1 and not names.isdisjoint(entries)


def _contains_hex_hash(name: str) -> bool:
    """Check whether a name holds a hash, which no two files share."""
    return re.search(r"[0-9a-f]{16}", name) is not None


def is_distinctive_in_text(name: str) -> bool:
    """Check whether a name is unlikely to occur in a text by chance.

    Examples
    --------
    >>> [is_distinctive_in_text(one) for one in ("s0017", "1", "2024", "table", "20240101")]
    [True, False, False, False, True]
    """
    digit, letter = any(c.isdigit() for c in name), any(c.isalpha() for c in name)
    return len(name) >= _MIN_LENGTH and digit and (letter or len(name) >= _MIN_DIGITS)


def list_file_name_and_stem(path: str) -> tuple[str, ...]:
    """List a path's file name, with and without its suffix.

    Examples
    --------
    >>> list_file_name_and_stem("val/a.1.jpg")
    ('a.1.jpg', 'a.1')
    """
    base = re.split(r"[/\\]", path)[-1]
    suffix_match = _SUFFIX.match(base)
    return (base, suffix_match[1]) if suffix_match else (base,)


@dataclass(frozen=True)
class IdentifyingTerms:
    """The names of people who withdrew, and of everyone else.

    Parameters
    ----------
    names_by_kind : mapping of str to set of str
        By kind, their ids and files.
    other_names : mapping of str to set of str
        By kind, those of everyone else, as far as they are known.
    photo_hashes : set of str
        SHA-256 of the bytes of their photos.
    """

    names_by_kind: Mapping[str, frozenset[str]]
    other_names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    photo_hashes: frozenset[str] = frozenset()

    @cached_property
    def all_names(self) -> frozenset[str]:
        """The people's names of all kinds."""
        names = {name for id_kind in self.names_by_kind for name in self.names_by_kind[id_kind]}
        return frozenset(names) - {""}

    @cached_property
    def distinctive_names(self) -> tuple[str, ...]:
        """Names that are searched in longer text, longest first, without names of others."""
        unique_names = self.all_names - self._all_other_names
        return tuple(
            sorted(filter(is_distinctive_in_text, unique_names), key=lambda n: (-len(n), n))
        )

    @cached_property
    def _distinctive_pattern(self) -> re.Pattern[str] | None:
        alternatives = "|".join(map(re.escape, self.distinctive_names))
        return (
            re.compile(rf"(?<![{WORD_CHARACTERS}])(?:{alternatives})(?![{WORD_CHARACTERS}])")
            if alternatives
            else None
        )

    @cached_property
    def _all_other_names(self) -> frozenset[str]:
        return frozenset(name for id_kind in self.other_names for name in self.other_names[id_kind])

    @cached_property
    def _longer_names(self) -> Mapping[str, tuple[str, ...]]:
        """Longer names of others that contain a term, by term: s17 is not s17-b."""
        names_by_term: dict[str, list[str]] = {}
        if self._distinctive_pattern is not None:
            for name in self._all_other_names:
                for hit in self._distinctive_pattern.finditer(name):
                    if hit[0] != name:
                        names_by_term.setdefault(hit[0], []).append(name)
        return {term: tuple(names) for term, names in names_by_term.items()}

    def does_id_cell_name_people(
        self, cell: str, id_kinds: Collection[str], *, strict: bool
    ) -> bool:
        """Check whether a cell of an id column names the people."""
        if self._is_name_of_people(cell, id_kinds, strict=strict):
            return True
        if any(cell in self.other_names.get(id_kind, ()) for id_kind in id_kinds):
            return False  # an id of someone else
        if "file" in id_kinds or not strict:
            decoded = unquote(cell) if "%" in cell else cell
            names = [decoded, *list_file_name_and_stem(decoded)]
            crop = _CROP.match(names[-1])
            names += [crop[1]] if crop else []
            files = tuple(dict.fromkeys((*id_kinds, *("image", "instance", "file", "task"))))
            if any(self._is_name_of_people(name, files, strict=False) for name in names):
                return True
        return self.does_text_name_people(cell)

    def _is_name_of_people(self, name: str, id_kinds: Collection[str], *, strict: bool) -> bool:
        if not any(name in self.names_by_kind.get(id_kind, ()) for id_kind in id_kinds):
            return False
        return strict or not any(name in self.other_names.get(id_kind, ()) for id_kind in id_kinds)

    def does_text_name_people(self, text: str) -> bool:
        """Check whether a text contains one of the distinctive names."""
        return (
            self._distinctive_pattern is not None
            and next(self._iterate_name_spans(text), None) is not None
        )

    def _iterate_name_spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._distinctive_pattern is None:
            return
        for hit in self._distinctive_pattern.finditer(text):
            if not any(
                _is_span_inside_name(text, hit.span(), name)
                for name in self._longer_names.get(hit[0], ())
            ):
                yield hit.span()

    def mask_names_in_text(self, text: str) -> str:
        """Replace the people's names in a text by a mask."""
        chunks, offset = [], 0
        for start, end in self._iterate_name_spans(text):
            chunks += [text[offset:start], _MASK]
            offset = end
        return "".join([*chunks, text[offset:]])

    def is_path_of_people(self, path: str) -> bool:
        """Check whether a path ends like one of the people's files that has a folder.

        Examples
        --------
        >>> held = IdentifyingTerms({"file": frozenset({"s17/1.jpg"})})
        >>> held.is_path_of_people("public/s17/1.jpg"), held.is_path_of_people("public/s1/1.jpg")
        (True, False)
        """
        files = self.names_by_kind.get("file", frozenset())
        return any(tail in files for tail in list_path_endings(path)[:-1])

    def is_name_among_neighbours(self, name: str, neighbour_names: Sequence[str] = ()) -> bool:
        """Check whether a file's or a folder's name is the people's, given its neighbours."""
        if self.does_text_name_people(name):
            return True
        forms = set(_list_forms_of_file_name(name))
        neighbour_forms = [
            set(_list_forms_of_file_name(neighbour))
            for neighbour in neighbour_names
            if neighbour != name
        ]
        own_kinds = [
            k
            for k, names in self.names_by_kind.items()
            if forms & names and self._is_kind_of_most_neighbours(k, neighbour_forms)
        ]
        other_kinds = [
            k
            for k, names in self.other_names.items()
            if forms & names and self._is_kind_of_most_neighbours(k, neighbour_forms)
        ]
        if not other_kinds:
            return bool(own_kinds)
        # A folder 9 next to folders of subjects is a subject's, a file 9.png a photo's.
        preferred_kinds = _FILE_KINDS if len(list_file_name_and_stem(name)) > 1 else ("subject",)
        return any(k in preferred_kinds for k in own_kinds) and not any(
            k in preferred_kinds for k in other_kinds
        )

    def _is_kind_of_most_neighbours(
        self, id_kind: str, neighbour_forms: Sequence[set[str]]
    ) -> bool:
        n_known = sum(
            bool(forms & self.other_names.get(id_kind, frozenset())) for forms in neighbour_forms
        )
        return n_known > 0 and 2 * n_known >= len(neighbour_forms)

    def is_name_without_neighbours(self, name: str) -> bool:
        """Check whether a name is one of the people's, without its neighbours."""
        return any(form in self.all_names for form in _list_forms_of_file_name(name))

    def mask_names_in_path(self, path: str) -> str:
        """Mask the people's names in a path."""
        path_parts = path.split("/")
        return "/".join(self._mask_names_in_path_part(path_part) for path_part in path_parts)

    def mask_quoted_names(self, text: str) -> str:
        """Mask the people's names in a sentence, which are in quotation marks."""
        return re.sub(
            r"'([^']*)'",
            lambda f: f"'{_MASK}'" if any(n and n in f[1] for n in self.all_names) else f[0],
            text,
        )

    def _mask_names_in_path_part(self, path_part: str) -> str:
        forms = set(_list_forms_of_file_name(path_part))
        if forms & self.all_names or any(
            name in path_part for name in self.all_names if len(name) >= _MIN_LENGTH
        ):
            suffix = path_part[len(list_file_name_and_stem(path_part)[-1]) :]
            return _MASK + (suffix if not any(n in suffix for n in self.all_names) else "")
        return self.mask_names_in_text(path_part)


def _list_forms_of_file_name(file_name: str) -> tuple[str, ...]:
    names = list_file_name_and_stem(file_name)
    crop = _CROP.match(names[-1])
    return (*names, crop[1]) if crop else names


def _is_span_inside_name(text: str, span: tuple[int, int], longer_name: str) -> bool:
    """Check whether a longer name covers a span of a text."""
    start, end = span
    offset = text.find(longer_name, max(0, start - len(longer_name)))
    while 0 <= offset <= start:
        if offset + len(longer_name) >= end:
            return True
        offset = text.find(longer_name, offset + 1)
    return False
