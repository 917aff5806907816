"""A dataset of another package: people who walk by a lantern, one to a picture.

A line of text a person: who, which picture, whose picture, the light, the lantern's watts.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES

INFO = DatasetInfo(
    title="Lanterns",
    summary="People who walk by a lantern.",
    references=(Reference(key="lanterns", citation="Made for a test of isolux."),),
    label_source="declared by the user",
    licence="CC0-1.0",
)

_COLUMNS = ("person", "picture", "walker", "light", "watts")


def load(root: str | Path) -> Dataset:
    r"""Load people from a file of lines such as ``p1 i1 w1 dim 40``.

    Parameters
    ----------
    root : str or Path
        The file; UTF-8, five words a line.

    Returns
    -------
    Dataset
        Attributes ``light`` and ``watts``; clusters are the walkers.

    Raises
    ------
    FileError
        No such file; a line that has not five words or names a person twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "walk.lanterns"
    ...     _ = file.write_text("p1 i1 w1 dim 40\n")
    ...     load(file).attributes["value"].to_list()
    ['dim', '40']
    """
    path = Path(root).expanduser()
    try:
        data = path.read_bytes() if path.is_file() else None
        lines = data.decode().splitlines() if data is not None else []
    except (OSError, ValueError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    if data is None:
        raise FileError("there is no such file", where=str(path))
    rows = [line.split() for line in lines if line.strip()]
    ids = [row[0] for row in rows if row]
    if not rows or any(len(row) != len(_COLUMNS) for row in rows) or len(set(ids)) < len(ids):
        raise FileError(
            "these are no lanterns",
            expected="lines of " + " ".join(_COLUMNS) + ", each person once",
            where=str(path),
        )
    table = pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    number = pl.when(pl.col("name") == "watts").then(pl.col("value")).cast(pl.Float64, strict=False)
    said = table.unpivot(["light", "watts"], index="person", variable_name="name")
    return Dataset(
        name="lanterns",
        info=INFO,
        instances=INSTANCES.conform(
            table.select(instance_id="person", image_id="picture", cluster_id="walker")
        ),
        attributes=ATTRIBUTES.conform(
            said.select(
                unit_kind=pl.lit("instance"), unit_id="person", attribute="name", value="value",
                number=number,
            )
        ),
        images=IMAGES.conform(table.select(image_id="picture").unique(maintain_order=True)),
        inputs={str(path): hashlib.sha256(data).hexdigest()},
    )  # fmt: skip
