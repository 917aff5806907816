"""The receipt of a withdrawal: what was taken out where, with hashes, signed; it names no one.

Paths are without the person's names, hashes of what was theirs are under the project's key: who
holds a copy of a photo cannot find it here, and the project can. Its ``marks`` are the keyed hashes
of every name, by which a backup that was restored is known (``--replay``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isolux.curation._chain import digest_of, is_signed, mark_of, read_key, signature_of
from isolux.curation.consent import key_path
from isolux.curation.withdrawal.progress import Artefact, Plan
from isolux.io.atomic import write_text
from isolux.vocabulary.errors import FileError, TableError

__all__ = [
    "check_receipt", "folder_of", "next_number", "read_receipt", "receipts_of", "write_receipt",
]  # fmt: skip

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


def next_number(ledger: Path) -> int:
    """Give the number of the next receipt."""
    held = receipts_of(ledger)
    return int(held[-1].stem) + 1 if held else 1


def write_receipt(
    ledger: Path,
    key: bytes,
    plan: Plan,
    artefacts: Sequence[Artefact],
    *,
    at: str,
    head: str,
    made_by: str,
    searched: Mapping[str, Any],
    replaced: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """Write the receipt of a finished withdrawal, and return its path."""
    number = next_number(ledger)
    before = receipts_of(ledger)
    fields = {
        "format": FORMAT, "number": number, "begun": plan.at, "ended": at, "made_by": made_by,
        "kind": plan.kind, "scopes": list(plan.scopes), "people": list(plan.marks),
        "ledger_head": head, "previous": _sum_of(before[-1]) if before else None,
        "artefacts": [
            {name: getattr(one, name) for name in Artefact.__slots__} for one in artefacts
        ],
        "replaced": [dict(one) for one in replaced], "searched": dict(searched),
        "marks": sorted(_marks(plan, key)),
    }  # fmt: skip
    digest = digest_of(fields)
    whole = fields | {"hash": digest, "signature": signature_of(digest, key)}
    path = folder_of(ledger) / f"{number:04d}.json"
    path.parent.mkdir(exist_ok=True)
    return write_text(path, json.dumps(whole, ensure_ascii=False, indent=1) + "\n")


def _sum_of(path: Path) -> str:
    return str(json.loads(path.read_text(encoding="utf-8"))["hash"])


def _marks(plan: Plan, key: bytes) -> set[str]:
    named = {mark_of(kind, one, key) for kind, names in plan.named.items() for one in names}
    return named | {mark_of("picture", one, key) for one in plan.pictures}


def read_receipt(path: str | Path) -> dict[str, Any]:
    """Read a receipt as it is."""
    try:
        found = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(
            "this receipt cannot be read", expected="a receipt of `isolux withdraw`",
            found=getattr(error, "strerror", None) or "no JSON", where=str(path),
        ) from error  # fmt: skip
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileError(
            "this is not the receipt of a withdrawal", expected=f"the format {FORMAT!r}",
            found=repr(found.get("format"))[:60] if isinstance(found, dict) else "no object",
            where=str(path),
        )  # fmt: skip
    return found


def check_receipt(
    path: str | Path, *, ledger: Path, key: str | Path | None = None
) -> dict[str, Any]:
    """Read a receipt, and see that it is as it was signed."""
    found = read_receipt(path)
    at = key_path(ledger, key)
    if not at.exists():
        raise FileError(
            "the key that signed this receipt is not there", expected=str(at), where=str(path),
            hint="name it with --key, or the ledger with --ledger",
        )  # fmt: skip
    fields = {k: v for k, v in found.items() if k not in ("hash", "signature")}
    digest = digest_of(fields)
    if digest != found.get("hash"):
        raise TableError(
            "this receipt was changed after it was written", expected="what was hashed",
            found=f"another content than {str(found.get('hash'))[:12]}…", where=str(path),
        )  # fmt: skip
    signature = str(found.get("signature"))
    if not signature.isascii() or not is_signed(digest, signature, read_key(at)):
        raise TableError(
            "this receipt's signature does not verify", expected="a signature under the project's"
            " key", found=signature[:12] + "…", where=str(path),
            hint="it was written with another key; which is the project's?",
        )  # fmt: skip
    return found
