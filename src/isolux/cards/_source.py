"""What a kind of card is filled from: a finished run, its summary, and who says that it is whole.

The summary is the report's own document, so a card and the report never disagree about a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from isolux.cards._document import Card, Part
from isolux.cards._facts import Facts
from isolux.report.document import Summary
from isolux.report.summary import summarise
from isolux.report.summary.cautions import synthetic
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import CardInfo

__all__ = ["Source", "card_of", "source_of", "without_folders"]

_FOLDERS = re.compile(r"(?<![\w:/.~\\])(?:~|[A-Za-z]:(?=[\\/]))?(?:[\\/][^\s\\/:;,'\"<>|]+){2,}")
_HASH = 12
_FURTHER = 2
"""Sentences after the first one."""


@dataclass(frozen=True, slots=True)
class Source:
    """A run, its summary, the name of its folder, and the SHA-256 of its record; empty: none."""

    run: Run
    summary: Summary
    name: str = ""
    sha256: str = ""


def source_of(run: Run, name: str = "", sha256: str = "") -> Source:
    """Summarise a run for its cards."""
    return Source(run, summarise(run), PurePath(name).name, sha256)


def without_folders(text: str) -> str:
    """Leave the last part of absolute paths: a card tells nothing of a machine.

    Examples
    --------
    >>> without_folders("read /data/people/a.csv, n/a, https://a.org/b/c")
    'read a.csv, n/a, https://a.org/b/c'
    """
    return _FOLDERS.sub(lambda found: re.split(r"[\\/]", found.group())[-1], text)


def card_of(
    info: CardInfo,
    kind: str,
    source: Source,
    facts: Facts,
    parts: Sequence[Part],
    *,
    metadata: str = "",
    data: dict[str, object] | None = None,
    data_set: str = "",
) -> Card:
    """Put a card together: what every kind says before and after its own parts."""
    summary, task = source.summary, str(source.run.record.get("task") or "")
    if info.tasks and task not in info.tasks:
        raise SpecError(
            f"a card of kind {kind.replace('_', '-')} cannot be filled from this run",
            expected=f"a run of the task {' or '.join(info.tasks)}",
            found=task or "a run without a task",
        )
    cautions = [f"{one.headline} {one.text}" for one in summary.cautions
                if not data_set or one == synthetic(source.run.record)]  # fmt: skip
    said = () if data_set else (summary.accounting, summary.answer, *summary.further[:_FURTHER])
    return Card(
        kind,
        f"{info.title}: {data_set or without_folders(summary.title.removeprefix('Audit of '))}",
        info.statement,
        without_folders(" ".join(filter(None, said))),
        tuple(without_folders(text) for text in (*summary.warnings, *cautions)),
        tuple(parts),
        tuple((" ".join(filter(None, (one.citation, one.place))), one.url)
              for one in info.references),
        _provenance(source, facts),
        metadata,
        data,
        summary,
    )  # fmt: skip


def _provenance(source: Source, facts: Facts) -> tuple[str, ...]:
    audited, inputs = source.summary.audited, source.summary.inputs
    known = source.sha256 and not audited.publish_min  # a hash tells who has a copy that it is one
    run = f"Run {source.name}" if known else "A run"
    told = [f"{run}, made by isolux {audited.version or '(version not recorded)'}"
            + (f" at {audited.created}" if audited.created else "")
            + (f", seed {audited.seed}" if audited.seed is not None else "")
            + (f"; SHA-256 of audit.json begins {source.sha256[:_HASH]}" if known else "")
            + ("; no table was changed since it was written." if source.sha256 else
               "; it is in memory, so no hash shows that it is as it was made.")]  # fmt: skip
    told += [f"Input {PurePath(one.path).name}: SHA-256 begins {one.sha256[:_HASH]}."
             for one in inputs[:_HASH]]  # fmt: skip
    if len(inputs) > _HASH:
        told.append(f"{len(inputs) - _HASH:,} more input files are named in audit.json.")
    if facts.origin:
        told.append(f"Facts {facts.origin}: SHA-256 begins {facts.sha256[:_HASH]}.")
    if audited.publish_min:
        told.append("Made to be published: anything that reveals fewer than "
                    f"{audited.publish_min} people is left out.")  # fmt: skip
    return tuple(told)
