"""A made-up BDD100K on disc: frames, places, districts, incomes, and what a detector found.

Poor districts are filmed at night three times in four, rich ones one time in four; a detector finds
nine in ten by day and one in two at night, and knows nothing of incomes. Weather, scene, occlusion
and size go with neither.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

CATEGORIES = ("pedestrian", "car")
INCOMES = {"poor": 30_000, "middle": 60_000, "rich": 120_000}
NIGHTS = {"poor": 0.75, "middle": 0.5, "rich": 0.25}
FOUND = {"daytime": 0.9, "night": 0.5}


def bdd_folder(root: Path, *, videos: int = 360, seed: int = 0) -> Path:
    """Write labels, places, outlines, incomes, and predictions in Scalabel's and COCO's form."""
    rng = np.random.default_rng(seed)
    frames, found, results = [], [], []
    info = root / "info"
    info.mkdir(parents=True)
    for v in range(videos):
        district = v % len(INCOMES)
        night = bool(rng.random() < list(NIGHTS.values())[district])
        name = f"{v:04}"
        place = {"longitude": 10.0 * district + 5 * rng.random(), "latitude": 5 * rng.random()}
        (info / f"{name}.json").write_text(json.dumps({"locations": [place]}))
        attributes = {
            "timeofday": "night" if night else "daytime",
            "weather": str(rng.choice(["clear", "rainy"])),
            "scene": str(rng.choice(["city street", "highway"])),
        }
        labels, seen = boxes_of(rng, attributes["timeofday"])
        image = f"{name}-1.jpg"
        frames.append(
            {"name": image, "videoName": name, "attributes": attributes, "labels": labels}
        )
        found.append({"name": image, "videoName": name, "labels": seen})
        results += [as_result(image, one) for one in seen]
    write = {
        "det_val.json": frames, "found.json": {"frames": found}, "results.json": results,
        "districts.json": outlines(), "categories.json": {
            "categories": [{"id": i, "name": c} for i, c in enumerate(CATEGORIES, start=1)],
            "images": [], "annotations": [],
        },
    }  # fmt: skip
    for file, content in write.items():
        (root / file).write_text(json.dumps(content))
    rows = [f"{name},{income}" for name, income in INCOMES.items()]
    (root / "incomes.csv").write_text("\n".join(["postalCode,median_income", *rows]) + "\n")
    return root


def boxes_of(rng: np.random.Generator, hour: str) -> tuple[list[dict], list[dict]]:
    """Three of each category in a frame, side by side; and what of them is found, and more."""
    labels, seen = [], []
    for k, category in enumerate(np.repeat(CATEGORIES, 3).tolist()):
        side = float(rng.choice([24, 60, 120]))
        box = {"x1": 10.0 + 200 * k, "y1": 100.0, "x2": 10.0 + 200 * k + side, "y2": 100.0 + side}
        marks = {"occluded": bool(rng.random() < 0.3), "truncated": False}
        labels.append({"id": str(k), "category": category, "box2d": box, "attributes": marks})
        if rng.random() < FOUND[hour]:
            score = 0.5 + 0.5 * rng.random()
            seen.append({"id": str(k), "category": category, "box2d": box, "score": score})
    for k in range(rng.poisson(0.5)):
        box = {"x1": 300.0 + 40 * k, "y1": 500.0, "x2": 330.0 + 40 * k, "y2": 540.0}
        category, score = str(rng.choice(CATEGORIES)), 0.6 * rng.random()
        seen.append({"id": f"w{k}", "category": category, "box2d": box, "score": score})
    return labels, seen


def as_result(image: str, label: dict) -> dict:
    """Turn a label into a row of COCO's results."""
    box = label["box2d"]
    return {
        "image_id": image, "category_id": CATEGORIES.index(label["category"]) + 1,
        "bbox": [box["x1"], box["y1"], box["x2"] - box["x1"], box["y2"] - box["y1"]],
        "score": label["score"],
    }  # fmt: skip


def outlines() -> dict:
    """Squares of five degrees, one a district."""
    features = []
    for i, name in enumerate(INCOMES):
        west = 10.0 * i
        corners = [[west, 0], [west + 5, 0], [west + 5, 5], [west, 5], [west, 0]]
        features.append({
            "type": "Feature", "properties": {"postalCode": name},
            "geometry": {"type": "Polygon", "coordinates": [corners]},
        })  # fmt: skip
    return {"type": "FeatureCollection", "features": features}
