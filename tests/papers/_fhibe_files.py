"""A made-up dataset in FHIBE's format, models' answers to it, and what they come to by hand.

Everybody's box is 20 × 50 pixels and their face's 12 × 20; a model's box is as wide and lower, so
that the overlap is its share of the height: 1, .82, .62 or .42, found at 10, 7, 3 or 0 of the ten
overlaps. A keypoint is off by .4 or .6 of the face's diagonal. Faces are pictures of 16 pixels.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.api.audit import run_audit
from tests.papers._protocol import audit_of

protocol = partial(audit_of, "fhibe")

SHARES = {1.0: 1.0, 0.82: 0.7, 0.62: 0.3, 0.42: 0.0}
"""Share of the height that a model's box has: share of the ten overlaps at which it finds."""
SIDE = 60
FACE_SIDE = 16
FACE = (12, 20)
DIAGONAL = 544**0.5

PRONOUNS = ("0. She/her/hers", "1. He/him/his", "2. They/them/their")
SKIN = (
    "0. [102, 78, 65]", "1. [136, 105, 81]", "2. [164, 131, 103]", "3. [175, 148, 120]",
    "4. [189, 163, 137]", "5. [198, 180, 157]",
)  # fmt: skip
TYPES = ("VI", "V", "IV", "III", "II", "I")
ANCESTRIES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("0. Africa", "2. Eastern Africa"): ("Eastern Africa",),
    ("0. Africa",): (
        "Northern Africa", "Eastern Africa", "Middle Africa", "Southern Africa", "Western Africa",
    ),
    ("11. Asia", "15. Southern Asia"): ("Southern Asia",),
    ("17. Europe", "18. Eastern Europe"): ("Eastern Europe",),
    ("6. Americas", "9. South America"): ("South America",),
    ("22. Oceania", "26. Polynesia"): ("Polynesia",),
}  # fmt: skip
"""What people answer, and the subregions that this counts in."""
REGION = {answer[0]: answer[0].split(". ")[1] for answer in ANCESTRIES}
AGES = {19: "[18,30)", 35: "[30,40)", 44: "[40,50)", 58: "[50,60)", 71: "[60,+]"}

# COCO's 17 keypoints with their number and name in FHIBE.
POINTS = {
    0: "Nose", 5: "Left eye", 2: "Right eye", 8: "Left ear", 7: "Right ear",
    12: "Left shoulder", 11: "Right shoulder", 14: "Left elbow", 13: "Right elbow",
    16: "Left wrist", 15: "Right wrist", 24: "Left hip", 23: "Right hip", 26: "Left knee",
    25: "Right knee", 28: "Left ankle", 27: "Right ankle",
}  # fmt: skip
OTHER_POINT = "32. Left foot index"
"""One of the sixteen that COCO does not have."""

_CONSTANT = {
    "hairstyle": "8. Up (Medium)", "natural_hair_type": "2. Wavy", "apparent_hair_type": "2. Wavy",
    "natural_hair_color": ["7. Red"], "apparent_hair_color": ["7. Red"],
    "facial_hairstyle": ["0. None"], "natural_facial_haircolor": ["0. None"],
    "apparent_facial_haircolor": ["0. None"], "natural_left_eye_color": ["5. Brown"],
    "apparent_left_eye_color": ["5. Brown"], "natural_right_eye_color": ["5. Brown"],
    "apparent_right_eye_color": ["5. Brown"], "facial_marks": ["0. None"],
    "head_pose": "0. Typical", "action_body_pose": "0. Standing",
    "action_subject_object_interaction": ["0. None"],
    "action_subject_subject_interaction": ["0. Not applicable"], "lighting": ["0. From above"],
    "weather": ["6. Clear"], "camera_position": "0. Typical", "camera_distance": "1. CD II",
    "user_hour_captured": "12:00-17:59", "nationality": ["105. Kenyan"],
    "location_country": "Kenya", "consent": True,
}  # fmt: skip


@dataclass
class Person:
    """Somebody in a photo, and what models made of them."""

    image: str
    subject: str
    at: int
    pronoun: str
    ancestry: tuple[str, ...]
    age: int
    skin: int
    natural: int
    scene: str
    share: float
    face_share: float
    right: dict[int, bool] = field(default_factory=dict)
    has_pose: bool = True
    lpips: float | None = None

    @property
    def key(self) -> str:
        """Their id as the loader gives it."""
        return f"{self.image}_{self.subject}"

    @property
    def x(self) -> int:
        """Left edge of their box; two in one photo do not touch."""
        return 5 + 30 * self.at

    @property
    def pck(self) -> float | None:
        """Share of the labelled keypoints within half a diagonal; None: none is labelled."""
        if not self.right:
            return None
        return fmean(self.right.values()) if self.has_pose else 0.0


def crowd(subjects: int = 150, seed: int = 5) -> list[Person]:
    """Draw people with two to five photos each; in some photos a second person stands.

    Eight people only say they/them, so that group is too small; nobody of them stands second.
    """
    rng = np.random.default_rng(seed)
    kinds = list(ANCESTRIES)
    who = [
        {
            "subject": f"s{i:03}",
            "pronoun": PRONOUNS[2] if i < 8 else PRONOUNS[int(rng.integers(2))],
            "ancestry": kinds[int(rng.integers(len(kinds)))],
            "age": int(rng.choice(list(AGES))),
            "skin": int(rng.integers(6)),
            "natural": int(rng.integers(6)),
        }
        for i in range(subjects)
    ]
    people: list[Person] = []
    for i, one in enumerate(who):
        for k in range(int(rng.integers(2, 6))):
            shown = [one]
            if i > 8 and rng.random() < 0.15:
                shown.append(who[i - 1])
            scene = "12. Indoor: Home or hotel" if rng.random() < 0.5 else "11. Indoor: Workplace"
            image = f"p{i:03}-{k}"
            people += [
                _drawn(rng, image, at, scene, what, alone=len(shown) == 1)
                for at, what in enumerate(shown)
            ]
    return people


def _drawn(rng, image: str, at: int, scene: str, who: dict, *, alone: bool) -> Person:
    rate = float(rng.choice((0.05, 0.5, 0.95)))
    # Of two people all keypoints are labelled, so that a bad pose is nearer to its own person.
    labelled = [k for k in POINTS if not alone or rng.random() < 0.6]
    if alone and rng.random() < 0.03:
        labelled = []
    return Person(
        image=image,
        at=at,
        scene=scene,
        share=float(rng.choice(list(SHARES), p=(0.4, 0.3, 0.2, 0.1))),
        face_share=float(rng.choice(list(SHARES))),
        right={k: bool(rng.random() < rate) for k in labelled},
        has_pose=bool(rng.random() < 0.95),
        lpips=round(float(rng.uniform(0.1, 0.7)), 3) if rng.random() < 0.97 else None,
        **who,
    )


def _rows(people: Iterable[Person]) -> list[dict[str, object]]:
    return [
        {
            "image_id": p.image, "subject_id": p.subject, "is_primary": p.at == 0,
            "filepath": f"data/raw/{p.image}.png", "json_path": f"data/raw/{p.image}.json",
            "image_height": SIDE, "image_width": SIDE, "scene": p.scene, "age": p.age,
            "ancestry": list(p.ancestry), "pronoun": [p.pronoun],
            "natural_skin_color": SKIN[p.natural], "apparent_skin_color": SKIN[p.skin], **_CONSTANT,
        }
        for p in people
    ]  # fmt: skip


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_release(root: Path, people: list[Person]) -> Path:
    """Write the CSV of whole photos: boxes, 33 keypoints, and a person made of two parts."""
    rows = _rows(people)
    for p, row in zip(people, rows, strict=True):
        points = {f"{k}. {POINTS[k]}": [*_point(p, k), 1] for k in sorted(p.right)}
        row["keypoints"] = points | {OTHER_POINT: [1.0, 1.0, 1]}
        row["person_bbox"] = [p.x, 5, 20, 50]
        row["face_bbox"] = [p.x, 5, *FACE]
        row["segments"] = [_part("6. Head hair", p.x, 5, 15), _part("25. Bag", p.x, 15, 55)]
    _write(root / "data/processed/fhibe_downsampled/fhibe_downsampled.csv", rows)
    return root


def _point(p: Person, k: int) -> tuple[float, float]:
    """Spread keypoints over the box, each of them elsewhere."""
    return p.x + 1.0 + k % 4 * 5, 6.0 + k * 1.6


def _part(name: str, x: int, top: int, bottom: int) -> dict[str, object]:
    corners = ((x, top), (x + 20, top), (x + 20, bottom), (x, bottom))
    return {"class_name": name, "num": 1, "polygon": [{"x": a, "y": b} for a, b in corners]}


def write_faces(root: Path, people: list[Person]) -> dict[str, np.ndarray]:
    """Write the CSV of aligned faces and a label picture each; return the pictures."""
    rng = np.random.default_rng(11)
    rows = _rows(people)
    pictures = {}
    for p, row in zip(people, rows, strict=True):
        name = f"data/processed/fhibe_face_crop_align/masks/CelebAMask-HQ_format/{p.key}"
        row |= {
            "image_id": p.key, "filepath": f"data/raw/faces/{p.key}.png",
            "image_height": FACE_SIDE, "image_width": FACE_SIDE,
            "multiple_subjects": int(sum(q.image == p.image for q in people) > 1),
            "CelebA": [f"{name}/skin.png", f"{name}/combined.png"],
        }  # fmt: skip
        # 1 skin, 2 nose, 10 mouth, 13 hair: what FHIBE annotates. Some faces show no mouth.
        picture = rng.choice([0, 1, 2, 13] if rng.random() < 0.2 else [0, 1, 2, 10, 13], (16, 16))
        pictures[p.key] = picture.astype(np.uint8)
        save(root / name / "combined.png", pictures[p.key])
    _write(root / "data/processed/fhibe_face_crop_align/fhibe_face_crop_align.csv", rows)
    return pictures


def save(path: Path, picture: np.ndarray) -> None:
    """Write a grey picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


def write_results(path: Path, people: Iterable[Person], kind: str) -> Path:
    """Write COCO results of ``boxes``, ``masks``, ``faces`` or ``poses``, a person each."""
    rows = []
    for n, p in enumerate(people):
        row: dict[str, object] = {"image_id": p.image, "category_id": 1, "score": 0.9 - n / 10**5}
        if kind == "boxes":
            row["bbox"] = [p.x, 5, 20, 50 * p.share]
        elif kind == "faces":
            row["bbox"] = [p.x, 5, FACE[0], FACE[1] * p.face_share]
        elif kind == "masks":
            row["segmentation"] = {"size": [SIDE, SIDE], "counts": _runs(p.x, round(50 * p.share))}
        elif not p.has_pose:
            continue
        else:
            row["keypoints"] = _pose(p)
        rows.append(row)
    path.write_text(json.dumps(rows))
    return path


def _pose(p: Person) -> list[float]:
    """Draw 17 keypoints, each right or wrong one off to the right."""
    numbers: list[float] = []
    for k in POINTS:
        x, y = _point(p, k)
        numbers += [x + DIAGONAL * (0.4 if p.right.get(k, True) else 0.6), y, 1.0]
    return numbers


def _runs(x: int, height: int) -> list[int]:
    """Run lengths, column by column, of a rectangle 20 wide that starts at (x, 5)."""
    gap = SIDE - height
    counts = [x * SIDE + 5, *([height, gap] * 20)]
    return [*counts[:-1], counts[-1] + SIDE * (SIDE - x - 20) - 5]


def write_values(path: Path, people: Iterable[Person]) -> Path:
    """Write LPIPS that another program measured, and PSNR of the same faces."""
    rows = [(p.key, p.lpips, 30 - 10 * p.lpips) for p in people if p.lpips is not None]
    pl.DataFrame(rows, schema=["instance_id", "lpips", "psnr"], orient="row").write_csv(path)
    return path


GROUPS: dict[str, Callable[[Person], tuple[str, ...]]] = {
    "pronoun": lambda p: (p.pronoun.split(". ")[1],),
    "age_group": lambda p: (AGES[p.age],),
    "ancestry_region": lambda p: (REGION[p.ancestry[0]],),
    "ancestry": lambda p: ANCESTRIES[p.ancestry],
    "natural_skin_color": lambda p: (TYPES[p.natural],),
    "apparent_skin_color": lambda p: (TYPES[p.skin],),
    "scene": lambda p: (p.scene.split(". ")[1],),
}
"""For each attribute that varies: in which groups somebody is."""


@dataclass(frozen=True)
class Row:
    """One group of a table, counted by hand."""

    n_scores: int
    n_subjects: int
    median: float | None
    mean: float | None


def by_hand(
    people: list[Person], attribute: str, value: Callable[[Person], float | None]
) -> dict[str, Row]:
    """Count scores and subjects; median and mean from ten subjects on."""
    place = GROUPS[attribute]
    found = {}
    for group in {g for p in people for g in place(p)}:
        own = [(p, v) for p in people if group in place(p) and (v := value(p)) is not None]
        subjects = len({p.subject for p, _ in own})
        values = [v for _, v in own]
        told = subjects >= 10
        found[group] = Row(
            len(own), subjects, median(values) if told else None, fmean(values) if told else None
        )
    return found


SMALL = {"replicates": 100, "model_name": "m"}
TERMS = {
    "pronoun": "Self-reported pronouns",
    "age_group": "Self-reported age",
    "ancestry_region": "Self-reported ancestry, by region",
    "ancestry": "Self-reported ancestry",
    "natural_skin_color": "Self-reported natural skin colour (Fitzpatrick type)",
    "apparent_skin_color": "Skin colour apparent in the photo (Fitzpatrick type)",
    "scene": "Scene",
    "lighting": "Lighting",
}
"""How captions start: in the dataset's terms, where it has one."""


def table_of(found, words):
    """Pick the table whose caption starts so."""
    tables = [table for caption, table in found.items() if caption.startswith(f"{words}: ")]
    assert len(tables) == 1, (words, list(found))
    return tables[0]


def audited(folder, name, file, **settings):
    spec = protocol(
        name, f"fhibe:{folder}", predictions=str(folder / file), **SMALL | settings
    )  # fmt: skip
    return run_audit(spec)


def compare(found, people, value, metric, title):
    """Hold each table of an attribute that varies against the count by hand."""
    assert all(title in caption for caption in found)
    for attribute in GROUPS:
        shown = table_of(found, TERMS[attribute]).filter(metric=metric)
        expected = by_hand(people, attribute, value)
        assert sorted(shown["group"]) == sorted(expected), attribute
        for row in shown.iter_rows(named=True):
            hand = expected[row["group"]]
            assert row["model"] == "m"
            assert (row["n_scores"], row["n_subjects"]) == (hand.n_scores, hand.n_subjects)
            for name in ("median", "mean"):
                wanted = getattr(hand, name)
                assert row[name] == (
                    wanted if wanted is None else pytest.approx(wanted, abs=1e-6)
                ), row
