"""How each model was trained: paradigm, data and size, from a file of the user's.

Goyal et al. (2022) compare extractors by training paradigm, data and size (sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.vocabulary.errors import SpecError, UnknownNameError

_WORDS, _NUMBERS = ("paradigm", "data"), ("images", "parameters")
_KNOWN = (*_WORDS, *_NUMBERS)
_EXACT = 2.0**53
"""Above it a float is no exact whole number."""
_YAML = (".yaml", ".yml", ".json")


def read_descriptions(source: str | Path | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Read what is said of each model."""
    if isinstance(source, Mapping):
        said: Mapping[str, Any] = source
    elif str(source).lower().endswith(_YAML):
        refuse_unless_file(Path(source))
        refuse_repeated_keys(source)
        said = read_mapping(source)
    else:
        said = _of_table(read_table(source), str(source))
    where = "models" if isinstance(source, Mapping) else str(source)
    return {str(name): _checked(str(name), own, where) for name, own in said.items()}


def _of_table(table: pl.DataFrame, where: str) -> dict[str, dict[str, Any]]:
    if "model" not in table.columns:
        raise UnknownNameError("column", "model", table.columns, where=where)
    if table["model"].is_duplicated().any():
        twice = table["model"].filter(table["model"].is_duplicated())[0]
        raise SpecError("a model is described twice", expected="one row each", found=str(twice),
                        where=where)  # fmt: skip
    rows = table.to_dicts()
    return {str(row.pop("model")): {k: v for k, v in row.items() if v is not None} for row in rows}


def _checked(name: str, own: Any, where: str) -> dict[str, Any]:
    if not isinstance(own, Mapping):
        raise SpecError(
            f"the model {name!r} is not described",
            expected="lines such as `paradigm: supervised` below its name",
            found=repr(own), where=where,
        )  # fmt: skip
    found: dict[str, Any] = {}
    for key, value in own.items():
        if key not in _KNOWN:
            raise UnknownNameError("description", str(key), _KNOWN, where=f"{where}: {name}")
        found[str(key)] = _number(name, key, value, where) if key in _NUMBERS else str(value)
    return found


def _number(name: str, key: str, value: Any, where: str) -> float:
    """Read a size; YAML takes 1.3e9 for a text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or not isfinite(number) or number <= 0:
        raise SpecError(
            f"{key} of the model {name!r} is not a size", expected="a number above 0",
            found=repr(value), where=where,
        )  # fmt: skip
    return number


def described_models(
    said: Mapping[str, Mapping[str, Any]], values: pl.DataFrame, runs: Mapping[str, int]
) -> pl.DataFrame:
    """Put each model's training beside its first metric."""
    for name in said:
        if name not in runs:
            raise UnknownNameError("model among those compared", name, list(runs), where="models")
    first = values.row(0, named=True)
    main = values.filter(
        pl.col("metric") == first["metric"],
        pl.col("label").eq_missing(first["label"]),
        pl.col("threshold").eq_missing(first["threshold"]),
    )
    attributes = main["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    rows = [_row(name, said.get(name, {}), runs[name], main, attributes) for name in runs]
    kinds: dict[str, Any] = {
        "model": pl.String, **dict.fromkeys(_WORDS, pl.String),
        **dict.fromkeys(_NUMBERS, pl.Float64), "runs": pl.Int64, "metric": pl.String,
        "value": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    }  # fmt: skip
    for attribute in attributes:
        kinds |= {f"lowest: {attribute}": pl.Float64, f"highest: {attribute}": pl.Float64}
    made = pl.DataFrame(rows, schema=kinds)
    # A count is told as one: 1280000, not 1280000.0. Half an image is nobody's, but is kept.
    whole = [n for n in _NUMBERS if all(x % 1 == 0 and x < _EXACT for x in made[n].drop_nulls())]
    return made.with_columns(pl.col(whole).cast(pl.Int64))


def _row(
    name: str, said: Mapping[str, Any], runs: int, main: pl.DataFrame, attributes: Sequence[str]
) -> dict[str, Any]:
    own = main.filter(model=name)
    everyone = own.filter(pl.col("attribute").is_null())
    cell = everyone.row(0, named=True) if everyone.height else {}
    found = {
        "model": name, **{key: said.get(key) for key in _KNOWN}, "runs": runs,
        "metric": main["metric"][0], **{key: cell.get(key) for key in ("value", "low", "high")},
    }  # fmt: skip
    for attribute in attributes:
        of_groups = own.filter(pl.col("attribute") == attribute)["value"]
        found[f"lowest: {attribute}"] = of_groups.min()
        found[f"highest: {attribute}"] = of_groups.max()
    return found
