"""One sample for each plugin here that reads an input; ``isolux.samples`` names this module."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.tables import BOX_PREDICTIONS
from tests.contracts import _runs
from tests.contracts._samples import AnalysisSample, N, TaskSample, in_pictures

BOX = {"box_x": 4.0, "box_y": 5.0, "box_w": 20.0, "box_h": 30.0}


def lanterns(folder: Path) -> Path:
    """Twelve walkers, two pictures each; every third in dim light, one lantern broken."""
    path = folder / "walk.lanterns"
    rows = [
        f"p{i:02} i{i:02} w{i // 2:02} {'dim' if i % 3 == 0 else 'bright'} {i % 5 * 10}"
        for i in range(N)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def broken(folder: Path) -> tuple[Dataset, Path]:
    """The same walk, loaded; no picture is needed."""
    from elsewhere.lanterns import load

    return load(lanterns(folder)), folder


def dots(folder: Path) -> Path:
    """A box in each picture."""
    path = folder / "net.dots"
    rows = [f"i{i:02} 4 5 20 30 0.{i + 1}" for i in range(N)]
    path.write_text("\n".join(["dots 1", *rows]) + "\n")
    return path


def limit(folder: Path) -> str:
    """Write a limit of 60."""
    path = folder / "limit.txt"
    path.write_text("60")
    return str(path)


def presence() -> TaskSample:
    """The samples' people, of whom one has no known light; boxes in two pictures of three."""
    whole = in_pictures()
    people = whole.instances["instance_id"]
    light = pl.DataFrame({"unit_id": people[:-1], "value": "dim"})
    said = light.with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit("light"))
    attributes = pl.concat([whole.attributes, said], how="diagonal")
    pictures = whole.instances["image_id"].unique(maintain_order=True)
    boxes = pl.DataFrame({"image_id": pictures.gather_every(3), "score": 0.9, **BOX})
    found = boxes.with_columns(model=pl.lit("net"), label=None)
    return TaskSample(
        Dataset(whole.name, whole.info, whole.instances, attributes), BOX_PREDICTIONS.conform(found)
    )


TASKS = {"presence": presence}
DATASETS = {"lanterns": lanterns}
OUTPUTS = {"dots": (BOX_PREDICTIONS, dots)}
ANALYSES = {"dimmest": AnalysisSample(_runs.labels, ("light", "dim has the lowest"))}
MODELS = {"brightest": limit}
CHECKS = {"watts": broken}
