"""A card of a finished audit: papers for a customer, a regulator, a committee.

    run directory → hashes → summary, with the user's facts → a kind's card → Markdown, HTML, JSON

What each kind follows and what it asks for: ``docs/how_to/cards.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from isolux.api._tables_from_memory import RunHolder, read_unchanged_run, run_or_none
from isolux.api.publish import publish
from isolux.cards import (
    Card,
    RunSource,
    build_facts_template_yaml,
    build_run_source,
    find_significantly_worse_groups,
    read_facts,
)
from isolux.core import registry
from isolux.core.containers import Run
from isolux.core.errors import RunError, SpecError, UnknownNameError
from isolux.core.info import CardInfo
from isolux.core.progress import report_step
from isolux.io.atomic import RUN_MARK
from isolux.io.hashing import sha256_file


def card(
    run: Run | RunHolder | str | Path,
    *,
    kind: str,
    facts: Mapping[str, Any] | str | Path | None = None,
    publish_min: int = 0,
) -> Card:
    """Fill a card from a finished audit; what neither the run nor the facts say is a named blank.

    Parameters
    ----------
    run : Audit, Run, str or Path
        A finished audit, or its directory.
    kind : str
        The kind of card: `isolux list cards`.
    facts : mapping, str or Path, optional
        A YAML file of what no audit can know, or what it holds; each fact is shown with its
        source.
    publish_min : int
        Hide groups of fewer people, and whatever would reveal them; 0: nothing is hidden.

    Returns
    -------
    Card
        ``.markdown()``, ``.html()``, ``.json()`` (None where the kind has no schema),
        ``.blanks``, ``.write(folder)``.

    Raises
    ------
    RunError
        The run was changed since it was written, is of an older version, or compares two models.
    SpecError, UnknownNameError, FileError
        No such kind or fact, or a package that the kind needs is not installed.

    Examples
    --------
    >>> import polars as pl, isolux
    >>> people = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                        "light": ["day", "night"] * 200, "value": [1.0] * 399 + [0.0]})
    >>> found = isolux.audit(people, by="light", replicates=100)
    >>> made = isolux.card(found, kind="bias_profile", facts={"facts": 1, "monitoring": "weekly"})
    >>> [one.key for one in made.blanks][:2]
    ['intended_use', 'context_of_use']
    """
    plugin = registry.load("cards", _resolve_card_name(kind))
    stated_facts = read_facts(facts)
    finished, name, sha256 = _load_finished_run(run)
    if publish_min:
        recorded_min = int(finished.record.get("publish_min") or 0)
        if recorded_min:
            raise SpecError(
                "the run is cut for publishing already",
                expected="the run without --publish-min, or the complete run that it was made from",
                found=f"groups of fewer than {recorded_min} are hidden; --publish-min"
                f" {publish_min}",
            )
        finished = publish(finished, publish_min)
    report_step("filling the card")
    return cast("Card", plugin.card(build_run_source(finished, name, sha256), stated_facts))


def build_facts_template(run: Run | RunHolder | str | Path, *, kind: str) -> str:
    """Build an empty facts file for one kind of card, as commented YAML."""
    name = _resolve_card_name(kind)
    source: RunSource = build_run_source(*_load_finished_run(run)[:2])
    alpha = source.summary.audited.alpha
    groups = [
        (section.attribute, row.group)
        for section in source.summary.sections
        for row in find_significantly_worse_groups(section, alpha)
    ]
    card_info = cast("CardInfo", registry.load_info("cards", name))
    return build_facts_template_yaml(name, card_info, groups if name == "bias_profile" else ())


def _resolve_card_name(typed_name: str) -> str:
    """Resolve the name of a card; ``-`` and ``_`` are the same."""
    name = typed_name.strip().lower().replace("-", "_")
    names = registry.names("cards")
    if name not in names:
        raise UnknownNameError(
            "kind of card", typed_name, [card_name.replace("_", "-") for card_name in names]
        )
    return name


def _load_finished_run(run: Any) -> tuple[Run, str, str]:
    """Take a run from memory, or read its directory if its hashes match."""
    source = str(run) if isinstance(run, str | Path) else None
    hint = "audit again: no card is made of numbers that were changed"
    finished = run_or_none(run) if source is None else read_unchanged_run(run, hint)
    if finished is None:
        raise RunError(
            "there is no run to make a card from",
            expected="an audit, a run or its directory",
            found=type(run).__name__,
        )
    if "model_a" in finished.disparities.columns:
        raise RunError(
            "the run compares two models, and a card is of one",
            expected="a run of `isolux audit`",
            found="a run of `isolux compare`",
            where=source,
            hint="make a card of each model's own run",
        )
    if source is None:
        return finished, "", ""
    return finished, Path(run).resolve().name, sha256_file(Path(run).expanduser() / RUN_MARK)
