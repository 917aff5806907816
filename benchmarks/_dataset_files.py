"""Made-up annotation files as large as the datasets': FACET's, COCO's train2017, FHIBE's table.

As many rows, columns and bytes of each as the published ones have; nobody is in them. Written once
a run, outside of what is timed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from isolux.datasets.fhibe.value_lists import KEYPOINTS
from isolux.geometry.masks import masks_from_counts, masks_to_coco

PEOPLE, FACET_IMAGES, FACET_MASKS = 49_551, 31_702, 69_105
COCO_IMAGES, COCO_ANNOTATIONS, COCO_CROWDS = 118_287, 860_001, 0.0118
FHIBE_ROWS, FHIBE_SUBJECTS, FHIBE_COLUMNS = 10_941, 1_981, 77
CORNERS = 19  # of a polygon: COCO's file then has its 448 MB
OUTLINES = 60_000  # characters of a person's polygons, which make up nearly all of FHIBE's table
STEP = 20_000

FACET_FLAGS = (
    *(f"gender_presentation_{v}" for v in ("masc", "fem", "non_binary", "na")),
    *(f"skin_tone_{k}" for k in (*range(1, 11), "na")),
    *(f"age_presentation_{v}" for v in ("young", "middle", "older", "na")),
    *(f"hair_color_{v}" for v in ("brown", "blonde", "grey", "na", "black", "colored", "red")),
    *(f"hairtype_{v}" for v in ("coily", "dreadlocks", "bald", "straight", "curly", "wavy", "na")),
    *(f"has_{v}" for v in ("facial_hair", "tattoo", "cap", "mask", "headscarf", "eyeware")),
    *(f"visible_{v}" for v in ("torso", "face", "minimal")),
    *(f"lighting_{v}" for v in ("underexposed", "dimly_lit", "well_lit", "na", "overexposed")),
)


def facet(folder: Path, share: float) -> Path:
    """Write ``annotations.csv``, ``coco_boxes.json`` and ``coco_masks.json``."""
    rng = np.random.default_rng(1)
    people, images, masks = (max(int(n * share), 9) for n in (PEOPLE, FACET_IMAGES, FACET_MASKS))
    image = rng.integers(0, images, people)
    box = np.round(rng.uniform(1, 700, (people, 4)), 1).tolist()
    cells = [json.dumps(dict(zip(("x", "y", "width", "height"), b, strict=True))) for b in box]
    flags = rng.random((people, len(FACET_FLAGS))) < 0.2
    tones = [k for k, name in enumerate(FACET_FLAGS) if name.startswith("skin_tone_")]
    marks = np.where(flags, 1, 0)
    marks[:, tones] *= rng.integers(1, 4, (people, len(tones)))
    table = pl.DataFrame(
        {
            "person_id": np.arange(people),
            "filename": [f"sa_{i}.jpg" for i in image.tolist()],
            "class1": [f"class_{k}" for k in rng.integers(0, 52, people).tolist()],
            "class2": ["" if k > 3 else f"class_{k}" for k in rng.integers(0, 52, people).tolist()],
            "bounding_box": cells,
            **{name: marks[:, k] for k, name in enumerate(FACET_FLAGS)},
        }
    )
    table.write_csv(folder / "annotations.csv")
    listed = [{"id": i, "file_name": f"sa_{i}.jpg", "width": 1500, "height": 1000}
              for i in range(images)]  # fmt: skip
    runs = _runs(rng, 1_000, 1_500, 120)
    annotations = [
        {"id": k, "image_id": int(image[k % people]), "category_id": 1 if k < people else 2,
         "person_id": k % people, "bbox": box[k % people],
         "segmentation": {"size": [1000, 1500], "counts": runs[k % len(runs)]}}
        for k in range(masks)
    ]  # fmt: skip
    categories = [{"id": 1, "name": "person"}, {"id": 2, "name": "clothing"}]
    file = {"images": listed, "annotations": annotations, "categories": categories}
    (folder / "coco_masks.json").write_text(json.dumps(file))
    return folder


def _runs(rng: np.random.Generator, height: int, width: int, n: int) -> list[str]:
    plain = [rng.multinomial(height * width, np.ones(2 * n + 1) / (2 * n + 1)).tolist()
             for _ in range(64)]  # fmt: skip
    sides = (np.full(64, side) for side in (height, width))
    return [m["counts"].decode() for m in masks_to_coco(masks_from_counts(plain, *sides))]


def coco(folder: Path, share: float) -> Path:
    """Write ``instances_train2017.json``."""
    images, n = (max(int(k * share), 9) for k in (COCO_IMAGES, COCO_ANNOTATIONS))
    file = folder / "instances_train2017.json"
    with file.open("w") as stream:
        stream.write('{"info": {}, "licenses": [], "images": [')
        stream.write(", ".join(_image(i) for i in range(images)))
        stream.write('], "annotations": [')
        stream.writelines(_annotations(images, n))
        named = [{"supercategory": f"s{k // 8}", "id": k, "name": "person" if k == 1 else f"c{k}"}
                 for k in range(1, 81)]  # fmt: skip
        stream.write(f'], "categories": {json.dumps(named)}}}')
    return file


def _image(i: int) -> str:
    return (
        f'{{"license": 3, "file_name": "{i:012}.jpg", "coco_url":'
        f' "http://images.cocodataset.org/train2017/{i:012}.jpg", "height": 480, "width": 640,'
        ' "date_captured": "2013-11-14 11:18:45", "flickr_url":'
        f' "http://farm9.staticflickr.com/8186/8119368305_4e622c8349_z.jpg", "id": {i}}}'
    )


def _annotations(images: int, n: int) -> Iterator[str]:
    rng = np.random.default_rng(2)
    for first in range(0, n, STEP):
        m = min(STEP, n - first)
        corners = np.round(rng.uniform(0, 480, (m, 2 * CORNERS)), 2).tolist()
        box = np.round(rng.uniform(1, 200, (m, 4)), 2).tolist()
        image, category = rng.integers(0, images, m).tolist(), rng.integers(1, 81, m).tolist()
        crowd = (rng.random(m) < COCO_CROWDS).tolist()
        rows = []
        for k in range(m):
            mask = str([corners[k]])
            if crowd[k]:
                runs = rng.multinomial(480 * 640, np.ones(101) / 101).tolist()
                mask = f'{{"counts": {runs}, "size": [480, 640]}}'
            rows.append(
                f'{{"segmentation": {mask}, "area": {box[k][2] * box[k][3]:.4f}, "iscrowd":'
                f' {int(crowd[k])}, "image_id": {image[k]}, "bbox": {box[k]}, "category_id":'
                f' {category[k]}, "id": {first + k}}}'
            )
        yield (", " if first else "") + ", ".join(rows)


def fhibe(folder: Path, share: float) -> Path:
    """Write ``fhibe_downsampled.csv`` of 77 columns, polygons in one of them."""
    rows = max(int(FHIBE_ROWS * share), 9)
    outline = [{"x": 1024.5 + k, "y": 512.25} for k in range(1_100)]
    segment = str([{"class_name": "0. Face skin", "num": 1, "polygon": outline}])
    segment = (segment * (OUTLINES // len(segment) + 1))[:OUTLINES]
    points = str({f"{k}. {name}": [10.5 * k, 4.25, 1] for k, name in enumerate(KEYPOINTS)})
    known = {
        "is_primary": "True", "image_height": 2048, "image_width": 1365, "age": 31,
        "scene": "12. Indoor: Home", "lighting": "['0. From above', '4. From the left']",
        "location_country": "Kenya", "consent": "True", "nationality": "['105. Kenyan']",
        "ancestry": "['0. Africa', '2. Eastern Africa']", "pronoun": "['1. He/him/his']",
        "natural_skin_color": "0. [102, 78, 65]", "person_bbox": "[1.0, 2.0, 30.0, 40.0]",
        "face_bbox": "[5, 6, 7, 8]", "keypoints": points, "segments": segment,
    }  # fmt: skip
    own = ("image_id", "filepath", "json_path", "subject_id")
    rest = [f"QAannotator_{k}" for k in range(FHIBE_COLUMNS - len(own) - len(known))]
    file = folder / "fhibe_downsampled.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*own, *known, *rest])
        for i in range(rows):
            name = f"data/raw/fhibe_downsampled/s{i % FHIBE_SUBJECTS}/i{i}/main_i{i}"
            ids = [f"i{i}", f"{name}.png", f"{name}.json", f"s{i % FHIBE_SUBJECTS}"]
            writer.writerow([*ids, *known.values(), *["['0123-4567']"] * len(rest)])
    return file
