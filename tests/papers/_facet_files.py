"""A made-up dataset in FACET's format, a model's answers to it, and what they come to by hand.

Everybody's box is 20 × 50 pixels; a model's box on them is as wide and lower, so that the overlap
is its height over 50: 1, .82, .62 or .42. That is found at 10, 7, 3 or 0 of the ten overlaps.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

HEIGHTS = {50: (1.0, 1.0, 1.0), 41: (0.7, 1.0, 1.0), 31: (0.3, 1.0, 0.0), 21: (0.0, 0.0, 0.0)}
"""Height of a model's box: share of the ten overlaps, found at .50, found at .75."""

CLASSES = ("guard", "guitarist", "nurse", "singer")
GENDERS = ("masc", "fem", "non_binary", "na")
AGES = ("young", "middle", "older", "na")
HAIR = ("coily", "dreadlocks", "bald", "straight", "curly", "wavy", "na")
SIDE = 60


@dataclass
class Person:
    """Somebody, and what the model made of them."""

    person_id: str
    image: str
    at: int
    classes: tuple[str, ...]
    gender: str
    age: str
    tones: tuple[int, ...]
    hair: str
    has_mask: bool
    said: str
    height: int
    of_class: dict[str, int] = field(default_factory=dict)

    @property
    def x(self) -> int:
        """Left edge of their box; two in one image do not touch."""
        return 5 + 30 * self.at


def crowd(images: int = 1600, seed: int = 3) -> list[Person]:
    """Draw people: one or two an image, one or two classes each."""
    rng = np.random.default_rng(seed)
    people = []
    for i in range(images):
        for at in range(2 if rng.random() < 0.2 else 1):
            classes = tuple(
                str(c) for c in rng.choice(CLASSES, 2 if rng.random() < 0.15 else 1, replace=False)
            )
            tone = int(rng.integers(1, 11))
            people.append(
                Person(
                    person_id=str(len(people) + 1),
                    image=f"sa_{i}.jpg",
                    at=at,
                    classes=classes,
                    gender=str(rng.choice(GENDERS, p=(0.5, 0.38, 0.07, 0.05))),
                    age=str(rng.choice(AGES)),
                    tones=(tone, tone + 1) if tone < 10 else (9, 10),
                    hair=str(rng.choice(HAIR)),
                    has_mask=bool(rng.random() < 0.5),
                    said=str(rng.choice(CLASSES)) if rng.random() < 0.5 else classes[0],
                    height=int(rng.choice(list(HEIGHTS), p=(0.4, 0.3, 0.2, 0.1))),
                    of_class={c: int(rng.choice(list(HEIGHTS))) for c in classes},
                )
            )
    return people


def write_dataset(folder: Path, people: Iterable[Person]) -> Path:
    """Write ``annotations.csv`` and ``coco_masks.json`` as FACET has them."""
    (folder / "annotations").mkdir(parents=True)
    rows = [_row(person) for person in people]
    with (folder / "annotations" / "annotations.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    images = {image: n for n, image in enumerate(dict.fromkeys(p.image for p in people), 1)}
    masks = {
        "images": [
            {"id": n, "file_name": image, "width": SIDE, "height": SIDE}
            for image, n in images.items()
        ],
        "annotations": [
            {
                "id": int(p.person_id),
                "image_id": images[p.image],
                "category_id": 1,
                "person_id": int(p.person_id),
                "bbox": [p.x, 5, 20, 50],
                "segmentation": {"size": [SIDE, SIDE], "counts": runs(p.x, 50)},
            }
            for p in people
            if p.has_mask
        ],
        "categories": [{"id": 1, "name": "person"}],
    }
    (folder / "annotations" / "coco_masks.json").write_text(json.dumps(masks))
    return folder


def _row(person: Person) -> dict[str, object]:
    row: dict[str, object] = {
        "person_id": person.person_id,
        "filename": person.image,
        "class1": person.classes[0],
        "class2": person.classes[1] if len(person.classes) > 1 else "",
        "bounding_box": json.dumps({"x": person.x, "y": 5, "width": 20, "height": 50}),
    }
    row |= {f"gender_presentation_{g}": int(g == person.gender) for g in GENDERS}
    row |= {f"skin_tone_{t}": 2 * (t in person.tones) for t in range(1, 11)} | {"skin_tone_na": 0}
    row |= {f"age_presentation_{a}": int(a == person.age) for a in AGES}
    return row | {f"hairtype_{h}": int(h == person.hair) for h in HAIR}


def runs(x: int, height: int) -> list[int]:
    """Run lengths, column by column, of a rectangle 20 wide that starts at (x, 5)."""
    gap = SIDE - height
    counts = [x * SIDE + 5, *([height, gap] * 20)]
    return [*counts[:-1], counts[-1] + SIDE * (SIDE - x - 20) - 5]


def write_labels(path: Path, people: Iterable[Person]) -> Path:
    """Write which class the model gave whom."""
    said = [(p.person_id, p.said) for p in people]
    pl.DataFrame(said, schema=["person_id", "label"], orient="row").write_csv(path)
    return path


def write_results(path: Path, people: Iterable[Person], *, masks: bool) -> Path:
    """Write COCO results of people (category 1) and of something else (category 3)."""
    rows = []
    for n, p in enumerate(people):
        row = {"image_id": p.image, "category_id": 1, "score": 0.9 - n / 10**5}
        if masks:
            row["segmentation"] = {"size": [SIDE, SIDE], "counts": runs(p.x, p.height)}
        else:
            row["bbox"] = [p.x, 5, 20, p.height]
        rows += [row, {**row, "category_id": 3, "score": 0.99}]
    path.write_text(json.dumps(rows))
    return path


def write_boxes_of_classes(path: Path, people: Iterable[Person]) -> Path:
    """Write a labelled box for each person and class, of its own height."""
    rows = [
        (p.image, f"a person who is a {c}", p.x, 5, 20, height, 0.9 - 0.01 * p.at)
        for p in people
        for c, height in p.of_class.items()
    ]
    names = ["image_id", "label", "box_x", "box_y", "box_w", "box_h", "score"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(path)
    return path


def recalls(
    people: Iterable[Person],
    who: Callable[[Person], bool],
    height: Callable[[Person], int] = lambda p: p.height,
) -> list[float] | None:
    """MAR, AR.50 and AR.75 of some people by hand, in points; None if there are none."""
    found = [HEIGHTS[height(p)] for p in people if who(p)]
    if not found:
        return None
    return [100 * sum(values) / len(found) for values in zip(*found, strict=True)]
