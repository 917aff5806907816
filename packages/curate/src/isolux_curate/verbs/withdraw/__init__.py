"""A person withdraws, from a user's side: which folders, which ledger, which server."""

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
    asked = Request.from_flags(folders, ledger, key, published_key, server, keep_alike=keep_alike)
    _refuse_sample(asked.folders, sample, pool)
    scopes = scopes_of(scope) or [*SCOPES]
    people = _people((*who, *listed_ids(list, kind)))
    with alone(asked.ledger):
        begun, first = asked.work.plan(), tuple[str, ...]()
        if begun is None and not people:
            raise SpecError("who withdraws is not said", expected="--who ID, or --list FILE")
        if not dry_run:
            sweep_below(asked.folders)
        if begun is not None:
            begun = asked.widen(begun, kind, people)
            if dry_run:
                return look_for(begun, asked.ledger)
            before = asked.finish(begun)
            if asked.are_of(begun, kind, people):
                return before
            if before.receipt is None:
                return replace(before, left=(_NOT_BEGUN, *before.left))
            first = (f"one that was begun before was finished first: {before.receipt}",)
        if not allow_unmatched:
            asked.refuse_unknown(people, kind)
        asked.refuse_unsearchable(people, kind)
        if not dry_run:
            revoke(asked.ledger, kind, people, scopes, note=note, key=key)  # type: ignore[arg-type]
        plan = asked.plan(kind, people, scopes)
        if dry_run:
            return look_for(plan, asked.ledger)
        done = asked.finish(_with_replacing(plan, sample, pool, match, complexity))
        return replace(done, notes=(*first, *done.notes))


def _with_replacing(
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
    return [*dict.fromkeys(one.strip() for one in ids if one.strip())]


_NOT_BEGUN = (
    "the withdrawal asked for now",
    "it has not begun: one that was begun before goes first, and is not finished",
)


def _refuse_sample(places: Sequence[Path], sample: str | None, pool: str | None) -> None:
    if (sample is None) != (pool is None):
        raise SpecError("a sample and its pool go together", expected="--sample FILE --pool FILE")
    if sample is not None:
        at = Path(sample).expanduser().resolve()
        if not any(at.is_relative_to(one) for one in places):
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
    asked = Request.from_flags(folders, ledger, key, published_key, server)
    scopes = scopes_of(scope) or [*SCOPES]
    first: Scope = "evaluation" if "evaluation" in scopes else scopes[0]  # type: ignore[assignment]
    done = []
    with alone(asked.ledger):
        begun = asked.work.plan()
        known = set[str]().union(*ledger_names(asked.ledger, key).values())
        asked.refuse_unsearchable(sorted(known), None, begun)
        if begun is not None:
            done.append(asked.finish(begun))
            if done[-1].receipt is None:
                return done
        sweep_below(asked.folders)
        for back in who_is_back(
            asked.folders,
            asked.list_files(),
            asked.ledger,
            asked.secret,
            first,
            published=asked.published,
        ):
            done.append(asked.finish(asked.plan(back.kind, back.who, scopes, back=back)))
            if done[-1].receipt is None:
                break
    return done


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
    places = folders_of(folders)
    names = _people((*who, *listed_ids(list)))
    if not names and not photo:
        raise SpecError("who is searched for is not said", expected="--who ID, or --photo FILE")
    public = [key_of(one, one) for one in published_key]
    terms, files, looks = known_of(places, kind, names, public)
    done = search(files, terms, [*looks, *(look_of(one) for one in photo)], places, public)
    if names:
        known: dict[str, set[str]] = {}
        for project in projects_in(places):
            for of, some in ledger_names(open_project(project).consent).items():
                known.setdefault(of, set()).update(some)
        done.blind += unsearchable(places, files, names, kind, known, public)
    return done


def verify(
    receipt: str | Path, *, ledger: str | None = None, key: str | None = None
) -> dict[str, Any]:
    """See that a receipt is as it was signed."""
    at = Path(receipt).expanduser().resolve()
    of = Path(ledger).expanduser() if ledger else at.parent.parent / CONSENT
    return check_receipt(at, ledger=of, key=key)
