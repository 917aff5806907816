"""What ``describe`` and ``sample`` share: people to count, how they group, tables on a screen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from isolux.vocabulary.containers import Dataset
    from isolux.vocabulary.spec import AuditSpec

__all__ = ["groupings_over", "load_only", "renamed", "show_wide"]

_ROWS = 60


def load_only(spec: AuditSpec, only: list[str], captions: str | None = None) -> Dataset:
    """Load people, compute the attributes that ``--only`` asks for, and keep whom it names."""
    from isolux.derive import add
    from isolux.people.loading import load_people
    from isolux.people.only import keep_only, parse_conditions

    asked = [condition.attribute for condition in parse_conditions(only)]
    if captions is None:
        dataset = add(load_people(spec.people, spec.groups.attributes), asked)
    else:
        from isolux.derive import with_captions

        # What captions tell can be computed once they are there: attributes wait until then.
        plain = load_people(spec.people.model_copy(update={"derive": ()}))
        own = [*spec.groups.attributes, *spec.people.derive]
        computed = ["caption_country", "caption_region", *own, *asked]
        dataset = add(with_captions(plain, captions), computed)
    return keep_only(dataset, only, whole_images=False)


def renamed(datasets: dict[str, Dataset], written: list[str]) -> dict[str, Dataset]:
    """Rename attributes, ``OLD=NEW``, where a dataset has them: to stand side by side."""
    import polars as pl

    from isolux.vocabulary.errors import SpecError, UnknownNameError

    names = {name: set(d.attributes["attribute"].unique()) for name, d in datasets.items()}
    everywhere = sorted(set().union(*names.values()))
    for text in written:
        old, equals, new = (part.strip() for part in text.partition("="))
        if not (old and equals and new):
            raise SpecError("--rename cannot be read", expected="OLD=NEW", found=repr(text))
        if old not in everywhere:
            raise UnknownNameError("attribute", old, everywhere, where="--rename")
        for name, dataset in datasets.items():
            if old not in names[name]:
                continue
            if new in names[name]:
                raise SpecError(
                    f"--rename would make two attributes one: {new!r}",
                    expected="a name that the dataset does not use",
                    found=repr(text),
                    where=name,
                )
            changed = pl.col("attribute").replace({old: new})
            terms = tuple((new if key == old else key, term) for key, term in dataset.info.terms)
            datasets[name] = replace(
                dataset,
                attributes=dataset.attributes.with_columns(changed),
                info=replace(dataset.info, terms=terms),
            )
    return datasets


def groupings_over(spec: AuditSpec, datasets: dict[str, Dataset], by: list[str]) -> dict[str, Any]:
    """Read votes and bins over all datasets: an attribute that one of them lacks is no mistake."""
    import polars as pl

    from isolux.groups.settings import groupings

    tables = [dataset.instance_attributes() for dataset in datasets.values()]
    attributes = pl.concat(tables, how="diagonal_relaxed")
    named = by or attributes["attribute"].unique(maintain_order=True).to_list()
    # A value that one of several datasets lacks is no mistake either.
    absent = "note" if len(datasets) > 1 else spec.groups.absent_values
    asked = {"by": tuple(named), "absent_values": absent}
    return groupings(spec.groups.model_copy(update=asked), attributes)


def show_wide(caption: str, table: pl.DataFrame) -> None:
    """Print a table in as many blocks of columns as the screen needs, each with the row's name."""
    from rich.console import Console

    from isolux.cli.screen import show_table
    from isolux.report.wording import cell_text, decimals

    typer.echo(f"\n{caption}")
    head = table.head(_ROWS)
    cells = []
    for name in head.columns:
        values = head[name].to_list()
        places = 1 if "%" in name else decimals(values)
        cells.append([name, *(cell_text(value, places) for value in values)])
    named = [name in {"dataset", "attribute"} for name in head.columns]
    keys = min(len(head.columns), (named.index(False) if False in named else 0) + 1)
    for block in _blocks(cells, keys, Console().width):
        columns, *rows = (list(row) for row in zip(*block, strict=True))
        show_table("", columns, rows)
    if table.height > _ROWS:
        typer.echo(f"… and {table.height - _ROWS:,} more rows; --out writes all of them.")


def _blocks(cells: list[list[str]], keys: int, width: int) -> list[list[list[str]]]:
    """Part columns into blocks that fit the screen; the first ``keys`` stand in each of them."""
    wide = [max(len(cell) for cell in column) + 2 for column in cells]
    blocks, block, used = [], cells[:keys], sum(wide[:keys])
    for column, needs in zip(cells[keys:], wide[keys:], strict=True):
        if used + needs > width and len(block) > keys:
            blocks.append(block)
            block, used = cells[:keys], sum(wide[:keys])
        block, used = [*block, column], used + needs
    return [*blocks, block]
