"""Withdraw people from folders, ledger and annotation server; replay, prove and verify."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from isolux.core.errors import SpecError
from isolux.io.consent import SCOPES, Scope, read_ledger_key, revoke_consent
from isolux_curate.api.consent import parse_consent_scopes
from isolux_curate.api.withdraw.request import (
    WithdrawalRequest,
    build_photo_thumbnail_text,
    find_files_hiding_people,
    read_unerased_ids_by_kind,
    search_files_and_thumbnails,
)
from isolux_curate.id_lists import read_id_list_or_empty
from isolux_curate.project.folder import CONSENT_FILE, open_project
from isolux_curate.proof.search import SearchResult
from isolux_curate.withdrawal.file_walk import (
    find_project_folders,
    remove_stale_staging_folders,
    resolve_existing_outermost_folders,
)
from isolux_curate.withdrawal.planning import (
    find_reappeared_people,
    find_terms_files_and_thumbnails,
)
from isolux_curate.withdrawal.replacements import MATCH_KEYS, choose_replacement_rows
from isolux_curate.withdrawal.state import (
    WithdrawalPlan,
    lock_ledger_or_refuse,
    read_and_verify_receipt,
)
from isolux_curate.withdrawal.workflow import (
    WithdrawalPreview,
    WithdrawalResult,
    preview_withdrawal,
)


def withdraw(
    folders: Sequence[str | Path],
    *,
    who: Sequence[str] = (),
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    kind: Literal["subject", "copyright", "annotator"] = "subject",
    scope: Sequence[str] = (),
    note: str = "",
    ledger: str | None = None,
    key: str | None = None,
    server: str | None = None,
    published_key: Sequence[str] = (),
    sample: str | None = None,
    pool: str | None = None,
    match: Sequence[str] = MATCH_KEYS,
    complexity: Sequence[str] = (),
    keep_similar_images: bool = False,
    allow_unmatched: bool = False,
    dry_run: bool = False,
) -> WithdrawalResult | WithdrawalPreview:
    """Take people out of everything below folders, and write a receipt.

    The same command goes on where it was stopped; without ``who`` it ends what was begun.

    Parameters
    ----------
    folders : sequence of str or Path
        Projects, runs, caches, published datasets: any folders.
    who : sequence of str
        Ids, as in the data.
    list : str, optional
        A text file (.txt) with one id per line, or a table with a column of ids (subject_id, id).
    kind : {"subject", "copyright", "annotator"}
        In which role they withdraw: as people in the photos, as photographers, or as annotators.
    scope : sequence of str
        Which consent is withdrawn: evaluation, training, publication; default: all three. Where
        evaluation stands, projects stay as they are: name the folders that serve the scope.
    note : str
        For the ledger: a reason, or a form number.
    ledger : str, optional
        The consent ledger; default: the one of the project among the folders.
    key : str, optional
        The file with the project's key; default: the ledger's name with .key.
    server : str, optional
        The address of the annotation server, if tasks were sent to one; its token is read from
        LABEL_STUDIO_TOKEN.
    published_key : sequence of str
        Files with the keys under which ids were published (--key of curate publish and anonymise):
        folders under pseudonyms are refused without theirs.
    sample : str, optional
        A CSV file in these folders, in which other people take their places.
    pool : str, optional
        Who may take their places: a table with the columns of ``sample``.
    match : sequence of str
        Columns by which the closest person is chosen, the most important first.
    complexity : sequence of str
        Numeric columns that decide between people who are equally close.
    keep_similar_images : bool
        State that pictures that only look like theirs belong to others: you have looked at those
        named.
    allow_unmatched : bool
        Also search for an id that neither the ledger nor any table contains, in file names and in
        text.
    dry_run : bool
        Show what would be removed, and change nothing.

    Returns
    -------
    Withdrawn or Looked
        With ``dry_run`` the latter.

    Raises
    ------
    SpecError, FileError, TableError, OutputError
        No folder, no ledger; no person, or one whom nothing knows; a ledger that was tampered with;
        a server that is not named or does not answer; a file that cannot be read or written.
    """
    request = WithdrawalRequest.resolve_from_flags(
        folders, ledger, key, published_key, server, keep_similar_images=keep_similar_images
    )
    _refuse_incomplete_or_outside_sample(request.folders, sample, pool)
    scopes = parse_consent_scopes(scope) or [*SCOPES]
    people = _strip_and_deduplicate_ids((*who, *read_id_list_or_empty(list, kind)))
    with lock_ledger_or_refuse(request.ledger):
        unfinished_plan, earlier_notes = request.state.read_plan_or_none(), tuple[str, ...]()
        if unfinished_plan is None and not people:
            raise SpecError("who withdraws is not said", expected="--who ID, or --list FILE")
        if not dry_run:
            remove_stale_staging_folders(request.folders)
        if unfinished_plan is not None:
            unfinished_plan = request.extend_plan_if_people_in_it(unfinished_plan, kind, people)
            if dry_run:
                return preview_withdrawal(unfinished_plan, request.ledger)
            earlier_outcome = request.execute_plan_and_search(unfinished_plan)
            if request.is_plan_for_people(unfinished_plan, kind, people):
                return earlier_outcome
            if earlier_outcome.receipt is None:
                return replace(
                    earlier_outcome, remaining=(_NOT_STARTED, *earlier_outcome.remaining)
                )
            earlier_notes = (
                f"one that was begun before was finished first: {earlier_outcome.receipt}",
            )
        if not allow_unmatched:
            request.refuse_people_found_nowhere(people, kind)
        request.refuse_folders_hiding_people(people, kind)
        if not dry_run:
            revoke_consent(request.ledger, kind, people, scopes, note=note, key=key)  # type: ignore[arg-type]
        plan = request.plan_for_people(kind, people, scopes)
        if dry_run:
            return preview_withdrawal(plan, request.ledger)
        outcome = request.execute_plan_and_search(
            _add_replacements_if_sampled(plan, sample, pool, match, complexity)
        )
        return replace(outcome, notes=(*earlier_notes, *outcome.notes))


def _add_replacements_if_sampled(
    plan: WithdrawalPlan,
    sample: str | None,
    pool: str | None,
    match_keys: Sequence[str],
    complexity: Sequence[str],
) -> WithdrawalPlan:
    if sample is None or pool is None:
        return plan
    rows = choose_replacement_rows(
        Path(sample).expanduser().resolve(),
        Path(pool).expanduser(),
        plan.build_identifying_terms({}),
        set_columns=match_keys,
        number_columns=complexity,
    )
    return replace(plan, replacing=asdict(rows))


def _strip_and_deduplicate_ids(person_ids: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(person_id.strip() for person_id in person_ids if person_id.strip())]


_NOT_STARTED = (
    "the withdrawal asked for now",
    "it has not begun: one that was begun before goes first, and is not finished",
)


def _refuse_incomplete_or_outside_sample(
    folders: Sequence[Path], sample: str | None, pool: str | None
) -> None:
    if (sample is None) != (pool is None):
        raise SpecError("a sample and its pool go together", expected="--sample FILE --pool FILE")
    if sample is not None:
        sample_path = Path(sample).expanduser().resolve()
        if not any(sample_path.is_relative_to(folder) for folder in folders):
            raise SpecError(
                "the sample is not below the folders",
                expected="a file in one of them",
                found=sample,
            )


def withdraw_reappeared_people(
    folders: Sequence[str | Path],
    *,
    scope: Sequence[str] = (),
    ledger: str | None = None,
    key: str | None = None,
    server: str | None = None,
    published_key: Sequence[str] = (),
) -> Sequence[WithdrawalResult]:
    """Take out whoever withdrew before and is back, since a backup was restored."""
    request = WithdrawalRequest.resolve_from_flags(folders, ledger, key, published_key, server)
    scopes = parse_consent_scopes(scope) or [*SCOPES]
    first: Scope = "evaluation" if "evaluation" in scopes else scopes[0]  # type: ignore[assignment]
    outcomes = []
    with lock_ledger_or_refuse(request.ledger):
        unfinished_plan = request.state.read_plan_or_none()
        known_names = set[str]().union(*read_unerased_ids_by_kind(request.ledger, key).values())
        request.refuse_folders_hiding_people(sorted(known_names), None, unfinished_plan)
        if unfinished_plan is not None:
            outcomes.append(request.execute_plan_and_search(unfinished_plan))
            if outcomes[-1].receipt is None:
                return outcomes
        remove_stale_staging_folders(request.folders)
        for reappeared in find_reappeared_people(
            request.folders,
            request.list_files_to_search(),
            request.ledger,
            request.ledger_key,
            first,
            published_keys=request.published_keys,
        ):
            outcomes.append(
                request.execute_plan_and_search(
                    request.plan_for_people(
                        reappeared.kind, reappeared.person_ids, scopes, reappeared=reappeared
                    )
                )
            )
            if outcomes[-1].receipt is None:
                break
    return outcomes


def search_folders_for_people(
    folders: Sequence[str | Path],
    *,
    who: Sequence[str] = (),
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    kind: Literal["subject", "copyright", "annotator"] = "subject",
    photo: Sequence[str] = (),
    published_key: Sequence[str] = (),
) -> SearchResult:
    """Search every byte below folders for people, and change nothing."""
    searched_folders = resolve_existing_outermost_folders(folders)
    names = _strip_and_deduplicate_ids((*who, *read_id_list_or_empty(list)))
    if not names and not photo:
        raise SpecError("who is searched for is not said", expected="--who ID, or --photo FILE")
    published_keys = [read_ledger_key(path, path) for path in published_key]
    terms, files, thumbnail_texts = find_terms_files_and_thumbnails(
        searched_folders, kind, names, published_keys
    )
    proof = search_files_and_thumbnails(
        files,
        terms,
        [*thumbnail_texts, *(build_photo_thumbnail_text(path) for path in photo)],
        searched_folders,
        published_keys,
    )
    if names:
        names_by_kind: dict[str, set[str]] = {}
        for project in find_project_folders(searched_folders):
            for id_kind, kind_names in read_unerased_ids_by_kind(
                open_project(project).consent_path
            ).items():
                names_by_kind.setdefault(id_kind, set()).update(kind_names)
        proof.unsearchable += find_files_hiding_people(
            searched_folders, files, names, kind, names_by_kind, published_keys
        )
    return proof


def verify_and_read_receipt(
    receipt: str | Path, *, ledger: str | None = None, key: str | None = None
) -> dict[str, Any]:
    """Verify a receipt's hash and signature, and return it."""
    receipt_path = Path(receipt).expanduser().resolve()
    ledger_path = Path(ledger).expanduser() if ledger else receipt_path.parent.parent / CONSENT_FILE
    return read_and_verify_receipt(receipt_path, ledger=ledger_path, key=key)
