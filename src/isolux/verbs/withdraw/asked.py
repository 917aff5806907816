"""What a withdrawal says of what is left: each file once, with lines, and without anybody's id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.curation import proof, withdrawal
from isolux.curation.consent import SCOPES, key_of, mark_of, read_ledger, revoke
from isolux.curation.project.folder import CONSENT, open_project
from isolux.curation.proof import ALIKE, CELL, CELLS, NAME, TEXT, Proof, in_lines
from isolux.curation.withdrawal import Searched
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.notes import Caution

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
    counts = {"files": done.files, "bytes": done.bytes, "pictures": done.pictures, "found": 0,
              "alike_kept": len(kept), "ids_not_in_text": done.cells_only}  # fmt: skip
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


def refuse_unknown(
    places: Sequence[Path], ledger: Path, people: Sequence[str], kind: Any, key: str | None
) -> None:
    """Refuse ids that stand nowhere: a receipt for a mistyped one would tell that all is done."""
    unknown = people
    if ledger.exists():
        held, ids = read_ledger(ledger, key=key), pl.Series(people, dtype=pl.String)
        said = [held.allows(kind, ids, scope) for scope in SCOPES]
        unknown = [one for k, one in enumerate(people) if all(s[k] is None for s in said)]
    if not unknown:
        return
    files = withdrawal.places_of(places, ledger, withdrawal.projects_in(places))
    everyone = frozenset[str]().union(*withdrawal.everyone_else(places, files).values())
    unknown = [one for one in unknown if one not in everyone]
    if not unknown:
        return
    few = ", ".join(map(repr, unknown[:5])) + (" …" if len(unknown) > 5 else "")
    raise SpecError(
        f"{len(unknown):,} of {len(people):,} ids ({kind}) are in no table, and not in the ledger",
        expected="ids as the data have them", found=few, where="--who",
        hint="--allow-unmatched searches for them anyway, in file names and in text",
    )  # fmt: skip


def refuse_unsearchable(
    places: Sequence[Path], ledger: Path, people: Sequence[str], kind: str | None,
    key: str | None, published: Sequence[bytes],
) -> None:  # fmt: skip
    """Refuse folders in which no one could be found: a receipt would tell that all is done."""
    known = ledger_names(ledger, key)
    files = withdrawal.places_of(places, ledger, withdrawal.projects_in(places))
    unread = unsearchable(places, files, people, kind, known, published)
    if unread:
        more = f" and {len(unread) - 3:,} more" if len(unread) > 3 else ""
        raise SpecError(
            "these people would not be found there: a receipt would tell that all is done",
            expected="folders in which their ids lead to everything of theirs",
            where=", ".join(where for where, _ in unread[:3]) + more,
            hint="; ".join(dict.fromkeys(why for _, why in unread)),
        )  # fmt: skip


def ledger_names(ledger: Path, key: str | None = None) -> dict[str, set[str]]:
    """List everyone whom a ledger still names, by kind."""
    found: dict[str, set[str]] = {}
    for row in read_ledger(ledger, key=key).rows if ledger.exists() else ():
        if row.who is not None:
            found.setdefault(row.kind, set()).add(row.who)
    return found


def known_below(folders: Sequence[Path]) -> dict[str, set[str]]:
    """List everyone whom the ledgers of projects below folders name, by kind."""
    found: dict[str, set[str]] = {}
    for project in withdrawal.projects_in(folders):
        for kind, names in ledger_names(open_project(project).consent).items():
            found.setdefault(kind, set()).update(names)
    return found


def with_begun(places: Sequence[Path], begun: withdrawal.Plan) -> list[Path]:
    """Add the folders of a withdrawal that was begun, those that are still there."""
    return withdrawal.folders_of([*places, *filter(Path.is_dir, map(Path, begun.folders))])


def look_of(photo: str) -> str:
    """Make the thumbnail of a photo that someone has."""
    try:
        found = proof.thumbnail(Path(photo).expanduser().read_bytes())
    except OSError as error:
        raise FileError("a photo cannot be read", found=error.strerror, where=photo) from error
    if found is None:
        raise FileError("this photo cannot be opened", expected="a picture", where=photo)
    return proof.as_text(found)


def unsearchable(
    places: Sequence[Path], files: Sequence[withdrawal.Place], people: Sequence[str],
    kind: str | None, known: Mapping[str, set[str]], published: Sequence[bytes],
) -> list[tuple[str, str]]:  # fmt: skip
    """List folders and tables in which a search would not find people, and why."""
    every = {one: set(names) for one, names in known.items()}
    every.setdefault(kind or "subject", set()).update(people)
    for one, names in withdrawal.everyone_else(places, files).items():
        every.setdefault(one, set()).update(names)
    unread = withdrawal.without_key(files, published, every, people)
    if not unread and kind in ("subject", "copyright") and not withdrawal.projects_in(places):
        unread = withdrawal.without_link(files, kind)
    return unread


def begin(
    places: Sequence[Path], ledger: Path, people: Sequence[str], kind: Any, scopes: Any, note: str,
    key: str | None, published: Sequence[bytes], *, dry_run: bool,
) -> withdrawal.Plan:  # fmt: skip
    """Write the revocation into the ledger, where it does not stand there, and make the plan."""
    if not dry_run:
        revoke(ledger, kind, people, scopes, note=note, key=key)
    secret = key_of(ledger, key)
    return withdrawal.plan_of(
        places,
        ledger,
        secret,
        kind,
        people,
        scopes,
        whole="evaluation" in scopes,
        published=published,
    )


def ledger_of(folders: Sequence[Path], ledger: str | Path | None) -> Path:
    """Find the ledger: the one that is named, else that of the one project among the folders."""
    if ledger is not None:
        return Path(ledger).expanduser().resolve()
    found = withdrawal.projects_in(folders)
    if len(found) != 1:
        raise SpecError(
            "nothing says which consent ledger to use", expected="--ledger FILE",
            found=f"{len(found)} projects among the folders",
        )  # fmt: skip
    return found[0] / CONSENT


def are_of(
    plan: withdrawal.Plan, kind: str, people: Sequence[str], ledger: Path, key: str | None
) -> bool:
    """Tell whether people are those whose withdrawal was begun before."""
    secret = key_of(ledger, key)
    return {mark_of(kind, one, secret) for one in people} <= set(plan.marks)


def widened(
    begun: withdrawal.Plan, places: Sequence[Path], at: Path, key: str | None,
    published: Sequence[bytes], *, same: bool,
) -> withdrawal.Plan:  # fmt: skip
    """Add folders and keys that were not named when a withdrawal of the same people was begun."""
    held = [Path(one) for one in begun.folders]
    new = [one for one in places if not any(one.is_relative_to(folder) for folder in held)]
    if not same or not (new or published):
        return begun
    more = withdrawal.plan_of(
        [*held, *new], at, key_of(at, key), begun.kind,  # type: ignore[arg-type]
        begun.named.get(begun.kind, ()), begun.scopes,  # type: ignore[arg-type]
        whole="evaluation" in begun.scopes, published=published,
    )  # fmt: skip
    return begun.with_more(more)
