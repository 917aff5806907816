"""What a withdrawal is to take out and has taken out, and the receipt when it is done.

The file of a withdrawal, by which a killed one goes on, lies beside the ledger, can be read by its
owner alone and names the person: it is gone when the work is done. Its first line is the plan, each
further line an artefact, written before the artefact is changed and with the hash of what it will
be: a change is in the receipt once, whenever the work was stopped.

The receipt names no one. Paths are without the person's names, hashes of what was theirs are under
the project's key: who holds a copy of a photo cannot find it here, and the project can. Its
``marks`` are the keyed hashes of every name, by which a backup that was restored is known
(``--replay``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from isolux.io.atomic import write_text
from isolux.io.consent import key_path
from isolux.io.consent.chain import digest_of, is_signed, mark_of, read_key, signature_of
from isolux.vocabulary.errors import FileError, OutputError, TableError
from isolux_curate.project.folder import now
from isolux_curate.withdrawal.terms import Terms, others_of

UNFINISHED = ".withdrawing"
"""How the file of an unfinished withdrawal ends, after the ledger's name."""

_VERSION = 1
_SUM = "sum_before"


def work_path(ledger: Path) -> Path:
    """Name the file of an unfinished withdrawal."""
    return Path(f"{ledger}{UNFINISHED}")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to go, of whom, where; and since when.

    Parameters
    ----------
    kind : str
    marks : tuple of str
        Of the people.
    scopes : tuple of str
    folders : tuple of str
    named : mapping of str to list of str
        Their names by kind.
    pictures : tuple of str
        SHA-256 of their photos.
    at : str
    looks : tuple of str
        Thumbnails of their pictures, to search for copies once they are deleted.
    number : str
        Drawn at random: rows of journals are known by it.
    server : tuple of mapping
        Tasks on servers: ``server, server_project, server_task, task_id``.
    replacing : mapping, optional
        The fields of ``Replacing``: rows that take places in a sample.
    """

    kind: str
    marks: tuple[str, ...]
    scopes: tuple[str, ...]
    folders: tuple[str, ...]
    named: Mapping[str, list[str]]
    pictures: tuple[str, ...]
    at: str
    number: str
    looks: tuple[str, ...] = ()
    server: tuple[Mapping[str, Any], ...] = ()
    replacing: Mapping[str, Any] | None = None

    def terms(self, others: Mapping[str, frozenset[str]]) -> Terms:
        """Give their names beside everyone else's."""
        named = {kind: frozenset(names) for kind, names in self.named.items()}
        return Terms(*others_of(named, others), frozenset(self.pictures))

    def with_more(self, other: Plan) -> Plan:
        """Add what another plan for the same people knows, and its folders."""
        named = {
            kind: sorted({*self.named.get(kind, ()), *other.named.get(kind, ())})
            for kind in sorted({*self.named, *other.named})
        }
        return replace(
            self,
            named=named,
            folders=_joined(self.folders, other.folders),
            pictures=_joined(self.pictures, other.pictures),
            looks=_joined(self.looks, other.looks),
            server=(*self.server, *(one for one in other.server if one not in self.server)),
        )


def _joined(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *second]))


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file that was changed, a table that lost rows, tasks that a server deleted."""

    where: str
    what: str
    done: str
    n: int
    before: str | None = None
    after: str | None = None


class Work:
    """The file of a withdrawal that goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def plan(self) -> Plan | None:
        """Read the plan; None: no withdrawal is unfinished."""
        lines = self._lines()
        if not lines:
            return None
        held = lines[0]
        held.pop("version", None)
        for name in ("marks", "scopes", "folders", "pictures", "looks", "server"):
            held[name] = tuple(held[name])
        return Plan(**held)

    def begin(self, plan: Plan) -> None:
        """Write the plan, whole or not at all; what was noted under an earlier one stays."""
        told = {"version": _VERSION, **asdict(plan)}
        noted = [json.dumps(line) + "\n" for line in self._lines()[1:]]
        descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600)
        os.close(descriptor)
        write_text(self.path, "".join([json.dumps(told, ensure_ascii=False) + "\n", *noted]))
        self.path.chmod(0o600)

    def note(self, one: Artefact, *, sum_before: str = "") -> None:
        """Write down a change before it is made; it is on the disk when this returns."""
        line = json.dumps(asdict(one) | {_SUM: sum_before}) + "\n"
        with self.path.open("ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())

    def artefacts(self) -> list[Artefact]:
        """List the changes, each place once: of one that was begun twice the last counts."""
        found: dict[tuple[str, str], Artefact] = {}
        for line in self._lines()[1:]:
            one = Artefact(**{k: v for k, v in line.items() if k != _SUM})
            held = found.get((one.where, one.what))
            if held is not None and one.before == held.after and held.done != "deleted":
                one = Artefact(
                    one.where, one.what, one.done, held.n + one.n, held.before, one.after
                )
            found[one.where, one.what] = one
        return list(found.values())

    def sums(self) -> dict[str, str]:
        """Tell of rewritten files the SHA-256 that they have in the place of the one they had."""
        return {
            line[_SUM]: line["after"]
            for line in self._lines()[1:]
            if line[_SUM] and line["after"] and line[_SUM] != line["after"]
        }

    def end(self) -> None:
        """Overwrite the file, and remove it: the receipt stands."""
        size = self.path.stat().st_size
        with self.path.open("r+b") as stream:
            stream.write(b"\0" * size)
            stream.flush()
            os.fsync(stream.fileno())
        self.path.unlink()

    def _lines(self) -> list[dict[str, Any]]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # its writer was killed in the middle of a line
            with self.path.open("r+b") as stream:
                stream.truncate(len(whole.encode()))
        return [json.loads(line) for line in whole.splitlines() if line.strip("\0")]


@contextmanager
def alone(ledger: Path) -> Iterator[None]:
    """Hold a ledger's withdrawals: one at a time."""
    import fcntl

    descriptor = os.open(ledger.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise OutputError(
            "another withdrawal from this ledger runs", where=str(ledger), hint="wait for its end"
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)


FORMAT = "isolux withdrawal 1"
_NAME = re.compile(r"(\d{4,})\.json")


def folder_of(ledger: Path) -> Path:
    """Name the folder of a ledger's receipts."""
    return ledger.parent / "withdrawals"


def receipts_of(ledger: Path) -> list[Path]:
    """List a ledger's receipts, oldest first."""
    folder = folder_of(ledger)
    held = sorted(folder.iterdir()) if folder.is_dir() else []
    return [one for one in held if _NAME.fullmatch(one.name)]


def write_receipt(
    ledger: Path,
    key: bytes,
    plan: Plan,
    artefacts: Sequence[Artefact],
    *,
    head: str,
    searched: Mapping[str, Any],
) -> Path:
    """Write the receipt of a finished withdrawal, and return its path."""
    before = receipts_of(ledger)
    number = int(before[-1].stem) + 1 if before else 1
    marks = {mark_of(kind, one, key) for kind, names in plan.named.items() for one in names}
    marks |= {mark_of("picture", one, key) for one in plan.pictures}
    fields = {
        "format": FORMAT,
        "number": number,
        "begun": plan.at,
        "ended": now(),
        "made_by": f"isolux {version('isolux')}",
        "kind": plan.kind,
        "scopes": list(plan.scopes),
        "people": list(plan.marks),
        "ledger_head": head,
        "previous": str(read_receipt(before[-1])["hash"]) if before else None,
        "artefacts": [asdict(one) for one in artefacts],
        "replaced": [dict(one) for one in (plan.replacing or {}).get("told", ())],
        "searched": dict(searched),
        "marks": sorted(marks),
    }
    digest = digest_of(fields)
    whole = fields | {"hash": digest, "signature": signature_of(digest, key)}
    path = folder_of(ledger) / f"{number:04d}.json"
    path.parent.mkdir(exist_ok=True)
    return write_text(path, json.dumps(whole, ensure_ascii=False, indent=1) + "\n")


def read_receipt(path: str | Path) -> dict[str, Any]:
    """Read a receipt as it is."""
    try:
        found = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            "this receipt cannot be read",
            expected="a receipt of `isolux withdraw`",
            found=getattr(error, "strerror", None) or "no JSON",
            where=str(path),
        ) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileError(
            "this is not the receipt of a withdrawal",
            expected=f"the format {FORMAT!r}",
            found=repr(found.get("format"))[:60] if isinstance(found, dict) else "no object",
            where=str(path),
        )
    return found


def check_receipt(
    path: str | Path, *, ledger: Path, key: str | Path | None = None
) -> dict[str, Any]:
    """Read a receipt, and see that it is as it was signed."""
    found = read_receipt(path)
    at = key_path(ledger, key)
    if not at.exists():
        raise FileError(
            "the key that signed this receipt is not there",
            expected=str(at),
            where=str(path),
            hint="name it with --key, or the ledger with --ledger",
        )
    fields = {k: v for k, v in found.items() if k not in ("hash", "signature")}
    digest = digest_of(fields)
    if digest != found.get("hash"):
        raise TableError(
            "this receipt was changed after it was written",
            expected="what was hashed",
            found=f"another content than {str(found.get('hash'))[:12]}…",
            where=str(path),
        )
    signature = str(found.get("signature"))
    if not signature.isascii() or not is_signed(digest, signature, read_key(at)):
        raise TableError(
            "this receipt's signature does not verify",
            expected="a signature under the project's key",
            found=signature[:12] + "…",
            where=str(path),
            hint="it was written with another key; which is the project's?",
        )
    return found
