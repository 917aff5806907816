"""Datasets: one file each, with ``INFO`` and ``load(path, ...) -> Dataset``.

The first room of an audit: from files to the tables instances, attributes and images.
"""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import Any, cast

from isolux import registry
from isolux.containers import Dataset
from isolux.errors import SpecError

__all__ = ["load", "options"]


def load(name: str, path: str | Path, **settings: Any) -> Dataset:
    r"""Load a dataset by its name.

    Parameters
    ----------
    name : str
        One of ``isolux list datasets``, such as ``"table"`` or ``"fairface"``.
    path : str or Path
        The dataset's file or folder, as its loader says.
    **settings
        The loader's options (see ``options``). One that is None is left to the loader.

    Returns
    -------
    Dataset
        Tables instances, attributes and images; what the loader decided stands in ``notes``.

    Raises
    ------
    UnknownNameError
        When no dataset has that name.
    SpecError
        When the loader has no such option.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,race\n1,Black\n2,White\n")
    ...     load("table", file).instances["instance_id"].to_list()
    ['1', '2']
    """
    given = {key: value for key, value in settings.items() if value is not None}
    known = options(name)
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            raise SpecError(
                f"the dataset {name!r} has no option {key!r}",
                expected="one of " + ", ".join(known),
                hint=f"did you mean {near[0]!r}?" if near else None,
            )
    return cast("Dataset", registry.load("datasets", name).load(path, **given))


def options(name: str) -> tuple[str, ...]:
    """List the options that a dataset's loader takes beside its path.

    Examples
    --------
    >>> options("fairface")
    ('id', 'cluster', 'repair_ages')
    """
    parameters = list(inspect.signature(registry.load("datasets", name).load).parameters)
    return tuple(parameters[1:])
