"""A person withdraws, from a user's side: which folders, which ledger, which server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from isolux.curation import proof, withdrawal
from isolux.curation.annotation.server import Server
from isolux.curation.consent import SCOPES, Scope, key_of, key_path
from isolux.curation.project.folder import CONSENT, open_project
from isolux.curation.proof import Proof
from isolux.curation.withdrawal import Looked, Place, Searched, Terms, Withdrawn
from isolux.people.listed_ids import listed_ids
from isolux.verbs.consent import scopes_of
from isolux.verbs.withdraw.asked import (
    are_of,
    begin,
    known_below,
    ledger_names,
    ledger_of,
    look_of,
    refuse_unknown,
    refuse_unsearchable,
    searched,
    unsearchable,
    widened,
    with_begun,
)
from isolux.vocabulary.errors import FileError, SpecError

__all__ = ["ledger_of", "prove", "replay", "verify", "withdraw"]


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
    match: Sequence[str] = withdrawal.KEYS,
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
    places = withdrawal.folders_of(folders)
    _refuse_sample(places, sample, pool)
    at = ledger_of(places, ledger)
    scopes = scopes_of(scope) or [*SCOPES]
    given = (*who, *listed_ids(list, kind))
    people = [*dict.fromkeys(one.strip() for one in given if one.strip())]
    with withdrawal.alone(at):
        work = withdrawal.Work(withdrawal.work_path(at))
        public = [key_of(one, one) for one in published_key]
        begun, first = work.plan(), tuple[str, ...]()
        if begun is None and not people:
            raise SpecError("who withdraws is not said", expected="--who ID, or --list FILE")
        if not dry_run:
            withdrawal.sweep_below(places)
        if begun is not None:
            refuse_unsearchable(
                with_begun(places, begun), at, begun.named.get(begun.kind, ()), None, key, public
            )
            same = not people or are_of(begun, kind, people, at, key)
            begun = widened(begun, places, at, key, public, same=same)
            if dry_run:
                return withdrawal.look_for(begun, at)
            work.begin(begun)
            before = _finished(at, begun, key, server, public, keep_alike=keep_alike)
            if are_of(begun, kind, people, at, key):
                return before
            if before.receipt is None:
                return replace(before, left=(_NOT_BEGUN, *before.left))
            first = (f"one that was begun before was finished first: {before.receipt}",)
        if not allow_unmatched:
            refuse_unknown(places, at, people, kind, key)
        refuse_unsearchable(places, at, people, kind, key, public)
        plan = begin(places, at, people, kind, scopes, note, key, public, dry_run=dry_run)
        if dry_run:
            return withdrawal.look_for(plan, at)
        if sample is not None and pool is not None:
            plan = _with_replacing(plan, sample, pool, match, complexity)
        work.begin(plan)
        done = _finished(at, plan, key, server, public, keep_alike=keep_alike)
        return replace(done, notes=(*first, *done.notes))


_NOT_BEGUN = (
    "the withdrawal asked for now",
    "it has not begun: one that was begun before goes first, and is not finished",
)


def _with_replacing(
    plan: withdrawal.Plan, sample: str, pool: str, keys: Sequence[str], complexity: Sequence[str]
) -> withdrawal.Plan:
    chosen = withdrawal.rows_for(
        Path(sample).expanduser().resolve(), Path(pool).expanduser(), plan.terms({}), keys=keys,
        complexity=complexity,
    )  # fmt: skip
    return replace(plan, replacing=asdict(chosen))


def _refuse_sample(places: Sequence[Path], sample: str | None, pool: str | None) -> None:
    if (sample is None) != (pool is None):
        raise SpecError("a sample and its pool go together", expected="--sample FILE --pool FILE")
    if sample is not None:
        at = Path(sample).expanduser().resolve()
        if not any(at.is_relative_to(one) for one in places):
            raise SpecError(
                "the sample is not below the folders", expected="a file in one of them",
                found=sample,
            )  # fmt: skip


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
    places = withdrawal.folders_of(folders)
    at = ledger_of(places, ledger)
    scopes = scopes_of(scope) or [*SCOPES]
    first: Scope = "evaluation" if "evaluation" in scopes else scopes[0]  # type: ignore[assignment]
    done = []
    public = [key_of(one, one) for one in published_key]
    with withdrawal.alone(at):
        work = withdrawal.Work(withdrawal.work_path(at))
        begun = work.plan()
        known = set[str]().union(*ledger_names(at, key).values())
        held = places if begun is None else with_begun(places, begun)
        refuse_unsearchable(held, at, sorted(known), None, key, public)
        if begun is not None:
            done.append(_finished(at, begun, key, server, public))
            if done[-1].receipt is None:
                return done
        withdrawal.sweep_below(places)
        secret = key_of(at, key)
        files = withdrawal.places_of(places, at, withdrawal.projects_in(places))
        for back in withdrawal.who_is_back(places, files, at, secret, first, published=public):
            plan = withdrawal.plan_of(
                places, at, secret, back.kind, back.who, scopes,  # type: ignore[arg-type]
                whole="evaluation" in scopes, back=back, published=public,
            )  # fmt: skip
            work.begin(plan)
            done.append(_finished(at, plan, key, server, public))
            if done[-1].receipt is None:
                break
    return done


def _finished(
    at: Path,
    begun: withdrawal.Plan,
    key: str | None,
    server: str | None,
    published: Sequence[bytes],
    *,
    keep_alike: bool = False,
) -> Withdrawn:
    return withdrawal.finish(
        at, key_of(at, key), begun, made_by=f"isolux {version('isolux')}",
        server=None if server is None else lambda url: _server(server, url), remake=_remake,
        search=partial(_search, begun.folders, published, keep_alike=keep_alike),
        key_file=key_path(at, key),
    )  # fmt: skip


def _search(
    given: Sequence[str], published: Sequence[bytes], places: Sequence[Place], terms: Terms,
    looks: Sequence[str], *, keep_alike: bool,
) -> Searched:  # fmt: skip
    """Search what is left; where it stands is masked by the caller."""
    folders = [Path(one) for one in given]
    done = proof.prove(
        places, terms, proof.from_text(looks), folders=folders, others=_of_others(folders, terms),
        keys=published,
    )  # fmt: skip
    return searched(done, keep_alike=keep_alike)


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
    places = withdrawal.folders_of(folders)
    names = [*dict.fromkeys(one.strip() for one in (*who, *listed_ids(list)) if one.strip())]
    if not names and not photo:
        raise SpecError("who is searched for is not said", expected="--who ID, or --photo FILE")
    public = [key_of(one, one) for one in published_key]
    terms, files, looks = withdrawal.known_of(places, kind, names, public)
    seen = [*looks, *(look_of(one) for one in photo)]
    done = proof.prove(
        files, terms, proof.from_text(seen), folders=places, others=_of_others(places, terms),
        keys=public,
    )  # fmt: skip
    if names:
        done.blind += unsearchable(places, files, names, kind, known_below(places), public)
    return done


def _of_others(folders: Iterable[Path], terms: Terms) -> frozenset[str]:
    """List the sums of photos that projects say are someone else's."""
    projects = withdrawal.projects_in(sorted(folders))
    known = frozenset[str]().union(
        *(withdrawal.sums_of_photos(open_project(one)) for one in projects)
    )
    return known - frozenset(terms.pictures)


def verify(
    receipt: str | Path, *, ledger: str | None = None, key: str | None = None
) -> dict[str, Any]:
    """See that a receipt is as it was signed."""
    at = Path(receipt).expanduser().resolve()
    of = Path(ledger).expanduser() if ledger else at.parent.parent / CONSENT
    return withdrawal.check_receipt(at, ledger=of, key=key)


def _server(given: str, url: str) -> Server:
    if given.rstrip("/") != url:
        raise SpecError(
            "tasks of theirs are on another server", expected=f"--server {url}", found=given,
            hint="give the command once more for each server: what was done stays done",
        )  # fmt: skip
    return Server.from_environment(url)


def _remake(run: Path, _told: str) -> None:
    """Make a run's page anew from what is left of it."""
    from isolux.io import run_directory
    from isolux.report.html import write_comparison, write_report

    page = run / "report.html"
    if not page.is_file():
        return
    try:
        held = run_directory.load(run)
        write = write_comparison if "model_a" in held.disparities.columns else write_report
        write(held, page)
    except Exception as error:
        page.unlink()
        raise FileError(
            "the page of a run could not be made again, and was deleted", where=str(page),
            hint=f"isolux report {run}",
        ) from error  # fmt: skip
