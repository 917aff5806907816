"""What names a person: ids by kind, names of files; and how a cell or a name is known to be theirs.

A cell is theirs where its column is one of ids and it *is* one of their ids of that kind: the photo
7 is not the subject 7. A longer text is theirs where one of their ids stands in it as a word of its
own and is no part of a longer name that someone else has. Ids that could be any word or number
(``1``, ``table``) are looked for as whole cells of ids alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote

LETTERS = r"0-9A-Za-z\u00c0-\u058f\u1e00-\u1fff"
"""What makes a longer word of a name that it stands beside: figures, and letters of scripts that
put spaces between words. In 「被験者s17さん」 the id stands as a word of its own."""
_OF_FILES = ("image", "instance", "file", "task")
_SUFFIX = re.compile(r"(?s)^(.+)\.[^./\\]{1,8}$")
_CROP = re.compile(r"(?s)^(.+)-[0-9a-f]{16}$")
_SHORT, _MANY_DIGITS = 4, 7
_HIDDEN = "(withdrawn)"


def tails(path: str) -> tuple[str, ...]:
    """Give a path and all that is left of it without its first folders.

    Examples
    --------
    >>> tails("a/b/1.jpg")
    ('a/b/1.jpg', 'b/1.jpg', '1.jpg')
    """
    parts = [one for one in re.split(r"[/\\]", path) if one not in ("", ".")]
    return tuple("/".join(parts[k:]) for k in range(len(parts)))


def others_of(
    named: Mapping[str, frozenset[str]], others: Mapping[str, Iterable[str]]
) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Part names into theirs and everyone else's, where files of both may be called alike."""
    whole = {tail for path in named.get("file", ()) if "/" in path for tail in tails(path)[:-1]}
    mine = dict(named)
    every = frozenset[str]().union(*named.values())
    rest = {
        kind: {one for one in set(names) - named.get(kind, frozenset()) if not _lists(one, every)}
        for kind, names in others.items()
    }
    bare = {one for one in named.get("file", ()) if "/" not in one}
    for kind in ("file", "image"):
        for path in [one for one in rest.get(kind, ()) if "/" in one or "\\" in one]:
            called = bare.intersection(short_names(path))
            if whole.intersection(tails(path)[:-1]) or any(map(_is_long, called)):
                rest[kind].discard(path)
            else:
                bare -= called
    if "file" in named:
        paths = frozenset(one for one in named["file"] if "/" in one)
        mine["file"] = paths | frozenset(bare) | frozenset(whole)
    return mine, {kind: frozenset(names) for kind, names in rest.items()}


def _lists(cell: str, names: frozenset[str]) -> bool:
    """Tell whether a cell lists several names, one of these among them: ``s16; s17``."""
    parts = [one.strip() for one in re.split("[;|,]", cell)]
    return len(parts) > 1 and not names.isdisjoint(parts)


def _is_long(name: str) -> bool:
    """Tell whether a name is a sum or a key's, which no two files have."""
    return re.search(r"[0-9a-f]{16}", name) is not None


def is_distinctive(name: str) -> bool:
    """Tell whether a name can hardly stand in a text by chance.

    Examples
    --------
    >>> [is_distinctive(one) for one in ("s0017", "1", "2024", "table", "20240101")]
    [True, False, False, False, True]
    """
    digit, letter = any(c.isdigit() for c in name), any(c.isalpha() for c in name)
    return len(name) >= _SHORT and digit and (letter or len(name) >= _MANY_DIGITS)


def short_names(path: str) -> tuple[str, ...]:
    """Give a path's last part, and that without its suffix.

    Examples
    --------
    >>> short_names("val/a.1.jpg")
    ('a.1.jpg', 'a.1')
    """
    base = re.split(r"[/\\]", path)[-1]
    found = _SUFFIX.match(base)
    return (base, found[1]) if found else (base,)


@dataclass(frozen=True)
class Terms:
    """What names the people who withdrew, and what names everyone else.

    Parameters
    ----------
    named : mapping of str to set of str
        By kind, their ids and files.
    others : mapping of str to set of str
        By kind, those of everyone else, as far as they are known.
    pictures : set of str
        SHA-256 of the bytes of their photos.
    """

    named: Mapping[str, frozenset[str]]
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pictures: frozenset[str] = frozenset()

    @cached_property
    def every(self) -> frozenset[str]:
        """All their names, and those of files without folder."""
        held = {name for kind in self.named for name in self.named[kind]}
        return frozenset(held) - {""}

    @cached_property
    def distinctive(self) -> tuple[str, ...]:
        """Those of them that are found in longer text, longest first; none that others have."""
        own = self.every - self._all_others
        return tuple(sorted(filter(is_distinctive, own), key=lambda n: (-len(n), n)))

    @cached_property
    def _words(self) -> re.Pattern[str] | None:
        told = "|".join(map(re.escape, self.distinctive))
        return re.compile(rf"(?<![{LETTERS}])(?:{told})(?![{LETTERS}])") if told else None

    @cached_property
    def _all_others(self) -> frozenset[str]:
        return frozenset(name for kind in self.others for name in self.others[kind])

    @cached_property
    def _longer(self) -> Mapping[str, tuple[str, ...]]:
        """Names of others that hold one of theirs, by it: s17 is not s17-b."""
        found: dict[str, list[str]] = {}
        if self._words is not None:
            for name in self._all_others:
                for hit in self._words.finditer(name):
                    if hit[0] != name:
                        found.setdefault(hit[0], []).append(name)
        return {term: tuple(names) for term, names in found.items()}

    def is_id(self, cell: str, kinds: Collection[str], *, strict: bool) -> bool:
        """Tell whether a cell of a column of ids is theirs."""
        if self._is_one(cell, kinds, strict=strict):
            return True
        if any(cell in self.others.get(kind, ()) for kind in kinds):
            return False  # it is someone else's, whatever else it may look like
        if "file" in kinds or not strict:
            plain = unquote(cell) if "%" in cell else cell
            names = [plain, *short_names(plain)]
            crop = _CROP.match(names[-1])
            names += [crop[1]] if crop else []
            files = tuple(dict.fromkeys((*kinds, *("image", "instance", "file", "task"))))
            if any(self._is_one(one, files, strict=False) for one in names):
                return True
        return self.in_text(cell)

    def _is_one(self, name: str, kinds: Collection[str], *, strict: bool) -> bool:
        if not any(name in self.named.get(kind, ()) for kind in kinds):
            return False
        return strict or not any(name in self.others.get(kind, ()) for kind in kinds)

    def in_text(self, text: str) -> bool:
        """Tell whether one of their distinctive names stands in a text."""
        return self._words is not None and next(self._hits(text), None) is not None

    def _hits(self, text: str) -> Iterator[tuple[int, int]]:
        if self._words is None:
            return
        for hit in self._words.finditer(text):
            if not any(_covers(text, hit.span(), name) for name in self._longer.get(hit[0], ())):
                yield hit.span()

    def blotted(self, text: str) -> str:
        """Put a mark in the place of their names in a text."""
        kept, at = [], 0
        for start, end in self._hits(text):
            kept += [text[at:start], _HIDDEN]
            at = end
        return "".join([*kept, text[at:]])

    def is_path(self, path: str) -> bool:
        """Tell whether a path ends as one of their files does that has a folder.

        Examples
        --------
        >>> held = Terms({"file": frozenset({"s17/1.jpg"})})
        >>> held.is_path("public/s17/1.jpg"), held.is_path("public/s1/1.jpg")
        (True, False)
        """
        files = self.named.get("file", frozenset())
        return any(one in files for one in tails(path)[:-1])

    def is_name(self, name: str, beside: Sequence[str] = ()) -> bool:
        """Tell whether a file's or a folder's name is theirs."""
        if self.in_text(name):
            return True
        forms = set(_forms(name))
        near = [set(_forms(one)) for one in beside if one != name]
        mine = [k for k, names in self.named.items() if forms & names and self._among(k, near)]
        rivals = [k for k, names in self.others.items() if forms & names and self._among(k, near)]
        if not rivals:
            return bool(mine)
        # A folder 9 beside folders of subjects is a subject's, a file 9.png a photo's.
        first = _OF_FILES if len(short_names(name)) > 1 else ("subject",)
        return any(k in first for k in mine) and not any(k in first for k in rivals)

    def _among(self, kind: str, near: Sequence[set[str]]) -> bool:
        known = sum(bool(one & self.others.get(kind, frozenset())) for one in near)
        return known > 0 and 2 * known >= len(near)

    def may_name(self, name: str) -> bool:
        """Tell whether a name is one of theirs, whatever stands beside it."""
        return any(one in self.every for one in _forms(name))

    def masked(self, path: str) -> str:
        """Write a path without their names."""
        parts = path.split("/")
        return "/".join(self._masked(part) for part in parts)

    def masked_words(self, text: str) -> str:
        """Write a sentence without their names, which stand in quotation marks."""
        return re.sub(
            r"'([^']*)'",
            lambda f: f"'{_HIDDEN}'" if any(n and n in f[1] for n in self.every) else f[0],
            text,
        )

    def _masked(self, part: str) -> str:
        forms = set(_forms(part))
        if forms & self.every or any(name in part for name in self.every if len(name) >= _SHORT):
            suffix = part[len(short_names(part)[-1]) :]
            return _HIDDEN + (suffix if not any(n in suffix for n in self.every) else "")
        return self.blotted(part)


def _forms(name: str) -> tuple[str, ...]:
    names = short_names(name)
    crop = _CROP.match(names[-1])
    return (*names, crop[1]) if crop else names


def _covers(text: str, span: tuple[int, int], name: str) -> bool:
    """Tell whether a longer name stands in a text around a place."""
    start, end = span
    at = text.find(name, max(0, start - len(name)))
    while 0 <= at <= start:
        if at + len(name) >= end:
            return True
        at = text.find(name, at + 1)
    return False
