"""A painted park, by day in well-off homes and by night in poor ones, in the files of datasets.

What is injected hangs on light alone. Nine of ten people of poor homes are perceived as masculine,
one of ten of the others: so whatever a model says of dark photos goes with perceived gender and
with income, and with nothing else. Age and skin tone are drawn apart from both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from isolux_worlds import PhotoWorld, WorldSettings, draw_people
from isolux_worlds.drawing import measure_visible_people, render_photos
from isolux_worlds.layouts import LAYOUTS, PaintedPicture

SIDE = 64
DARK = 0.33
"""Mean brightness, 0 to 1: every photo by night is below it, every photo by day above."""

_ALIKE = {"masculine": 0.1, "feminine": 0.9}
_SETTINGS = {
    "name": "park", "about": "Photos of a park by day or by night.",
    "subjects": [1, 1], "photos": [2, 2], "people": [1, 1],
    "image": {"width": SIDE, "height": SIDE},
    "attributes": {
        "income_group": {"shares": {"low": 0.5, "middle": 0.25, "high": 0.25}},
        "region": {"shares": {"af": 0.5, "as": 0.5, "am": 0.0, "eu": 0.0}},
        "perceived_gender_presentation": {
            "shares": {**_ALIKE, "non_binary": 0.0},
            "given": [{"where": {"income_group": ["low"]},
                       "shares": {"masculine": 0.9, "feminine": 0.1, "non_binary": 0.0}}],
        },
        "time_of_day": {
            "shares": {"daytime": 1.0, "night": 0.0, "dawn_dusk": 0.0},
            "given": [{"where": {"income_group": ["low"]}, "shares": {"night": 1.0}}],
        },
        "age_group": {}, "skin_tone": {},
        "weather": {"shares": {"clear": 1.0}}, "lighting": {"shares": {"well_lit": 1.0}},
        "scene": {"shares": {"park": 1.0}}, "view": {"shares": {"full": 1.0}},
        "distance": {"shares": {"near": 1.0}}, "occlusion": {"shares": {"none": 1.0}},
    },
    "models": [{"name": "none", "base_rate": 0.5}], "by": ["age_group"],
}  # fmt: skip


@dataclass(frozen=True)
class Park:
    """The world as it was seen, and its pictures."""

    world: PhotoWorld
    pictures: tuple[PaintedPicture, ...]

    def write(self, layout: str, root: Path) -> Path:
        """Write it as that dataset's files."""
        LAYOUTS[layout].write(self.world, root, iter(self.pictures))
        return root

    def rows(self) -> Iterator[tuple[dict, np.ndarray]]:
        """Give each photo's person, and its pixels."""
        people = self.world.people.rows_by_key(
            "image_id", named=True, unique=True, include_key=True
        )
        for one in self.pictures:
            yield people[one.image_id], one.pixels


def park(households: int = 60, seed: int = 4, **shares: dict[str, float]) -> Park:
    """Paint the park, two photos of one person a household; ``shares`` of more attributes."""
    attributes = _SETTINGS["attributes"] | {name: {"shares": one} for name, one in shares.items()}
    told = {"households": households, "seed": seed, "attributes": attributes}
    world = draw_people(WorldSettings(**(_SETTINGS | told)))
    pictures = tuple(
        PaintedPicture(
            one.image_id, one.pixels, one.owner, one.part_labels, measure_visible_people(world, one)
        )
        for one in render_photos(world)
    )
    return Park(world, pictures)


def dark(pixels: np.ndarray) -> bool:
    """Tell whether a photo was taken by night."""
    return bool(pixels.mean() / 255 < DARK)


def write_conversations(park: Park, root: Path) -> Path:
    """Write the photos as Casual Conversations' frames, two videos a person."""
    people: dict[str, list] = {}
    for person, pixels in park.rows():
        people.setdefault(person["subject_id"], []).append((person, pixels))
    content = {}
    (root / "frames").mkdir(parents=True)
    for k, videos in enumerate(people.values()):
        person = videos[0][0]
        names = [f"{k:04}_{v:02}" for v in range(len(videos))]
        content[f"{k:04}"] = {
            "files": [f"CC/{k:04}/{name}.MP4" for name in names],
            "label": {
                "age": str(person["age"]), "gender": _GENDER[person[_PERCEIVED]],
                "skin-type": str(min(6, int(person["skin_tone"]) * 6 // 10 + 1)),
            },
        }  # fmt: skip
        for name, (_, pixels) in zip(names, videos, strict=True):
            Image.fromarray(pixels).save(root / "frames" / f"{name}_raw_frame00000001.png")
    (root / "CasualConversations.json").write_text(json.dumps(content))
    return root


_PERCEIVED = "perceived_gender_presentation"
_GENDER = {"masculine": "Male", "feminine": "Female"}


def write_miap(park: Park, root: Path, times: int = 3) -> Path:
    """Write the photos as MIAP's, larger: its crops leave out who has a side below 100 pixels."""
    (root / "pictures").mkdir(parents=True)
    rows = []
    for person, pixels in park.rows():
        name = person["image_id"]
        large = Image.fromarray(pixels).resize((SIDE * times, SIDE * times))
        large.save(root / "pictures" / f"{name}.jpg")
        x, y, w, h = (person[f"box_{k}"] / SIDE for k in "xywh")
        wide = min(x, 0.15)  # MIAP's boxes are of grown people: an arm's length is left on a side
        words = (f"Predominantly {person[_PERCEIVED].capitalize()}", _AGES[person["age_group"]])
        rows.append((name, x - wide, min(1.0, x + w + 0.2), y, min(1.0, y + h), *words))
    columns = ["ImageID", "XMin", "XMax", "YMin", "YMax", "GenderPresentation", "AgePresentation"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(
        root / "open_images_extended_miap_boxes_test.csv"
    )
    return root


_AGES = {"young": "Young", "middle": "Middle", "older": "Older"}


def write_faces(park: Park, root: Path) -> Path:
    """Write the photos as UTKFace's: age, gender and race are in the name."""
    root.mkdir(parents=True)
    for k, (person, pixels) in enumerate(park.rows()):
        gender = int(person[_PERCEIVED] == "feminine")
        name = f"{person['age']}_{gender}_{k % 4}_2017010912{k:05}.png"
        Image.fromarray(pixels).save(root / name)
    return root
