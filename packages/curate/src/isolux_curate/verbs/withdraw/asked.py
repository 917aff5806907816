"""The request of a withdrawal: its folders, ledger and keys, refusals, and remaining matches."""

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

_REMAINING_ADVICE = (
    "isolux takes an id out of a sentence only if it can hardly be another word (four characters "
    "or more with a letter and a digit, or seven digits). In the files that still hold one, take "
    "it out by hand, or delete or rename the file; then give the same command again. `isolux "
    "withdraw --prove` with the same folders and ids shows which id stands where."
)
_WORDS = {TEXT: "it still holds", CELLS: "its cells still hold", NAME: "its name still holds"}


def searched(search_result: Proof, *, keep_alike: bool) -> Searched:
    """Summarise a search: what remains, by file, and cautions."""
    kept_matches = [entry for entry in search_result.found if keep_alike and entry[1] == ALIKE]
    cell_matches = [entry for entry in search_result.found if entry[1].startswith(CELL)]
    notes = list(search_result.notes)
    if cell_matches:  # id columns are cleaned: remaining short cells may be any word
        notes.append(
            f"{len(cell_matches):,} files hold a cell that is spelt as an id of fewer than four"
            " characters"
            " and may be any word: isolux withdraw --prove names them."
        )
    remaining = [
        entry for entry in search_result.found if entry not in (*kept_matches, *cell_matches)
    ]
    remaining_by_file = counted(remaining, search_result.lines)
    if remaining_by_file != remaining:
        notes.append(Caution(_REMAINING_ADVICE))
    counts = {
        "files": search_result.files,
        "bytes": search_result.bytes,
        "pictures": search_result.pictures,
        "found": 0,
        "alike_kept": len(kept_matches),
        "ids_not_in_text": search_result.cells_only,
    }
    return Searched(counts, tuple(remaining_by_file), tuple(search_result.blind), tuple(notes))


def counted(
    matches: Iterable[tuple[str, str]], lines: Mapping[str, Sequence[int]]
) -> list[tuple[str, str]]:
    """Count ids and names by file, with the lines that hold them.

    Examples
    --------
    >>> counted([("d/x.txt", "it holds 's-17' in line 2"), ("d/x.txt", "it holds 's-18' in line 2"),
    ...          ("d/y.jpg", "a picture that looks like theirs")], {"d/x.txt": [2]})
    [('d/x.txt', 'it still holds 2 of their ids or file names, in line 2'),
     ('d/y.jpg', 'a picture that looks like theirs')]
    """
    names_by_entry: dict[tuple[str, str], set[str]] = {}
    for source, description in matches:
        prefix = next((phrase for phrase in _WORDS if description.startswith(f"{phrase} ")), None)
        names_by_entry.setdefault((source, description if prefix is None else prefix), set()).add(
            description
        )
    entries = []
    for (source, description), names in names_by_entry.items():
        if description not in _WORDS:
            entries.append((source, description))
            continue
        n = len(names)
        name_count = (
            "1 of their ids or file names" if n == 1 else f"{n:,} of their ids or file names"
        )
        line_text = in_lines(lines.get(source, ())) if description == TEXT else ""
        entries.append(
            (source, f"{_WORDS[description]} {name_count}" + (f",{line_text}" if line_text else ""))
        )
    return entries


@dataclass(frozen=True, slots=True)
class Request:
    """The inputs of a withdrawal: folders, ledger and key, keys of pseudonyms, server."""

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
        """Resolve folders and ledger: the given one, else that of the only project in them."""
        resolved_folders = folders_of(folders)
        if ledger is not None:
            path = Path(ledger).expanduser().resolve()
        else:
            projects = projects_in(resolved_folders)
            if len(projects) != 1:
                raise SpecError(
                    "nothing says which consent ledger to use",
                    expected="--ledger FILE",
                    found=f"{len(projects)} projects among the folders",
                )
            path = projects[0] / CONSENT
        published_keys = [key_of(key_file, key_file) for key_file in published_key]
        return cls(resolved_folders, path, key, published_keys, server, keep_alike)

    @property
    def secret(self) -> bytes:
        """The ledger's key."""
        return key_of(self.ledger, self.key)

    @property
    def work(self) -> Work:
        """The state of an unfinished withdrawal."""
        return Work(work_path(self.ledger))

    def list_files(self, folders: Sequence[Path] | None = None) -> list[Place]:
        """List the files that are searched."""
        folders = folders or self.folders
        return places_of(folders, self.ledger, projects_in(folders))

    def plan(
        self,
        person_kind: Any,
        people: Sequence[str],
        scopes: Any,
        *,
        folders: Sequence[Path] | None = None,
        back: Back | None = None,
    ) -> Plan:
        """Plan a withdrawal of people."""
        return plan_of(
            folders or self.folders,
            self.ledger,
            self.secret,
            person_kind,
            people,
            scopes,
            back=back,
            published=self.published,
        )

    def are_of(self, plan: Plan, person_kind: str, people: Sequence[str]) -> bool:
        """Check whether people are those of an unfinished withdrawal."""
        return {mark_of(person_kind, person_id, self.secret) for person_id in people} <= set(
            plan.marks
        )

    def widen(self, unfinished_plan: Plan, person_kind: str, people: Sequence[str]) -> Plan:
        """Add folders and keys that the unfinished withdrawal of the same people did not have."""
        self.refuse_unsearchable(
            unfinished_plan.named.get(unfinished_plan.kind, ()), None, unfinished_plan
        )
        planned_folders = [Path(folder) for folder in unfinished_plan.folders]
        new_folders = [
            folder
            for folder in self.folders
            if not any(folder.is_relative_to(planned_folder) for planned_folder in planned_folders)
        ]
        is_same = not people or self.are_of(unfinished_plan, person_kind, people)
        if not is_same or not (new_folders or self.published):
            return unfinished_plan
        names = unfinished_plan.named.get(unfinished_plan.kind, ())
        return unfinished_plan.with_more(
            self.plan(
                unfinished_plan.kind,
                names,
                unfinished_plan.scopes,
                folders=[*planned_folders, *new_folders],
            )
        )

    def refuse_unknown(self, people: Sequence[str], person_kind: Any) -> None:
        """Refuse ids that are nowhere: a mistyped id would get a receipt."""
        unknown_ids = people
        if self.ledger.exists():
            ledger, ids = read_ledger(self.ledger, key=self.key), pl.Series(people, dtype=pl.String)
            allowed_by_scope = [ledger.allows(person_kind, ids, scope) for scope in SCOPES]
            unknown_ids = [
                person_id
                for k, person_id in enumerate(people)
                if all(s[k] is None for s in allowed_by_scope)
            ]
        if unknown_ids:
            names = everyone_else(self.folders, self.list_files()).values()
            known_names = frozenset[str]().union(*names)
            unknown_ids = [person_id for person_id in unknown_ids if person_id not in known_names]
        if unknown_ids:
            id_list = ", ".join(map(repr, unknown_ids[:5])) + (" …" if len(unknown_ids) > 5 else "")
            raise SpecError(
                f"{len(unknown_ids):,} of {len(people):,} ids ({person_kind}) are in no table,"
                " and not in the"
                " ledger",
                expected="ids as the data have them",
                found=id_list,
                where="--who",
                hint="--allow-unmatched searches for them anyway, in file names and in text",
            )

    def refuse_unsearchable(
        self, people: Sequence[str], person_kind: str | None, unfinished_plan: Plan | None = None
    ) -> None:
        """Refuse folders in which people cannot be found, as a receipt would be wrong."""
        folders = self.folders
        if unfinished_plan is not None:  # also its folders that still exist
            existing_folders = filter(Path.is_dir, map(Path, unfinished_plan.folders))
            folders = folders_of([*folders, *existing_folders])
        names_by_kind = ledger_names(self.ledger, self.key)
        files = self.list_files(folders)
        unsearchable_files = unsearchable(
            folders, files, people, person_kind, names_by_kind, self.published
        )
        if unsearchable_files:
            more_text = (
                f" and {len(unsearchable_files) - 3:,} more" if len(unsearchable_files) > 3 else ""
            )
            raise SpecError(
                "these people would not be found there: a receipt would tell that all is done",
                expected="folders in which their ids lead to everything of theirs",
                where=", ".join(source for source, _ in unsearchable_files[:3]) + more_text,
                hint="; ".join(dict.fromkeys(reason for _, reason in unsearchable_files)),
            )

    def finish(self, plan: Plan) -> Withdrawn:
        """Execute a plan, search for remains, and write the receipt."""
        self.work.begin(plan)
        folders = [Path(folder) for folder in plan.folders]

        def search_rest(
            locations: Sequence[Place], terms: Terms, thumbnail_texts: Sequence[str]
        ) -> Searched:
            search_result = search(locations, terms, thumbnail_texts, folders, self.published)
            return searched(search_result, keep_alike=self.keep_alike)

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
    locations: Sequence[Place],
    terms: Terms,
    thumbnail_texts: Sequence[str],
    folders: Sequence[Path],
    published: Sequence[bytes],
) -> Proof:
    """Search every byte; damaged photos of other people in projects are no obstacle."""
    projects = map(open_project, projects_in(sorted(folders)))
    other_hashes = frozenset[str]().union(*map(sums_of_photos, projects))
    return prove(
        locations,
        terms,
        from_text(thumbnail_texts),
        folders=folders,
        others=other_hashes - frozenset(terms.pictures),
        keys=published,
    )


def ledger_names(ledger: Path, key: str | None = None) -> dict[str, set[str]]:
    """Read the ids in a ledger that are not erased, by kind."""
    names_by_kind: dict[str, set[str]] = {}
    for row in read_ledger(ledger, key=key).rows if ledger.exists() else ():
        if row.who is not None:
            names_by_kind.setdefault(row.kind, set()).add(row.who)
    return names_by_kind


def look_of(photo: str) -> str:
    """Build the thumbnail of a photo file, as text."""
    try:
        thumbnail_array = thumbnail(Path(photo).expanduser().read_bytes())
    except OSError as error:
        raise FileError("a photo cannot be read", found=error.strerror, where=photo) from error
    if thumbnail_array is None:
        raise FileError("this photo cannot be opened", expected="a picture", where=photo)
    return as_text(thumbnail_array)


def unsearchable(
    folders: Sequence[Path],
    files: Sequence[Place],
    people: Sequence[str],
    person_kind: str | None,
    names_by_kind: Mapping[str, set[str]],
    published: Sequence[bytes],
) -> list[tuple[str, str]]:
    """Find folders and tables in which a search would not find people, and why."""
    all_names = {id_kind: set(names) for id_kind, names in names_by_kind.items()}
    all_names.setdefault(person_kind or "subject", set()).update(people)
    for id_kind, names in everyone_else(folders, files).items():
        all_names.setdefault(id_kind, set()).update(names)
    unsearchable_files = without_key(files, published, all_names, people)
    if (
        not unsearchable_files
        and person_kind in ("subject", "copyright")
        and not projects_in(folders)
    ):
        unsearchable_files = without_link(files, person_kind)
    return unsearchable_files
