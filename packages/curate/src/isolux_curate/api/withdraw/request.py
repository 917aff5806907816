"""The request of a withdrawal: its folders, ledger and keys, refusals, and remaining matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import FileError, SpecError
from isolux.core.notes import Caution
from isolux.io.consent import SCOPES, compute_keyed_hash, key_path, read_ledger, read_ledger_key
from isolux_curate.annotation.server import LabelStudioServer
from isolux_curate.project.folder import CONSENT_FILE, open_project
from isolux_curate.proof.search import (
    CELL_HOLDS,
    CELL_IS,
    NAME_HOLDS,
    SIMILAR_IMAGE,
    TEXT_HOLDS,
    SearchResult,
    format_line_numbers,
    search_files_for_people,
)
from isolux_curate.withdrawal.file_walk import (
    FileLocation,
    find_project_folders,
    resolve_existing_outermost_folders,
)
from isolux_curate.withdrawal.planning import (
    ReappearedPeople,
    list_files_except_own_records,
    plan_withdrawal_of_people,
    read_names_of_everyone,
)
from isolux_curate.withdrawal.project_rows import read_photo_hashes
from isolux_curate.withdrawal.pseudonyms import (
    find_files_with_unresolved_pseudonyms,
    find_photo_tables_without_people,
)
from isolux_curate.withdrawal.state import WithdrawalPlan, WithdrawalState, build_state_path
from isolux_curate.withdrawal.table_references import (
    build_grey_thumbnail_or_none,
    decode_thumbnails,
    encode_thumbnail,
)
from isolux_curate.withdrawal.terms import IdentifyingTerms
from isolux_curate.withdrawal.workflow import (
    ProofResult,
    WithdrawalResult,
    execute_plan_write_receipt_if_clean,
)

_REMAINING_ADVICE = (
    "isolux takes an id out of a sentence only if it can hardly be another word (four characters "
    "or more with a letter and a digit, or seven digits). In the files that still hold one, take "
    "it out by hand, or delete or rename the file; then give the same command again. `isolux "
    "withdraw --prove` with the same folders and ids shows which id stands where."
)
_PHRASES = {
    TEXT_HOLDS: "it still holds",
    CELL_HOLDS: "its cells still hold",
    NAME_HOLDS: "its name still holds",
}


def summarise_search_by_file(
    search_result: SearchResult, *, keep_similar_images: bool
) -> ProofResult:
    """Summarise a search: what remains, by file, and cautions."""
    kept_matches = [
        entry
        for entry in search_result.matches
        if keep_similar_images and entry[1] == SIMILAR_IMAGE
    ]
    cell_matches = [entry for entry in search_result.matches if entry[1].startswith(CELL_IS)]
    notes = list(search_result.notes)
    if cell_matches:  # id columns are cleaned: remaining short cells may be any word
        notes.append(
            f"{len(cell_matches):,} files hold a cell that is spelt as an id of fewer than four"
            " characters"
            " and may be any word: isolux withdraw --prove names them."
        )
    remaining = [
        entry for entry in search_result.matches if entry not in (*kept_matches, *cell_matches)
    ]
    remaining_by_file = count_names_by_file(remaining, search_result.lines)
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
    return ProofResult(
        counts, tuple(remaining_by_file), tuple(search_result.unsearchable), tuple(notes)
    )


def count_names_by_file(
    matches: Iterable[tuple[str, str]], line_numbers_by_source: Mapping[str, Sequence[int]]
) -> list[tuple[str, str]]:
    """Count ids and names by file, with the lines that hold them.

    Examples
    --------
    >>> count_names_by_file(
    ...     [
    ...         ("d/x.txt", "it holds 's-17' in line 2"),
    ...         ("d/x.txt", "it holds 's-18' in line 2"),
    ...         ("d/y.jpg", "a picture that looks like theirs"),
    ...     ],
    ...     {"d/x.txt": [2]},
    ... )
    [('d/x.txt', 'it still holds 2 of their ids or file names, in line 2'),
     ('d/y.jpg', 'a picture that looks like theirs')]
    """
    names_by_entry: dict[tuple[str, str], set[str]] = {}
    for source, description in matches:
        prefix = next((phrase for phrase in _PHRASES if description.startswith(f"{phrase} ")), None)
        names_by_entry.setdefault((source, description if prefix is None else prefix), set()).add(
            description
        )
    entries = []
    for (source, description), names in names_by_entry.items():
        if description not in _PHRASES:
            entries.append((source, description))
            continue
        n = len(names)
        name_count = (
            "1 of their ids or file names" if n == 1 else f"{n:,} of their ids or file names"
        )
        line_text = (
            format_line_numbers(line_numbers_by_source.get(source, ()))
            if description == TEXT_HOLDS
            else ""
        )
        entries.append(
            (
                source,
                f"{_PHRASES[description]} {name_count}" + (f",{line_text}" if line_text else ""),
            )
        )
    return entries


@dataclass(frozen=True, slots=True)
class WithdrawalRequest:
    """The inputs of a withdrawal: folders, ledger and key, keys of pseudonyms, server."""

    folders: Sequence[Path]
    ledger: Path
    key: str | None
    published_keys: Sequence[bytes]
    server: str | None = None
    keep_similar_images: bool = False

    @classmethod
    def resolve_from_flags(
        cls,
        folders: Sequence[str | Path],
        ledger: str | None,
        key: str | None,
        published_key: Sequence[str],
        server: str | None,
        *,
        keep_similar_images: bool = False,
    ) -> WithdrawalRequest:
        """Resolve folders and ledger: the given one, else that of the only project in them."""
        resolved_folders = resolve_existing_outermost_folders(folders)
        if ledger is not None:
            path = Path(ledger).expanduser().resolve()
        else:
            projects = find_project_folders(resolved_folders)
            if len(projects) != 1:
                raise SpecError(
                    "nothing says which consent ledger to use",
                    expected="--ledger FILE",
                    found=f"{len(projects)} projects among the folders",
                )
            path = projects[0] / CONSENT_FILE
        published_keys = [read_ledger_key(key_file, key_file) for key_file in published_key]
        return cls(resolved_folders, path, key, published_keys, server, keep_similar_images)

    @property
    def ledger_key(self) -> bytes:
        """The ledger's key."""
        return read_ledger_key(self.ledger, self.key)

    @property
    def state(self) -> WithdrawalState:
        """The state of an unfinished withdrawal."""
        return WithdrawalState(build_state_path(self.ledger))

    def list_files_to_search(self, folders: Sequence[Path] | None = None) -> list[FileLocation]:
        """List the files that are searched."""
        folders = folders or self.folders
        return list_files_except_own_records(folders, self.ledger, find_project_folders(folders))

    def plan_for_people(
        self,
        person_kind: Any,
        people: Sequence[str],
        scopes: Any,
        *,
        folders: Sequence[Path] | None = None,
        reappeared: ReappearedPeople | None = None,
    ) -> WithdrawalPlan:
        """Plan a withdrawal of people."""
        return plan_withdrawal_of_people(
            folders or self.folders,
            self.ledger,
            self.ledger_key,
            person_kind,
            people,
            scopes,
            reappeared=reappeared,
            published_keys=self.published_keys,
        )

    def is_plan_for_people(
        self, plan: WithdrawalPlan, person_kind: str, people: Sequence[str]
    ) -> bool:
        """Check whether people are those of an unfinished withdrawal."""
        return {
            compute_keyed_hash(person_kind, person_id, self.ledger_key) for person_id in people
        } <= set(plan.marks)

    def extend_plan_if_people_in_it(
        self, unfinished_plan: WithdrawalPlan, person_kind: str, people: Sequence[str]
    ) -> WithdrawalPlan:
        """Add folders and keys that the unfinished withdrawal of the same people did not have."""
        self.refuse_folders_hiding_people(
            unfinished_plan.named.get(unfinished_plan.kind, ()), None, unfinished_plan
        )
        planned_folders = [Path(folder) for folder in unfinished_plan.folders]
        new_folders = [
            folder
            for folder in self.folders
            if not any(folder.is_relative_to(planned_folder) for planned_folder in planned_folders)
        ]
        is_same = not people or self.is_plan_for_people(unfinished_plan, person_kind, people)
        if not is_same or not (new_folders or self.published_keys):
            return unfinished_plan
        names = unfinished_plan.named.get(unfinished_plan.kind, ())
        return unfinished_plan.merge_plan_for_same_people(
            self.plan_for_people(
                unfinished_plan.kind,
                names,
                unfinished_plan.scopes,
                folders=[*planned_folders, *new_folders],
            )
        )

    def refuse_people_found_nowhere(self, people: Sequence[str], person_kind: Any) -> None:
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
            names = read_names_of_everyone(self.folders, self.list_files_to_search()).values()
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

    def refuse_folders_hiding_people(
        self,
        people: Sequence[str],
        person_kind: str | None,
        unfinished_plan: WithdrawalPlan | None = None,
    ) -> None:
        """Refuse folders in which people cannot be found, as a receipt would be wrong."""
        folders = self.folders
        if unfinished_plan is not None:  # also its folders that still exist
            existing_folders = filter(Path.is_dir, map(Path, unfinished_plan.folders))
            folders = resolve_existing_outermost_folders([*folders, *existing_folders])
        names_by_kind = read_unerased_ids_by_kind(self.ledger, self.key)
        files = self.list_files_to_search(folders)
        unsearchable_files = find_files_hiding_people(
            folders, files, people, person_kind, names_by_kind, self.published_keys
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

    def execute_plan_and_search(self, plan: WithdrawalPlan) -> WithdrawalResult:
        """Execute a plan, search for remains, and write the receipt."""
        self.state.write_plan_atomically(plan)
        folders = [Path(folder) for folder in plan.folders]

        def search_and_summarise_rest(
            locations: Sequence[FileLocation],
            terms: IdentifyingTerms,
            thumbnail_texts: Sequence[str],
        ) -> ProofResult:
            search_result = search_files_and_thumbnails(
                locations, terms, thumbnail_texts, folders, self.published_keys
            )
            return summarise_search_by_file(
                search_result, keep_similar_images=self.keep_similar_images
            )

        return execute_plan_write_receipt_if_clean(
            self.ledger,
            self.ledger_key,
            plan,
            search_remains=search_and_summarise_rest,
            open_server=None if self.server is None else self._open_requested_server_or_refuse,
            key_file=key_path(self.ledger, self.key),
        )

    def _open_requested_server_or_refuse(self, server_url: str) -> LabelStudioServer:
        if str(self.server).rstrip("/") != server_url:
            raise SpecError(
                "tasks of theirs are on another server",
                expected=f"--server {server_url}",
                found=self.server,
                hint="give the command once more for each server: what was done stays done",
            )
        return LabelStudioServer.from_url_with_environment_token(server_url)


def search_files_and_thumbnails(
    locations: Sequence[FileLocation],
    terms: IdentifyingTerms,
    thumbnail_texts: Sequence[str],
    folders: Sequence[Path],
    published_keys: Sequence[bytes],
) -> SearchResult:
    """Search every byte; damaged photos of other people in projects are no obstacle."""
    projects = map(open_project, find_project_folders(sorted(folders)))
    other_hashes = frozenset[str]().union(*map(read_photo_hashes, projects))
    return search_files_for_people(
        locations,
        terms,
        decode_thumbnails(thumbnail_texts),
        folders=folders,
        other_ids=other_hashes - frozenset(terms.photo_hashes),
        pseudonym_keys=published_keys,
    )


def read_unerased_ids_by_kind(ledger: Path, key: str | None = None) -> dict[str, set[str]]:
    """Read the ids in a ledger that are not erased, by kind."""
    names_by_kind: dict[str, set[str]] = {}
    for row in read_ledger(ledger, key=key).rows if ledger.exists() else ():
        if row.who is not None:
            names_by_kind.setdefault(row.kind, set()).add(row.who)
    return names_by_kind


def build_photo_thumbnail_text(photo_path: str) -> str:
    """Build the thumbnail of a photo file, as text."""
    try:
        thumbnail_array = build_grey_thumbnail_or_none(Path(photo_path).expanduser().read_bytes())
    except OSError as error:
        raise FileError("a photo cannot be read", found=error.strerror, where=photo_path) from error
    if thumbnail_array is None:
        raise FileError("this photo cannot be opened", expected="a picture", where=photo_path)
    return encode_thumbnail(thumbnail_array)


def find_files_hiding_people(
    folders: Sequence[Path],
    files: Sequence[FileLocation],
    person_ids: Sequence[str],
    person_kind: str | None,
    names_by_kind: Mapping[str, set[str]],
    published_keys: Sequence[bytes],
) -> list[tuple[str, str]]:
    """Find folders and tables in which a search would not find people, and why."""
    all_names = {id_kind: set(names) for id_kind, names in names_by_kind.items()}
    all_names.setdefault(person_kind or "subject", set()).update(person_ids)
    for id_kind, names in read_names_of_everyone(folders, files).items():
        all_names.setdefault(id_kind, set()).update(names)
    unsearchable_files = find_files_with_unresolved_pseudonyms(
        files, published_keys, all_names, person_ids
    )
    if (
        not unsearchable_files
        and person_kind in ("subject", "copyright")
        and not find_project_folders(folders)
    ):
        unsearchable_files = find_photo_tables_without_people(files, person_kind)
    return unsearchable_files
