"""What a withdrawal is asked for, what it refuses, and what it says of what is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.consent import SCOPES, key_of, key_path, mark_of, read_ledger
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.annotation.server import Server
from isolux_curate.project.folder import CONSENT, open_project
from isolux_curate.proof.searching import ALIKE, CELL, CELLS, NAME, TEXT, Proof, in_lines, prove
from isolux_curate.withdrawal.gathering import as_text, from_text, thumbnail
from isolux_curate.withdrawal.planning import Back, everyone_else, places_of, plan_of
from isolux_curate.withdrawal.progress import Plan, Work, work_path
from isolux_curate.withdrawal.project_rows import sums_of_photos
from isolux_curate.withdrawal.pseudonymised import without_key, without_link
from isolux_curate.withdrawal.terms import Terms
from isolux_curate.withdrawal.walking import Place, folders_of, projects_in
from isolux_curate.withdrawal.withdrawing import Searched, Withdrawn, finish

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
    counts = {
        "files": done.files,
        "bytes": done.bytes,
        "pictures": done.pictures,
        "found": 0,
        "alike_kept": len(kept),
        "ids_not_in_text": done.cells_only,
    }
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


@dataclass(frozen=True, slots=True)
class Request:
    """What a withdrawal is given: folders, the ledger and its key, keys of pseudonyms, a server."""

    folders: Sequence[Path]
    ledger: Path
    key: str | None
    published: Sequence[bytes]
    server: str | None = None
    keep_alike: bool = False

    @classmethod
    def from_flags(
        cls,
        folders: Sequence[str | Path],
        ledger: str | None,
        key: str | None,
        published_key: Sequence[str],
        server: str | None,
        *,
        keep_alike: bool = False,
    ) -> Request:
        """Find the ledger: the one that is named, else that of the one project in the folders."""
        places = folders_of(folders)
        if ledger is not None:
            path = Path(ledger).expanduser().resolve()
        else:
            projects = projects_in(places)
            if len(projects) != 1:
                raise SpecError(
                    "nothing says which consent ledger to use",
                    expected="--ledger FILE",
                    found=f"{len(projects)} projects among the folders",
                )
            path = projects[0] / CONSENT
        public = [key_of(one, one) for one in published_key]
        return cls(places, path, key, public, server, keep_alike)

    @property
    def secret(self) -> bytes:
        """The key itself."""
        return key_of(self.ledger, self.key)

    @property
    def work(self) -> Work:
        """The file of a withdrawal that goes on."""
        return Work(work_path(self.ledger))

    def list_files(self, folders: Sequence[Path] | None = None) -> list[Place]:
        """List the files that are looked through."""
        folders = folders or self.folders
        return places_of(folders, self.ledger, projects_in(folders))

    def plan(
        self,
        kind: Any,
        people: Sequence[str],
        scopes: Any,
        *,
        folders: Sequence[Path] | None = None,
        back: Back | None = None,
    ) -> Plan:
        """Find what names people."""
        return plan_of(
            folders or self.folders,
            self.ledger,
            self.secret,
            kind,
            people,
            scopes,
            back=back,
            published=self.published,
        )

    def are_of(self, plan: Plan, kind: str, people: Sequence[str]) -> bool:
        """Tell whether people are those whose withdrawal was begun before."""
        return {mark_of(kind, one, self.secret) for one in people} <= set(plan.marks)

    def widen(self, begun: Plan, kind: str, people: Sequence[str]) -> Plan:
        """Add folders and keys that were not named when the same withdrawal was begun."""
        self.refuse_unsearchable(begun.named.get(begun.kind, ()), None, begun)
        held = [Path(one) for one in begun.folders]
        new = [one for one in self.folders if not any(one.is_relative_to(at) for at in held)]
        is_same = not people or self.are_of(begun, kind, people)
        if not is_same or not (new or self.published):
            return begun
        named = begun.named.get(begun.kind, ())
        return begun.with_more(self.plan(begun.kind, named, begun.scopes, folders=[*held, *new]))

    def refuse_unknown(self, people: Sequence[str], kind: Any) -> None:
        """Refuse ids that stand nowhere: the receipt of a mistyped id would say all is done."""
        unknown = people
        if self.ledger.exists():
            ledger, ids = read_ledger(self.ledger, key=self.key), pl.Series(people, dtype=pl.String)
            said = [ledger.allows(kind, ids, scope) for scope in SCOPES]
            unknown = [one for k, one in enumerate(people) if all(s[k] is None for s in said)]
        if unknown:
            names = everyone_else(self.folders, self.list_files()).values()
            everyone = frozenset[str]().union(*names)
            unknown = [one for one in unknown if one not in everyone]
        if unknown:
            few = ", ".join(map(repr, unknown[:5])) + (" …" if len(unknown) > 5 else "")
            raise SpecError(
                f"{len(unknown):,} of {len(people):,} ids ({kind}) are in no table, and not in the"
                " ledger",
                expected="ids as the data have them",
                found=few,
                where="--who",
                hint="--allow-unmatched searches for them anyway, in file names and in text",
            )

    def refuse_unsearchable(
        self, people: Sequence[str], kind: str | None, begun: Plan | None = None
    ) -> None:
        """Refuse folders in which no one could be found: a receipt would tell that all is done."""
        folders = self.folders
        if begun is not None:  # its folders too, those that are still there
            still = filter(Path.is_dir, map(Path, begun.folders))
            folders = folders_of([*folders, *still])
        known = ledger_names(self.ledger, self.key)
        files = self.list_files(folders)
        unread = unsearchable(folders, files, people, kind, known, self.published)
        if unread:
            more = f" and {len(unread) - 3:,} more" if len(unread) > 3 else ""
            raise SpecError(
                "these people would not be found there: a receipt would tell that all is done",
                expected="folders in which their ids lead to everything of theirs",
                where=", ".join(where for where, _ in unread[:3]) + more,
                hint="; ".join(dict.fromkeys(why for _, why in unread)),
            )

    def finish(self, plan: Plan) -> Withdrawn:
        """Take out what a plan names, search for what is left, and write the receipt."""
        self.work.begin(plan)
        folders = [Path(one) for one in plan.folders]

        def search_rest(places: Sequence[Place], terms: Terms, looks: Sequence[str]) -> Searched:
            found = search(places, terms, looks, folders, self.published)
            return searched(found, keep_alike=self.keep_alike)

        return finish(
            self.ledger,
            self.secret,
            plan,
            search=search_rest,
            server=None if self.server is None else self._open_server,
            key_file=key_path(self.ledger, self.key),
        )

    def _open_server(self, url: str) -> Server:
        if str(self.server).rstrip("/") != url:
            raise SpecError(
                "tasks of theirs are on another server",
                expected=f"--server {url}",
                found=self.server,
                hint="give the command once more for each server: what was done stays done",
            )
        return Server.from_environment(url)


def search(
    places: Sequence[Place],
    terms: Terms,
    looks: Sequence[str],
    folders: Sequence[Path],
    published: Sequence[bytes],
) -> Proof:
    """Search every byte; photos that projects say are someone else's need not be opened."""
    projects = map(open_project, projects_in(sorted(folders)))
    others = frozenset[str]().union(*map(sums_of_photos, projects))
    return prove(
        places,
        terms,
        from_text(looks),
        folders=folders,
        others=others - frozenset(terms.pictures),
        keys=published,
    )


def ledger_names(ledger: Path, key: str | None = None) -> dict[str, set[str]]:
    """List everyone whom a ledger still names, by kind."""
    found: dict[str, set[str]] = {}
    for row in read_ledger(ledger, key=key).rows if ledger.exists() else ():
        if row.who is not None:
            found.setdefault(row.kind, set()).add(row.who)
    return found


def look_of(photo: str) -> str:
    """Make the thumbnail of a photo that someone has."""
    try:
        found = thumbnail(Path(photo).expanduser().read_bytes())
    except OSError as error:
        raise FileError("a photo cannot be read", found=error.strerror, where=photo) from error
    if found is None:
        raise FileError("this photo cannot be opened", expected="a picture", where=photo)
    return as_text(found)


def unsearchable(
    places: Sequence[Path],
    files: Sequence[Place],
    people: Sequence[str],
    kind: str | None,
    known: Mapping[str, set[str]],
    published: Sequence[bytes],
) -> list[tuple[str, str]]:
    """List folders and tables in which a search would not find people, and why."""
    every = {one: set(names) for one, names in known.items()}
    every.setdefault(kind or "subject", set()).update(people)
    for one, names in everyone_else(places, files).items():
        every.setdefault(one, set()).update(names)
    unread = without_key(files, published, every, people)
    if not unread and kind in ("subject", "copyright") and not projects_in(places):
        unread = without_link(files, kind)
    return unread
