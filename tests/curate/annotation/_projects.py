"""Projects whose photos are ready to be annotated, and answers to give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from isolux_curate.annotation.sheets import import_and_apply_sheet_answers
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.project.folder import Project, create_or_open_project, open_project
from tests.curate.intake._photos import photo, write

CLASSES = ["guitarist", "nurse"]


def annotated_project(folder: Path, photos: int, database: str = "sqlite") -> Project:
    """Make a project of photos of 400 × 300 pixels, each of a subject of its own."""
    write(folder / "in", {f"{k}.jpg": photo((400, 300), shade=k % 200) for k in range(photos)})
    rows = "".join(f"{k}.jpg,s{k}\n" for k in range(photos))
    (folder / "photos.csv").write_text("file,subject_id\n" + rows)
    made = create_or_open_project(folder / "p", database=database, curator="ada")
    path = made.folder / "project.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"classes": CLASSES}))
    project = open_project(made.folder, curator="ada")
    ingest_sheet_photos(project, folder / "photos.csv", photo_folder=folder / "in")
    return project


def box(label: str, x: float, y: float, w: float, h: float, second: str | None = None) -> list[Any]:
    """Draw a box, in per cent of the picture, as Label Studio's page writes it."""
    name = f"r-{x}-{y}-{w}"
    sides = {"x": x, "y": y, "width": w, "height": h, "rotation": 0}
    head = {"id": name, "to_name": "image", "original_width": 400, "original_height": 300,
            "image_rotation": 0}  # fmt: skip
    rows = [head | {"type": "rectanglelabels", "from_name": "primary",
                    "value": sides | {"rectanglelabels": [label]}}]  # fmt: skip
    if second is not None:
        rows.append(head | {"type": "choices", "from_name": "secondary",
                            "value": sides | {"choices": [second]}})  # fmt: skip
    return rows


def chosen(**given: list[str]) -> list[Any]:
    """Answer questions; names are spelt as Python can (``tone``, ``tight``, ``right``)."""
    spelt = {"tone": "perceived skin tone", "tight": "is the box tight?",
             "right": "is the class right?", "people": "people"}  # fmt: skip
    return [
        {"id": f"c-{k}", "type": "choices", "from_name": spelt[name], "to_name": "image",
         "value": {"choices": answers}}
        for k, (name, answers) in enumerate(given.items())
    ]  # fmt: skip


def tone(*values: str, tight: str = "yes", right: str = "yes") -> list[Any]:
    return chosen(tone=list(values), tight=[tight], right=[right])


def brought(project: Project, stage: str, file: Path, **who: str) -> tuple[int, int, int]:
    """Bring in a file; how many answers are new, how many do not count, photos sent back."""
    done = import_and_apply_sheet_answers(project, stage, file, **who)
    return done.n_new, done.n_refused, done.n_sent_back
