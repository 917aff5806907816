"""Withdraw people from folders, ledger and annotation server; replay, prove and verify."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from isolux.io.consent import SCOPES, Scope, key_of, revoke
from isolux.vocabulary.errors import SpecError
from isolux_curate.listed_ids import listed_ids
from isolux_curate.project.folder import CONSENT, open_project
from isolux_curate.proof.searching import Proof
from isolux_curate.verbs.consent import scopes_of
from isolux_curate.verbs.withdraw.asked import Request, ledger_names, look_of, search, unsearchable
from isolux_curate.withdrawal.planning import known_of, who_is_back
from isolux_curate.withdrawal.progress import Plan, alone, check_receipt
from isolux_curate.withdrawal.replacing import KEYS, rows_for
from isolux_curate.withdrawal.walking import folders_of, projects_in, sweep_below
from isolux_curate.withdrawal.withdrawing import Looked, Withdrawn, look_for


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
    match: Sequence[str] = KEYS,
    complexity: Sequence[str] = (),
    keep_alike: bool = False,
    allow_unmatched: bool = False,
    dry_run: bool = False,
) -> Withdrawn | Looked:
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
    keep_alike : bool
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
    request = Request.from_flags(folders, ledger, key, published_key, server, keep_alike=keep_alike)
    _refuse_sample(request.folders, sample, pool)
    scopes = scopes_of(scope) or [*SCOPES]
    people = _people((*who, *listed_ids(list, kind)))
    with alone(request.ledger):
        unfinished_plan, earlier_notes = request.work.plan(), tuple[str, ...]()
        if unfinished_plan is None and not people:
            raise SpecError("who withdraws is not said", expected="--who ID, or --list FILE")
        if not dry_run:
            sweep_below(request.folders)
        if unfinished_plan is not None:
            unfinished_plan = request.widen(unfinished_plan, kind, people)
            if dry_run:
                return look_for(unfinished_plan, request.ledger)
            earlier_outcome = request.finish(unfinished_plan)
            if request.are_of(unfinished_plan, kind, people):
                return earlier_outcome
            if earlier_outcome.receipt is None:
                return replace(earlier_outcome, left=(_NOT_STARTED, *earlier_outcome.left))
            earlier_notes = (
                f"one that was begun before was finished first: {earlier_outcome.receipt}",
            )
        if not allow_unmatched:
            request.refuse_unknown(people, kind)
        request.refuse_unsearchable(people, kind)
        if not dry_run:
            revoke(request.ledger, kind, people, scopes, note=note, key=key)  # type: ignore[arg-type]
        plan = request.plan(kind, people, scopes)
        if dry_run:
            return look_for(plan, request.ledger)
        outcome = request.finish(_add_replacements(plan, sample, pool, match, complexity))
        return replace(outcome, notes=(*earlier_notes, *outcome.notes))


def _add_replacements(
    plan: Plan, sample: str | None, pool: str | None, keys: Sequence[str], complexity: Sequence[str]
) -> Plan:
    if sample is None or pool is None:
        return plan
    rows = rows_for(
        Path(sample).expanduser().resolve(),
        Path(pool).expanduser(),
        plan.terms({}),
        keys=keys,
        complexity=complexity,
    )
    return replace(plan, replacing=asdict(rows))


def _people(ids: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(person_id.strip() for person_id in ids if person_id.strip())]


_NOT_STARTED = (
    "the withdrawal asked for now",
    "it has not begun: one that was begun before goes first, and is not finished",
)


def _refuse_sample(folders: Sequence[Path], sample: str | None, pool: str | None) -> None:
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


def replay(
    folders: Sequence[str | Path],
    *,
    scope: Sequence[str] = (),
    ledger: str | None = None,
    key: str | None = None,
    server: str | None = None,
    published_key: Sequence[str] = (),
) -> Sequence[Withdrawn]:
    """Take out whoever withdrew before and is back, since a backup was restored."""
    request = Request.from_flags(folders, ledger, key, published_key, server)
    scopes = scopes_of(scope) or [*SCOPES]
    first: Scope = "evaluation" if "evaluation" in scopes else scopes[0]  # type: ignore[assignment]
    outcomes = []
    with alone(request.ledger):
        unfinished_plan = request.work.plan()
        known_names = set[str]().union(*ledger_names(request.ledger, key).values())
        request.refuse_unsearchable(sorted(known_names), None, unfinished_plan)
        if unfinished_plan is not None:
            outcomes.append(request.finish(unfinished_plan))
            if outcomes[-1].receipt is None:
                return outcomes
        sweep_below(request.folders)
        for reappeared in who_is_back(
            request.folders,
            request.list_files(),
            request.ledger,
            request.secret,
            first,
            published=request.published,
        ):
            outcomes.append(
                request.finish(
                    request.plan(reappeared.kind, reappeared.who, scopes, back=reappeared)
                )
            )
            if outcomes[-1].receipt is None:
                break
    return outcomes


def prove(
    folders: Sequence[str | Path],
    *,
    who: Sequence[str] = (),
    list: str | None = None,  # noqa: A002  (the flag is called --list)
    kind: Literal["subject", "copyright", "annotator"] = "subject",
    photo: Sequence[str] = (),
    published_key: Sequence[str] = (),
) -> Proof:
    """Search every byte below folders for people, and change nothing."""
    searched_folders = folders_of(folders)
    names = _people((*who, *listed_ids(list)))
    if not names and not photo:
        raise SpecError("who is searched for is not said", expected="--who ID, or --photo FILE")
    published_keys = [key_of(path, path) for path in published_key]
    terms, files, thumbnail_texts = known_of(searched_folders, kind, names, published_keys)
    proof = search(
        files,
        terms,
        [*thumbnail_texts, *(look_of(path) for path in photo)],
        searched_folders,
        published_keys,
    )
    if names:
        names_by_kind: dict[str, set[str]] = {}
        for project in projects_in(searched_folders):
            for id_kind, kind_names in ledger_names(open_project(project).consent).items():
                names_by_kind.setdefault(id_kind, set()).update(kind_names)
        proof.blind += unsearchable(
            searched_folders, files, names, kind, names_by_kind, published_keys
        )
    return proof


def verify(
    receipt: str | Path, *, ledger: str | None = None, key: str | None = None
) -> dict[str, Any]:
    """Verify a receipt's hash and signature, and return it."""
    receipt_path = Path(receipt).expanduser().resolve()
    ledger_path = Path(ledger).expanduser() if ledger else receipt_path.parent.parent / CONSENT
    return check_receipt(receipt_path, ledger=ledger_path, key=key)
