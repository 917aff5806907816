"""The state of a withdrawal (its plan and finished changes), and the receipt at its end.

The state file, from which an interrupted withdrawal resumes, lies next to the ledger, is readable
by its owner only and names the person; it is deleted at the end. Its first line is the plan, each
further line an artefact, written before the file is changed and with the hash it will have: each
change is in the receipt once, even after an interruption.

The receipt names no one. Paths are masked, and hashes of the person's files are keyed: someone with
a copy of a photo cannot find it here, the project can. Its ``marks`` are the keyed hashes of every
name, by which people in a restored backup are recognised (``--replay``).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from isolux.core.errors import FileError, OutputError, TableError
from isolux.io.atomic import write_text
from isolux.io.consent import key_path
from isolux.io.consent.chain import (
    compute_keyed_hash,
    hash_fields,
    is_signed,
    read_key,
    sign_digest,
)
from isolux_curate.project.folder import format_utc_now
from isolux_curate.withdrawal.file_walk import FileLocation
from isolux_curate.withdrawal.terms import IdentifyingTerms, separate_own_and_other_names

UNFINISHED_SUFFIX = ".withdrawing"
"""The suffix of the state file, after the ledger's name."""

_VERSION = 1
_HASH_BEFORE_FIELD = "sum_before"


def build_state_path(ledger: Path) -> Path:
    """Return the path of a ledger's state file."""
    return Path(f"{ledger}{UNFINISHED_SUFFIX}")


@dataclass(frozen=True, slots=True)
class WithdrawalPlan:
    """The plan of a withdrawal; its fields are stored in the state file.

    Parameters
    ----------
    kind : str
    marks : tuple of str
        Keyed hashes of the people's ids.
    scopes : tuple of str
    folders : tuple of str
    named : mapping of str to list of str
        Their names by kind.
    pictures : tuple of str
        SHA-256 of their photos.
    at : str
    looks : tuple of str
        Thumbnails of their images, to search for copies once they are deleted.
    number : str
        A random number that journal rows of this withdrawal hold.
    server : tuple of mapping
        Tasks on servers: ``server, server_project, server_task, task_id``.
    replacing : mapping, optional
        The fields of the rows that replace the person's in a sample.
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

    def build_identifying_terms(
        self, other_names: Mapping[str, frozenset[str]]
    ) -> IdentifyingTerms:
        """Build the people's identifying terms, given everyone else's names."""
        names_by_kind = {id_kind: frozenset(names) for id_kind, names in self.named.items()}
        return IdentifyingTerms(
            *separate_own_and_other_names(names_by_kind, other_names), frozenset(self.pictures)
        )

    def merge_plan_for_same_people(self, other_plan: WithdrawalPlan) -> WithdrawalPlan:
        """Merge another plan for the same people: its names, images, tasks and folders."""
        names_by_kind = {
            id_kind: sorted({*self.named.get(id_kind, ()), *other_plan.named.get(id_kind, ())})
            for id_kind in sorted({*self.named, *other_plan.named})
        }
        return replace(
            self,
            named=names_by_kind,
            folders=_join_without_duplicates(self.folders, other_plan.folders),
            pictures=_join_without_duplicates(self.pictures, other_plan.pictures),
            looks=_join_without_duplicates(self.looks, other_plan.looks),
            server=(*self.server, *(task for task in other_plan.server if task not in self.server)),
        )


def _join_without_duplicates(
    entries: Sequence[str], more_entries: Sequence[str]
) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*entries, *more_entries]))


@dataclass(frozen=True, slots=True)
class Artefact:
    """A changed file, table or server; its fields are stored in state file and receipt."""

    where: str
    what: str
    done: str
    n: int
    before: str | None = None
    after: str | None = None


def format_location_below_root(location: FileLocation) -> str:
    """Format a file's location as artefacts show it: below the root folder's name."""
    return f"{location.root.name}/{location.name}"


def build_masked_artefact(
    location: FileLocation,
    old_bytes: bytes,
    new_bytes_or_none: bytes | None,
    n: int,
    terms: IdentifyingTerms,
    key: bytes,
) -> Artefact:
    """Build the artefact of a change: its path is masked, the old content's hash is keyed."""
    old_hash = hashlib.sha256(old_bytes).hexdigest()
    masked_path = terms.mask_names_in_path(format_location_below_root(location))
    if masked_path != format_location_below_root(location):  # masked paths may coincide
        masked_path = f"{masked_path} #{compute_keyed_hash('path', location.name, key)[:8]}"
    return Artefact(
        masked_path,
        "file",
        "deleted" if new_bytes_or_none is None else "rewritten",
        n,
        compute_keyed_hash("file", old_hash, key),
        None if new_bytes_or_none is None else hashlib.sha256(new_bytes_or_none).hexdigest(),
    )


class WithdrawalState:
    """The state file of an unfinished withdrawal."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_plan_or_none(self) -> WithdrawalPlan | None:
        """Read the plan; None: no withdrawal is unfinished."""
        lines = self._read_lines_truncating_incomplete()
        if not lines:
            return None
        fields = lines[0]
        fields.pop("version", None)
        for name in ("marks", "scopes", "folders", "pictures", "looks", "server"):
            fields[name] = tuple(fields[name])
        return WithdrawalPlan(**fields)

    def write_plan_atomically(self, plan: WithdrawalPlan) -> None:
        """Write the plan atomically; artefacts of an earlier plan are kept."""
        record = {"version": _VERSION, **asdict(plan)}
        artefact_lines = [
            json.dumps(line) + "\n" for line in self._read_lines_truncating_incomplete()[1:]
        ]
        descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600)
        os.close(descriptor)
        write_text(
            self.path, "".join([json.dumps(record, ensure_ascii=False) + "\n", *artefact_lines])
        )
        self.path.chmod(0o600)

    def append_artefact_to_disk(self, artefact: Artefact, *, hash_before: str = "") -> None:
        """Append a change before it is made; it is on the disk (fsync) when this returns."""
        line = json.dumps(asdict(artefact) | {_HASH_BEFORE_FIELD: hash_before}) + "\n"
        with self.path.open("ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())

    def read_merged_artefacts(self) -> list[Artefact]:
        """Read the changes, one for each location; of a repeated change the last counts."""
        artefacts_by_key: dict[tuple[str, str], Artefact] = {}
        for line in self._read_lines_truncating_incomplete()[1:]:
            artefact = Artefact(**{k: v for k, v in line.items() if k != _HASH_BEFORE_FIELD})
            earlier = artefacts_by_key.get((artefact.where, artefact.what))
            if (
                earlier is not None
                and artefact.before == earlier.after
                and earlier.done != "deleted"
            ):
                artefact = Artefact(
                    artefact.where,
                    artefact.what,
                    artefact.done,
                    earlier.n + artefact.n,
                    earlier.before,
                    artefact.after,
                )
            artefacts_by_key[artefact.where, artefact.what] = artefact
        return list(artefacts_by_key.values())

    def read_new_hash_by_old(self) -> dict[str, str]:
        """Read the SHA-256 of rewritten files, by their hash before."""
        return {
            line[_HASH_BEFORE_FIELD]: line["after"]
            for line in self._read_lines_truncating_incomplete()[1:]
            if line[_HASH_BEFORE_FIELD]
            and line["after"]
            and line[_HASH_BEFORE_FIELD] != line["after"]
        }

    def overwrite_and_delete(self) -> None:
        """Overwrite the file with zeros and delete it, once the receipt is written."""
        size = self.path.stat().st_size
        with self.path.open("r+b") as stream:
            stream.write(b"\0" * size)
            stream.flush()
            os.fsync(stream.fileno())
        self.path.unlink()

    def _read_lines_truncating_incomplete(self) -> list[dict[str, Any]]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        complete_text = text[: text.rfind("\n") + 1]
        if complete_text != text:  # truncate the line that a killed process left incomplete
            with self.path.open("r+b") as stream:
                stream.truncate(len(complete_text.encode()))
        return [json.loads(line) for line in complete_text.splitlines() if line.strip("\0")]


@contextmanager
def lock_ledger_or_refuse(ledger: Path) -> Iterator[None]:
    """Lock a ledger against other withdrawals."""
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


RECEIPT_FORMAT = "isolux withdrawal 1"
_RECEIPT_NAME = re.compile(r"(\d{4,})\.json")


def build_receipt_folder_path(ledger: Path) -> Path:
    """Return the folder of a ledger's receipts."""
    return ledger.parent / "withdrawals"


def list_receipt_paths(ledger: Path) -> list[Path]:
    """List a ledger's receipts, oldest first."""
    folder = build_receipt_folder_path(ledger)
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in paths if _RECEIPT_NAME.fullmatch(path.name)]


def write_signed_receipt(
    ledger: Path,
    key: bytes,
    plan: WithdrawalPlan,
    artefacts: Sequence[Artefact],
    *,
    ledger_head: str,
    search_counts: Mapping[str, Any],
) -> Path:
    """Write the receipt of a finished withdrawal, and return its path."""
    earlier_receipts = list_receipt_paths(ledger)
    number = int(earlier_receipts[-1].stem) + 1 if earlier_receipts else 1
    marks = {
        compute_keyed_hash(id_kind, name, key)
        for id_kind, names in plan.named.items()
        for name in names
    }
    marks |= {compute_keyed_hash("picture", photo_hash, key) for photo_hash in plan.pictures}
    fields = {
        "format": RECEIPT_FORMAT,
        "number": number,
        "begun": plan.at,
        "ended": format_utc_now(),
        "made_by": f"isolux {version('isolux')}",
        "kind": plan.kind,
        "scopes": list(plan.scopes),
        "people": list(plan.marks),
        "ledger_head": ledger_head,
        "previous": str(read_unverified_receipt(earlier_receipts[-1])["hash"])
        if earlier_receipts
        else None,
        "artefacts": [asdict(artefact) for artefact in artefacts],
        "replaced": [dict(replacement) for replacement in (plan.replacing or {}).get("told", ())],
        "searched": dict(search_counts),
        "marks": sorted(marks),
    }
    digest = hash_fields(fields)
    record = fields | {"hash": digest, "signature": sign_digest(digest, key)}
    path = build_receipt_folder_path(ledger) / f"{number:04d}.json"
    path.parent.mkdir(exist_ok=True)
    return write_text(path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def read_unverified_receipt(path: str | Path) -> dict[str, Any]:
    """Read a receipt without verifying it."""
    try:
        receipt = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            "this receipt cannot be read",
            expected="a receipt of `isolux withdraw`",
            found=getattr(error, "strerror", None) or "no JSON",
            where=str(path),
        ) from error
    if not isinstance(receipt, dict) or receipt.get("format") != RECEIPT_FORMAT:
        raise FileError(
            "this is not the receipt of a withdrawal",
            expected=f"the format {RECEIPT_FORMAT!r}",
            found=repr(receipt.get("format"))[:60] if isinstance(receipt, dict) else "no object",
            where=str(path),
        )
    return receipt


def read_and_verify_receipt(
    path: str | Path, *, ledger: Path, key: str | Path | None = None
) -> dict[str, Any]:
    """Read a receipt, and verify its hash and signature."""
    receipt = read_unverified_receipt(path)
    key_file = key_path(ledger, key)
    if not key_file.exists():
        raise FileError(
            "the key that signed this receipt is not there",
            expected=str(key_file),
            where=str(path),
            hint="name it with --key, or the ledger with --ledger",
        )
    fields = {k: v for k, v in receipt.items() if k not in ("hash", "signature")}
    digest = hash_fields(fields)
    if digest != receipt.get("hash"):
        raise TableError(
            "this receipt was changed after it was written",
            expected="what was hashed",
            found=f"another content than {str(receipt.get('hash'))[:12]}…",
            where=str(path),
        )
    signature = str(receipt.get("signature"))
    if not signature.isascii() or not is_signed(digest, signature, read_key(key_file)):
        raise TableError(
            "this receipt's signature does not verify",
            expected="a signature under the project's key",
            found=signature[:12] + "…",
            where=str(path),
            hint="it was written with another key; which is the project's?",
        )
    return receipt
