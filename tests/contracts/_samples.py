"""A tiny synthetic input for each plugin that reads one. A new plugin adds its own here.

Another package gives its samples by an entry point ``isolux.samples``: a module with any of
``TASKS``, ``DATASETS``, ``FORMATS``, ``OUTPUTS``, ``ANALYSES``, ``CHECKS`` and ``MODELS``, as here.
People are numbered, three classes are guessed with one mistake in four, no two scores tie (ties
may depend on input order where a reference does, so the row-order contract leaves them out).
"""

from __future__ import annotations

import atexit
import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.containers import Dataset, Run
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import (
    ATTRIBUTES,
    BOX_PREDICTIONS,
    EMBEDDINGS,
    INSTANCES,
    LABEL_PREDICTIONS,
    PART_MASK_FILES,
    Table,
)
from isolux.io.image_tables import IMAGE_FILES, UNIT_VALUES
from isolux.models.fairface import Heads, build_resnet34, heads_to_metadata
from isolux.predictions._outputs import is_label_format
from tests._sheets import frame_rows, write_ods, write_xlsx
from tests.checks._dataset import picture, with_files
from tests.contracts import _runs
from tests.contracts._plugins import Plugin
from tests.models import _checkpoints
from tests.models._networks import mean_colours
from tests.models._vision_ops import with_torchvision

N = 24
CLASSES = ("drummer", "guard", "nurse")
MADE_UP = DatasetInfo(
    title="Made-up people",
    summary="People that a test numbered.",
    references=(Reference(key="none", citation="Made up in tests/contracts/_samples.py."),),
)


@dataclass(frozen=True)
class TaskSample:
    """What a task is given: a dataset, predictions for it, and options."""

    dataset: Dataset
    predictions: pl.DataFrame
    options: dict[str, Any] = field(default_factory=dict)


def people() -> Dataset:
    """Two photographs of each of twelve subjects, with a class and a group; one has no class."""
    numbers = range(N)
    instances = pl.DataFrame(
        {
            "instance_id": [f"p{i:02}" for i in numbers],
            "image_id": [f"i{i:02}" for i in numbers],
            "cluster_id": [f"s{i // 2:02}" for i in numbers],
            "classes": [[CLASSES[i % 3]] if i < N - 1 else None for i in numbers],
        }
    )
    values = [("class", CLASSES[i % 3] if i < N - 1 else None) for i in numbers]
    values += [("tone", "AB"[i % 2]) for i in numbers]
    attributes = pl.DataFrame(
        {
            "unit_kind": ["instance"] * (2 * N),
            "unit_id": [f"p{i:02}" for i in numbers] * 2,
            "attribute": [attribute for attribute, _ in values],
            "value": [value for _, value in values],
        }
    )
    return Dataset(
        name="made up",
        info=MADE_UP,
        instances=INSTANCES.conform(instances),
        attributes=ATTRIBUTES.conform(attributes),
    )


def labels() -> pl.DataFrame:
    """Two ranked answers for each of them; the first is wrong for every fourth person."""
    rows = []
    for i in range(N):
        first = CLASSES[(i + (i % 4 == 0)) % 3]
        second = CLASSES[(CLASSES.index(first) + 1) % 3]
        rows += [
            {"instance_id": f"p{i:02}", "label": first, "score": 0.6 + i / 100, "rank": 1},
            {"instance_id": f"p{i:02}", "label": second, "score": 0.1 + i / 100, "rank": 2},
        ]
    return LABEL_PREDICTIONS.conform(pl.DataFrame(rows).with_columns(model=pl.lit("made up")))


def cells() -> pl.DataFrame:
    """How many cases each of them stands for, and whether they were counted."""
    return pl.DataFrame(
        {
            "model": "made up",
            "instance_id": [f"p{i:02}" for i in range(N)],
            "label": None,
            "value": [float(i % 3 == 0) for i in range(N)],
            "times": [1 + i * 7 % 5 for i in range(N)],
        },
        schema_overrides={"label": pl.String},
    )


def numbers() -> pl.DataFrame:
    """A number for each of them but one; no two are alike."""
    return pl.DataFrame(
        {
            "model": "made up",
            "instance_id": [f"p{i:02}" for i in range(N)],
            "value": [None if i == 4 else 20.0 + i + (i * 7) % 5 / 2 for i in range(N)],
        }
    )


def aged() -> Dataset:
    """The same people, of whom all but the last have an age."""
    whole = people()
    ages = pl.DataFrame(
        {
            "unit_kind": "instance",
            "unit_id": [f"p{i:02}" for i in range(N)],
            "attribute": "age",
            "value": [str(20 + i) if i < N - 1 else None for i in range(N)],
            "number": [20.0 + i if i < N - 1 else None for i in range(N)],
        }
    )
    return replace(whole, attributes=pl.concat([whole.attributes, ATTRIBUTES.conform(ages)]))


def embeddings() -> pl.DataFrame:
    """A vector for each of them: no two pairs are equally alike, one's two photos nearly so."""
    vectors = [[math.cos(i // 2 * 2.4), math.sin(i // 2 * 2.4), 0.1 + i / 37] for i in range(N)]
    return pl.DataFrame(
        {
            "model": "made up",
            "instance_id": [f"p{i:02}" for i in range(N)],
            "embedding": pl.Series(vectors, dtype=pl.List(pl.Float64)),
        }
    )


def in_a_gallery() -> Dataset:
    """The same people: the first photo of each of eight subjects is enrolled, the rest is not."""
    whole = people()
    roles = pl.DataFrame(
        {
            "unit_kind": "instance",
            "unit_id": [f"p{i:02}" for i in range(N)],
            "attribute": "role",
            "value": ["gallery" if i < 16 and i % 2 == 0 else "probe" for i in range(N)],
        }
    )
    return replace(whole, attributes=pl.concat([whole.attributes, ATTRIBUTES.conform(roles)]))


def pairs() -> pl.DataFrame:
    """Each two of them but the last, one comparison failed; no two are equally alike."""
    both = [(i, j) for i in range(N - 1) for j in range(i + 1, N - 1)]
    return pl.DataFrame(
        {
            "model": "made up",
            "instance_id": [f"p{i:02}" for i, _ in both],
            "other_id": [f"p{j:02}" for _, j in both],
            "score": [
                None if i == 3 and j == 8 else (i // 2 == j // 2) + (i * 29 + j) % 701 / 500
                for i, j in both
            ],
        }
    )


def in_pictures() -> Dataset:
    """The same people, two in each picture, with boxes, masks and poses; one is a crowd."""
    whole = people()
    numbers = np.arange(N)
    sides = {"box_x": 40.0 * (numbers % 2), "box_y": 0.0 * numbers, "box_w": 20.0 + numbers}
    boxes = {name: values.tolist() for name, values in sides.items()} | {"box_h": [30.0] * N}
    shapes = {
        **boxes,
        **{f"face_{name}": values for name, values in boxes.items()},
        "is_crowd": [i == N - 1 for i in numbers],
        # Masks in a picture 6 pixels high and 2 wide: the first of each picture above the second.
        "mask_counts": ["057" if i % 2 == 0 else "75" for i in numbers],
        "mask_height": [6] * N,
        "mask_width": [2] * N,
        "keypoints_x": [_points(i) for i in numbers],
        "keypoints_y": [_points(i) for i in numbers],
        "keypoints_v": [[2] * 17 for _ in numbers],
    }
    image = pl.Series("image_id", [f"i{i // 2:02}" for i in numbers])
    instances = whole.instances.with_columns(image, *(pl.Series(k, v) for k, v in shapes.items()))
    return Dataset("made up", MADE_UP, instances, whole.attributes)


def _points(i: int) -> list[float]:
    return [float(50 * (i % 2) + 3 * k) for k in range(17)]


def texts() -> pl.DataFrame:
    """A caption for each of them but the last, every fourth with the other tone's words."""
    said = ["a woman and her drum" if (i + (i % 4 == 0)) % 2 else "a man and his drum"
            for i in range(N - 1)]  # fmt: skip
    return LABEL_PREDICTIONS.conform(
        pl.DataFrame(
            {
                "model": "made up",
                "instance_id": [f"p{i:02}" for i in range(N - 1)],
                "label": said,
                "score": None,
                "rank": 1,
            },
            schema_overrides={"score": pl.Float64},
        )
    )


_TONES = {"target": "tone", "label_map": {"masculine": ("A",), "feminine": ("B",)}}


def drawn() -> pl.DataFrame:
    """What a model drew in these pictures: worse for some, nothing for every fifth, one alarm."""
    seen = [i for i in range(N) if i % 5]
    rows = [
        {
            "model": "made up",
            "image_id": f"i{i // 2:02}",
            "label": None,
            "box_x": 40.0 * (i % 2),
            "box_y": 0.0,
            "box_w": 20.0 + i,
            "box_h": 30.0 - i / 2,
            "score": 0.3 + i / 64,
            "mask_counts": "048" if i % 2 == 0 else "75",
            "mask_height": 6,
            "mask_width": 2,
            "keypoints_x": [x + i / 10 for x in _points(i)],
            "keypoints_y": _points(i),
            "keypoints_v": [0.5] * 17,
        }
        for i in seen
    ]
    alarm = rows[0] | {"box_x": 500.0, "score": 0.1, "mask_counts": ":2"}
    return pl.DataFrame([*rows, alarm]).with_columns(pl.col("label").cast(pl.String))


def prompted() -> pl.DataFrame:
    """These drawings, labelled with prompts: every fourth person's with another's class."""
    seen = [i for i in range(N) if i % 5]
    named = [f"a person who is a {CLASSES[(i + (i % 4 == 0)) % 3]}" for i in seen]
    return drawn().with_columns(label=pl.Series([*named, "dog"]))


@cache
def _folder() -> Path:
    """Make a folder that is there as long as the tests run: part masks are files."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def with_parts() -> Dataset:
    """The same people with skin over hair in a picture 6 high and 2 wide; one has neither."""
    whole = people()
    skin = {"part": "skin", "counts": "057", "height": 6, "width": 2}
    parts = [skin, skin | {"part": "hair", "counts": "75"}]
    cells = [parts if i < N - 1 else None for i in range(N)]
    instances = whole.instances.with_columns(pl.Series("part_masks", cells))
    return Dataset("made up", MADE_UP, instances, whole.attributes)


def part_masks() -> pl.DataFrame:
    """Masks of these parts, worse for some; nothing of every fifth."""
    rows = []
    for i in range(N):
        for part, first in (("skin", 0), ("hair", 3)) if i % 5 else ():
            picture = np.zeros((6, 2), np.uint8)
            picture[first : first + 2 + i % 3] = 255
            file = _folder() / f"i{i:02}_{part}.png"
            Image.fromarray(picture).save(file)
            rows.append(("made up", f"i{i:02}", part, str(file)))
    return pl.DataFrame(rows, schema=PART_MASK_FILES.schema, orient="row")


def measured_elsewhere() -> pl.DataFrame:
    """Three metrics of each of their pictures but the last one's; one picture has no LPIPS."""
    rows = [
        {"model": "made up", "instance_id": f"p{i:02}", "metric": metric, "value": value}
        for i in range(N - 1)
        for metric, value in (
            ("lpips", None if i == 5 else 0.2 + i / 100),
            ("psnr", 20.0 + i / 4),
            ("identity_cosine", 0.9 - i / 50),
        )
    ]
    return pl.DataFrame(rows)


def taxonomy() -> str:
    """Which of these classes are harmful to be taken for."""
    file = _folder() / "taxonomy.yaml"
    file.write_text("human: [drummer]\nnon_human: [guard]\n")
    return str(file)


def ratings() -> pl.DataFrame:
    """Three annotators' answers; one item was judged by one of them alone."""
    rows = [
        {"instance_id": f"p{i:02}", "annotator": who, "label": CLASSES[(i + (i % 5 == k)) % 3]}
        for i in range(N)
        for k, who in enumerate("abc")
        if (i, who) not in ((7, "b"), (7, "c"))
    ]
    return pl.DataFrame(rows)


_SURE = {"score_threshold": 0.5}

TASKS: dict[str, Callable[[], TaskSample]] = {
    "detection": lambda: TaskSample(
        in_pictures(),
        drawn(),
        {"metrics": ("average_recall", "recall_at_iou", "recall_at_score", "average_precision")}
        | _SURE,
    ),
    "face_detection": lambda: TaskSample(in_pictures(), drawn(), _SURE),
    "segmentation": lambda: TaskSample(in_pictures(), drawn(), _SURE),
    "face_parsing": lambda: TaskSample(
        with_parts(), part_masks(), {"metrics": ("mean_f1", "f1_by_part")}
    ),
    "keypoints": lambda: TaskSample(in_pictures(), drawn()),
    "open_vocabulary": lambda: TaskSample(in_pictures(), prompted(), {"max_detections": 2}),
    "grounding": lambda: TaskSample(in_pictures(), prompted(), {"prompt": "a person who is a {}"}),
    "classification": lambda: TaskSample(people(), labels()),
    "label_association": lambda: TaskSample(
        people(), labels().head(2 * N - 2), {"taxonomy": taxonomy(), "top_k": 1}
    ),
    "agreement": lambda: TaskSample(people(), ratings()),
    "geodiversity": lambda: TaskSample(
        people(), labels(), {"top_k": 1, "metrics": ("household_hit_rate", "hit_rate")}
    ),
    "counts": lambda: TaskSample(people().with_clusters("instance_id"), cells()[:-1]),
    "number": lambda: TaskSample(people(), numbers()),
    "regression": lambda: TaskSample(aged(), numbers(), {"target": "age", "within": (1.5,)}),
    "age_estimation": lambda: TaskSample(
        aged(),
        numbers(),
        {"legal_age": 30, "challenge_age": (33.0,), "age_mix": ("20-31=1", "32-43=2")},
    ),
    "retrieval": lambda: TaskSample(people(), embeddings(), {"top_k": (1, 3)}),
    "text_to_image_retrieval": lambda: TaskSample(
        people(),
        embeddings()[:-1],
        {
            "database": people(),
            "database_predictions": embeddings(),
            "target": "tone",
            "top_k": (3,),
        },
    ),
    "pronoun_resolution": lambda: TaskSample(people(), texts(), {**_TONES, "occupation": "class"}),
    "caption_gender": lambda: TaskSample(people(), texts(), {**_TONES, "objects": "class"}),
    "generated_images": lambda: TaskSample(people(), labels()[:-2], {"by_people": True}),
    "counterfactual_pairs": lambda: TaskSample(people(), numbers(), {"changed": "tone"}),
    "answers": lambda: TaskSample(
        people(), texts(), {"read": ("pronoun", "toxicity", "occupation"), "least_answers": 1}
    ),
    "face_verification": lambda: TaskSample(people(), pairs(), {"far": 0.1}),
    "identification": lambda: TaskSample(
        in_a_gallery(), embeddings(), {"enrolled": "role=gallery", "threshold": 0.9}
    ),
    "reconstruction": lambda: TaskSample(people(), measured_elsewhere()),
    "super_resolution": lambda: TaskSample(people(), measured_elsewhere()),
}


def table(folder: Path) -> Path:
    """A table of one's own: a list in a cell, a number, an unknown."""
    path = folder / "people.csv"
    rows = [f"p{i:02},s{i // 2:02},{CLASSES[i % 3]},{i % 10}," for i in range(N - 1)]
    path.write_text("\n".join(["id,subject,class,tone,note", *rows, "p99,s99,nurse,,x\n"]))
    return path


def counts(folder: Path) -> Path:
    """Successes and n by tone and sex, in a table without people."""
    path = folder / "counts.csv"
    rows = [f"{tone},{sex},{3 + 7 * i + 2 * k},{90 + 11 * i}" for i, tone in enumerate("abc")
            for k, sex in enumerate("fm")]  # fmt: skip
    path.write_text("\n".join(["tone,sex,errors,n", *rows, ""]))
    return path


def rating_table(folder: Path) -> Path:
    """Three annotators' answers about twelve photos, an answer a row; one cell is empty."""
    path = folder / "ratings.csv"
    said = {(i, k): CLASSES[(i + k // 2) % 3] for i in range(12) for k in range(3)} | {(3, 1): ""}
    rows = [f"f{i},s{i // 2},{'ab'[i % 2]},r{k},{label}" for (i, k), label in said.items()]
    path.write_text("\n".join(["photo,subject,tone,rater,label", *rows, ""]))
    return path


def pair_table(folder: Path) -> Path:
    """Pairs that a verifier compared, with the groups of either side; one comparison failed."""
    path = folder / "pairs.csv"
    tones = ("light", "medium", "dark")
    rows = [
        f"{i % 2},{'' if i == 5 else 0.3 + i / 64},{tones[i % 3]},{tones[(i + i % 5 // 4) % 3]}"
        for i in range(N)
    ]
    path.write_text("\n".join(["same,score,tone_a,tone_b", *rows, ""]))
    return path


def fairface(folder: Path) -> Path:
    """Labels as FairFace publishes them."""
    path = folder / "labels.csv"
    races, ages = ("White", "Black", "Indian", "East Asian"), ("0-2", "20-29", "more than 70")
    rows = [
        f"val/{i}.jpg,{ages[i % 3]},{('Male', 'Female')[i % 2]},{races[i % 4]},True"
        for i in range(1, N + 1)
    ]
    path.write_text("\n".join(["file,age,gender,race,service_test", *rows]) + "\n")
    return path


def visogender(folder: Path) -> Path:
    """A table of people alone and one of two people, as VisoGender publishes them."""
    start = "IDX\tSector\tSpecialisation\tOccupation\t"
    rest = "\tURL type (Type NA if can't find)\tLicence\tOccupation_perceived_gender"
    genders = ("masculine", "feminine")
    for kind, beside, more in (("OO", "Object", ""), ("OP", "Participant", "\tmasculine")):
        head = start + beside + rest + ("\tParticipant_perceived_gender" if more else "")
        rows = [
            f"{kind}_{i}\toffice\tlegal\tjudge\tdesk\thttps://a.org/{kind}{i}.jpg\tYes\t"
            f"{genders[i % 2]}{more}"
            for i in range(1, N // 2 + 1)
        ]
        (folder / f"{kind}_Visogender_02102023.tsv").write_text("\n".join([head, *rows, ""]))
    return folder


def coco(folder: Path) -> Path:
    """Annotations as COCO publishes them: a box, a mask and a crowd in each picture."""
    numbers = range(1, N + 1)
    file = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "width": 40, "height": 30} for i in numbers],
        "annotations": [
            {
                "id": i,
                "image_id": 1 + i // 2,
                "category_id": 1 + i % 3,
                "bbox": [i, 2, 9.5, 12],
                "area": 90 + i,
                "iscrowd": i % 5 == 0,
                "segmentation": [[i, 2, i + 9.5, 2, i, 14]],
            }
            for i in numbers
        ],
        "categories": [{"id": 1 + i, "name": name} for i, name in enumerate(CLASSES)],
    }
    path = folder / "instances.json"
    path.write_text(json.dumps(file))
    return path


def widerface(folder: Path) -> Path:
    """WIDER FACE's text list, with perceived attributes of every other face."""
    (folder / "wider_face_val_bbx_gt.txt").write_text(
        "".join(f"0--Parade/{i}.jpg\n1\n{i} 3 20 24 {i % 3} 0 1 0 2 1\n" for i in range(N))
    )
    rows = [f"{i},images/0--Parade/{i}.jpg,Male,Adult,IV,0\n" for i in range(0, N, 2)]
    header = ",file,perceived_gender,perceived_age,perceived_skin,face\n"
    (folder / "demographics_val.csv").write_text("".join([header, *rows]))
    return folder


def facet(folder: Path) -> Path:
    """FACET's table: votes for skin tone, marks for the rest."""
    box = '"{""x"": 4, ""y"": 5, ""width"": 20, ""height"": 40}"'
    columns = "person_id,filename,class1,class2,bounding_box,gender_presentation_fem"
    rows = [f"{i},sa_{i // 2}.jpg,{CLASSES[i % 3]},,{box},{i % 2},{i % 4},2" for i in range(N)]
    path = folder / "annotations.csv"
    path.write_text("\n".join([f"{columns},skin_tone_3,skin_tone_4", *rows]) + "\n")
    return path


def bdd100k(folder: Path) -> Path:
    """Frames in Scalabel's JSON; one of them without labels."""
    frames = [
        {
            "name": f"{i}.jpg",
            "videoName": f"v{i // 4}",
            "attributes": {"weather": "clear", "scene": "highway", "timeofday": "night"},
            "labels": [
                {
                    "id": str(i),
                    "category": ("car", "bike", "person")[i % 3],
                    "attributes": {"occluded": i % 2 == 0, "truncated": False},
                    "box2d": {"x1": i, "y1": 2, "x2": i + 30.5, "y2": 60},
                }
            ],
        }
        for i in range(N)
    ]
    path = folder / "det_val.json"
    path.write_text(json.dumps([*frames, {"name": "empty.jpg"}]))
    return path


def fhibe(folder: Path) -> Path:
    """FHIBE's processed table: two photos of each of twelve people."""
    columns = "image_id,filepath,json_path,subject_id,is_primary,image_height,image_width,age"
    rows = [
        f"i{i},data/i{i}.png,data/i{i}.json,s{i // 2},True,64,48,{20 + i},"
        f"\"['0. Africa', '{1 + i % 5}. Part']\",\"[1, 2, 30, {40 + i}]\""
        for i in range(N)
    ]
    path = folder / "fhibe_downsampled.csv"
    path.write_text("\n".join([f"{columns},ancestry,person_bbox", *rows]) + "\n")
    return path


def miap(folder: Path) -> Path:
    """MIAP's boxes, sides in its own order; a group, and sizes nobody gave."""
    columns = "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf"
    rest = "IsDepictionOf,IsInsideOf,GenderPresentation,AgePresentation"
    rows = [
        f"a{i // 2},/m/01g317,1,0.{i % 5},0.75,0.125,1,{i % 2},0,{int(i == 5)},0,-1,"
        f"Predominantly {('Feminine', 'Masculine')[i % 2]},{('Young', 'Older')[i % 3 == 0]}"
        for i in range(N)
    ]
    path = folder / "open_images_extended_miap_boxes_test.csv"
    path.write_text("\n".join([f"{columns},{rest}", *rows]) + "\n")
    return path


def utkface(folder: Path) -> Path:
    """A list of UTKFace's file names; one of them lacks a field."""
    path = folder / "names.txt"
    names = [f"{20 + i}_{i % 2}_{i % 5}_2017010915055{i:04}.jpg.chip.jpg" for i in range(N)]
    path.write_text("\n".join([*names, "61_1_20170109142408075.jpg.chip.jpg"]) + "\n")
    return path


def dollarstreet(folder: Path) -> Path:
    """Photos of homes, as the release with addresses names them; some show two things."""
    rows = [
        f"Peru,http://x.org/media/Peru%20{i // 4}/image/{i}.jpg,{50.5 * (1 + i // 4)},The Americas,"
        + ("['roofs']" if i % 3 else "\"['roofs', 'beds']\"")
        for i in range(N)
    ]
    path = folder / "metadata.csv"
    path.write_text("\n".join(["country,url,income,region,label", *rows]) + "\n")
    return path


def casual_conversations(folder: Path) -> Path:
    """Version 1: two videos of each of twelve people, one of them dark."""
    subjects = {
        f"{i:04}": {
            "files": [f"CC/{i:04}/{i:04}_00.MP4"],
            "dark_files": [f"CC/{i:04}/{i:04}_01.MP4"],
            "label": {"age": str(18 + i), "gender": "Female", "skin-type": str(1 + i % 6)},
        }
        for i in range(N // 2)
    }
    path = folder / "CasualConversations.json"
    path.write_text(json.dumps(subjects))
    return path


def celeba(folder: Path) -> Path:
    """CelebA's lists: two photographs of each of twelve people."""
    rows = [f"{i:06}.jpg {1 - i % 2 * 2:2} {1 - i % 3 // 2 * 2:2}" for i in range(1, N + 1)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(N), "Male Smiling ", *rows]) + "\n")
    ids = "".join(f"{i:06}.jpg {(i + 1) // 2}\n" for i in range(1, N + 1))
    (folder / "identity_CelebA.txt").write_text(ids)
    return folder


def celebamask_hq(folder: Path) -> Path:
    """CelebAMask-HQ's attributes, and its mapping to CelebA."""
    rows = [f"{i}.jpg  {1 - i % 2 * 2} {1 - i % 3 // 2 * 2}" for i in range(N)]
    file = folder / "CelebAMask-HQ-attribute-anno.txt"
    file.write_text("\n".join([str(N), "Male Smiling", *rows]) + "\n")
    mapping = "".join(f"{i}   {100 + i}   {101 + i:06}.jpg\n" for i in range(N))
    (folder / "CelebA-HQ-to-CelebA-mapping.txt").write_text(f"idx orig_idx orig_file\n{mapping}")
    return folder


def imagefolder(folder: Path) -> Path:
    """A list of pictures in folders of their classes, and a table of tones beside it."""
    names = [f"{CLASSES[i % 3]}/{i}.jpg" for i in range(N)]
    rows = [f"{name},{i % 10}" for i, name in enumerate(names)]
    (folder / "metadata.csv").write_text("\n".join(["file_name,tone", *rows]) + "\n")
    path = folder / "pictures.txt"
    path.write_text("\n".join(names) + "\n")
    return path


def lfwa(folder: Path) -> Path:
    """LFWA's labels in the older form of MATLAB's files: two photographs of each of twelve."""
    from scipy.io import savemat

    names = [f"P{i // 2}\\P{i // 2}_{i % 2 + 1:04}.jpg" for i in range(N)]
    variables = {
        "name": np.array(names, dtype=object),
        "AttrName": np.array(["Male", "Smiling"], dtype=object),
        "label": np.array([[i // 2 % 2, i % 3 // 2] for i in range(N)]),
    }
    savemat(folder / "lfw_att_40.mat", variables)
    return folder


def imdb_wiki(folder: Path) -> Path:
    """IMDB-WIKI's structure of fields: two photographs of each of twelve celebrities."""
    from scipy.io import savemat

    paths, faces = np.empty((2, 1, N), dtype=object)
    for i in range(N):
        paths[0, i], faces[0, i] = f"{i:02}/{i}.jpg", np.array([[1.0, 1, 30, 40]])
    fields = {
        "dob": np.array([[712_420 + 500 * (i // 2) for i in range(N)]]),
        "photo_taken": np.array([[1990 + i for i in range(N)]]),
        "gender": np.array([[np.nan, *(float(i % 2) for i in range(1, N))]]),
        "face_score": np.array([[-np.inf if i == 3 else 2.0 for i in range(N)]]),
        "second_face_score": np.full((1, N), np.nan),
        "full_path": paths,
        "face_location": faces,
        "celeb_id": np.array([[i // 2 for i in range(N)]]),
    }
    savemat(folder / "imdb.mat", {"imdb": fields})
    return folder


def huggingface(folder: Path) -> Path:
    """A Parquet file as Hugging Face publishes them, with the names of its classes inside."""
    features = {"sex": {"names": ["female", "male"], "_type": "ClassLabel"}}
    rows = {"id": [f"p{i}" for i in range(N)], "sex": [i % 3 - 1 for i in range(N)]}
    path = folder / "test-00000-of-00001.parquet"
    said = {"huggingface": json.dumps({"info": {"features": features}})}
    pl.DataFrame(rows).write_parquet(path, metadata=said)
    return path


def coco_caption_bias(folder: Path) -> Path:
    """The labels of images, as the authors' code reads them; COCO's boxes of a person each."""
    rows = [
        f"{i},\"['Light', 'Dark']\",\"[0.{i % 9}, 0.05]\",{('Light', 'Dark')[i % 2]},"
        f"{('Male', 'Female', 'Unsure')[i % 3]},val"
        for i in range(1, N + 1)
    ]
    path = folder / "images_val2014.csv"
    path.write_text("\n".join(["id,skin,ratio,bb_skin,bb_gender,split", *rows]) + "\n")
    coco(folder)
    file = json.loads((folder / "instances.json").read_text())
    file["categories"][0]["name"] = "person"
    (folder / "instances_val2014.json").write_text(json.dumps(file))
    return path


def fiftyone(folder: Path) -> Path:
    """What FiftyOne exports: two people in each picture, whose tone is a field of theirs."""
    samples = [
        {
            "filepath": f"data/{i}.jpg",
            "metadata": {"_cls": "ImageMetadata", "width": 64, "height": 48},
            "ground_truth": {
                "_cls": "Detections",
                "detections": [
                    {
                        "_cls": "Detection",
                        "label": CLASSES[i % 3],
                        "bounding_box": [0.5 * k, 0.25, 0.25, 0.5],
                        "tone": i % 10 + k,
                    }
                    for k in range(2)
                ],
            },
        }
        for i in range(N // 2)
    ]
    path = folder / "samples.json"
    path.write_text(json.dumps({"samples": samples}))
    return path


def voc(folder: Path) -> Path:
    """Objects of one picture in Pascal VOC's XML."""
    objects = "".join(
        f"<object><name>{CLASSES[i % 3]}</name><difficult>{i % 5 // 4}</difficult><bndbox>"
        f"<xmin>{i}</xmin><ymin>2</ymin><xmax>{i + 20}</xmax><ymax>30</ymax></bndbox></object>"
        for i in range(N)
    )
    size = "<filename>7.jpg</filename><size><width>64</width><height>48</height></size>"
    path = folder / "7.xml"
    path.write_text(f"<annotation>{size}{objects}</annotation>")
    return path


def curated(folder: Path) -> Path:
    """Write a dataset as ``isolux curate publish`` does."""
    terms = {"format": "isolux curated dataset", "version": 1, "training": False,
             "name": "Made-up faces"}  # fmt: skip
    (folder / "dataset.json").write_text(json.dumps(terms))
    rows = "".join(f"i{k},p{k},s{k // 2},test,photos/p{k}.jpg,64,48,{k % 9},2,20,30.5,{k % 10}\n"
                   for k in range(1, N))  # fmt: skip
    head = "instance_id,image_id,subject_id,split,file,width,height,box_x,box_y,box_w,box_h,tone\n"
    (folder / "people.csv").write_text(head + rows)
    return folder


def cvat(folder: Path) -> Path:
    """Pictures of one box each in CVAT's XML."""
    images = "".join(
        f'<image id="{i}" name="{i}.jpg" width="64" height="48"><box label="{CLASSES[i % 3]}"'
        f' occluded="{i % 2}" xtl="{i}" ytl="2" xbr="{i + 20}" ybr="30">'
        f'<attribute name="tone">{"AB"[i % 2]}</attribute></box></image>'
        for i in range(N)
    )
    path = folder / "annotations.xml"
    path.write_text(f"<annotations><version>1.1</version>{images}</annotations>")
    return path


def yolo(folder: Path) -> Path:
    """Lines of one label file of YOLO, and its picture."""
    lines = (f"{i % 3} 0.{i + 20} 0.5 0.25 0.5" for i in range(N))
    path = folder / "7.txt"
    path.write_text("\n".join(lines) + "\n")
    Image.new("RGB", (64, 48)).save(folder / "7.png")
    return path


DATASETS: dict[str, Callable[[Path], Path]] = {
    "bdd100k": bdd100k,
    "casual_conversations": casual_conversations,
    "celeba": celeba,
    "celebamask_hq": celebamask_hq,
    "coco": coco,
    "coco_caption_bias": coco_caption_bias,
    "curated": curated,
    "cvat": cvat,
    "dollarstreet": dollarstreet,
    "facet": facet,
    "fairface": fairface,
    "fhibe": fhibe,
    "fiftyone": fiftyone,
    "huggingface": huggingface,
    "imagefolder": imagefolder,
    "imdb_wiki": imdb_wiki,
    "lfwa": lfwa,
    "miap": miap,
    "pairs": pair_table,
    "counts": counts,
    "ratings": rating_table,
    "table": table,
    "utkface": utkface,
    "visogender": visogender,
    "voc": voc,
    "widerface": widerface,
    "yolo": yolo,
}

_ANSWERS = pl.DataFrame(
    {
        "id": [f"p{i:02}" for i in range(N)],
        "label": [CLASSES[i % 3] for i in range(N)],
        "score": [0.5 + i / 64 for i in range(N)],  # exact in binary and in text
    }
)

FORMATS: dict[str, Callable[[Path], object]] = {
    "arrow": _ANSWERS.write_ipc,
    "csv": _ANSWERS.write_csv,
    "json": _ANSWERS.write_json,
    "jsonlines": _ANSWERS.write_ndjson,
    "ods": lambda path: _workbook(write_ods, path),
    "parquet": _ANSWERS.write_parquet,
    "tsv": lambda path: _ANSWERS.write_csv(path, separator="\t"),
    "xlsx": lambda path: _workbook(write_xlsx, path),
}


def _workbook(write: Callable[..., Path], path: Path) -> Path:
    pytest.importorskip("python_calamine")
    return write(path, {"Answers": frame_rows(_ANSWERS)})


def _coco_results(folder: Path) -> Path:
    path = folder / "net.json"
    row = '{"image_id": %d, "category_id": 1, "bbox": [4, 5, 20, 30.5], "score": 0.%d}'
    path.write_text("[" + ", ".join(row % (i, i + 1) for i in range(N)) + "]")
    return path


def _coco_captions(folder: Path) -> Path:
    path = folder / "net.json"
    rows = (f'{{"image_id": {i}, "caption": "a man on skis"}}' for i in range(N))
    path.write_text("[" + ", ".join(rows) + "]")
    return path


def _fiftyone_detections(folder: Path) -> Path:
    path = folder / "net.json"
    box = '{"label": "person", "bounding_box": [0.25, 0.5, 0.5, 0.25], "confidence": 0.5}'
    sample = (
        '{"filepath": "%d.jpg", "metadata": {"width": 40, "height": 30},'
        ' "predictions": {"_cls": "Detections", "detections": [%s]}}'
    )
    path.write_text('{"samples": [' + ", ".join(sample % (i, box) for i in range(N)) + "]}")
    return path


def _scalabel(folder: Path) -> Path:
    path = folder / "net.json"
    label = '{"category": "rider", "score": 0.5, "box2d": {"x1": 4, "y1": 5, "x2": 24, "y2": 35}}'
    frames = (f'{{"name": "{i}.jpg", "labels": [{label}]}}' for i in range(N))
    path.write_text("[" + ", ".join(frames) + "]")
    return path


def _widerface_text(folder: Path) -> Path:
    path = folder / "net.txt"
    path.write_text("".join(f"0--Parade/{i}.jpg\n1\n4 5 20 30 0.{i + 1}\n" for i in range(N)))
    return path


def _embeddings(folder: Path) -> Path:
    path = folder / "net.npy"
    np.save(path, np.arange(2.0 * N).reshape(N, 2))
    (folder / "net.ids.txt").write_text("".join(f"p{i:02}\n" for i in range(N)))
    return path


def _part_masks(folder: Path) -> Path:
    path = folder / "net"
    path.mkdir(exist_ok=True)
    for i in range(N):
        (path / f"{i:05}_l_eye.png").touch()
    return path


def _image_files(folder: Path) -> Path:
    path = folder / "net"
    path.mkdir(exist_ok=True)
    for i in range(N):
        (path / f"p{i:02}.png").touch()
    return path


def _unit_values(folder: Path) -> Path:
    path = folder / "net.csv"
    path.write_text("id,LPIPS\n" + "".join(f"p{i:02},{i / 64}\n" for i in range(N)))
    return path


def _fhibe_api(folder: Path) -> Path:
    path = folder / "net.json"
    boxes = (f'"a/main_{i}.png": {{"bboxes": [[4, 5, 24, 35]], "scores": [0.5]}}' for i in range(N))
    path.write_text("{" + ", ".join(boxes) + "}")
    return path


def _sizes_beside(folder: Path) -> None:
    rows = "".join(f"{i},64,48\n" for i in range(N))
    (folder / "net.sizes.csv").write_text(f"image_id,width,height\n{rows}")


def _voc_text(folder: Path) -> Path:
    path = folder / "net"
    path.mkdir(exist_ok=True)
    rows = "".join(f"{i} 0.{i + 10} 4 5 {24 + i} 35\n" for i in range(N))
    (path / "comp3_det_val_person.txt").write_text(rows)
    return path


def _yolo_text(folder: Path) -> Path:
    path = folder / "net"
    path.mkdir(exist_ok=True)
    for i in range(N):
        (path / f"{i}.txt").write_text(f"0 0.5 0.5 0.25 0.5 0.{i + 10}\n")
    _sizes_beside(folder)
    return path


OUTPUTS: dict[str, tuple[Table, Callable[[Path], Path]]] = {
    "coco_captions": (LABEL_PREDICTIONS, _coco_captions),
    "coco_results": (BOX_PREDICTIONS, _coco_results),
    "embeddings": (EMBEDDINGS, _embeddings),
    "fhibe_api": (BOX_PREDICTIONS, _fhibe_api),
    "fiftyone": (BOX_PREDICTIONS, _fiftyone_detections),
    "image_files": (IMAGE_FILES, _image_files),
    "part_masks": (PART_MASK_FILES, _part_masks),
    "scalabel": (BOX_PREDICTIONS, _scalabel),
    "unit_values": (UNIT_VALUES, _unit_values),
    "widerface_text": (BOX_PREDICTIONS, _widerface_text),
    "voc_text": (BOX_PREDICTIONS, _voc_text),
    "yolo_text": (BOX_PREDICTIONS, _yolo_text),
}
"""Formats of other things than labels: the table that each gives, and who writes N rows of it."""


@dataclass(frozen=True)
class AnalysisSample:
    """A run, an analysis's options for it, and words that its findings or tables must hold."""

    run: Callable[[], Run]
    finds: tuple[str, ...]
    options: tuple[str, ...] = ()


_EXPLAINED = "confounders.sensitive=tone", "confounders.explanatory=light,setting"

ANALYSES: dict[str, AnalysisSample] = {
    "trends": AnalysisSample(_runs.labels, ("size", "Accuracy")),
    "answer_associations": AnalysisSample(_runs.answers, ("dim", "bright", "guard")),
    "biometrics": AnalysisSample(
        _runs.searches, ("dim", "failure to acquire", "false positive identification rate")
    ),
    "size_and_occlusion": AnalysisSample(
        _runs.boxes, ("dim", "street"), ("size_and_occlusion.by=setting",)
    ),
    "confidence_curves": AnalysisSample(_runs.associations, ("dim", "bright")),
    "confounders": AnalysisSample(_runs.labels, ("tone", "dark", "light"), _EXPLAINED),
    "error_model": AnalysisSample(
        _runs.labels,
        ("light", "setting"),
        ("error_model.bootstrap=200", "error_model.check_trees=8"),
    ),
    "group_gaps": AnalysisSample(_runs.labels, ("dim", "bright", "points lower")),
    "label_errors": AnalysisSample(
        _runs.labels, ("labels of bright and of dim are wrong",), ("label_errors.attribute=light",)
    ),
    "model_changes": AnalysisSample(_runs.comparison, ("newer", "dim")),
    "overlap_curves": AnalysisSample(_runs.boxes, ("dim", "bright")),
    "patterns": AnalysisSample(_runs.labels, ("with light dim", "tone dark")),
    "power": AnalysisSample(_runs.labels, ("tone", "clusters")),
    "rank_tests": AnalysisSample(_runs.labels, ("dim", "light")),
    "slices": AnalysisSample(_runs.labels, ("light: dim",)),
    "tradeoffs": AnalysisSample(_runs.labels, ("light", "threshold")),
}
"""Each analysis on a run in which dim light is to blame (``_runs``)."""


def _missing(folder: Path) -> tuple[Dataset, Path]:
    picture(1).save(folder / "a.jpg")
    return with_files(folder, ["a.jpg", "gone.jpg"]), folder


def _owned(folder: Path) -> tuple[Dataset, Path]:
    exif = Image.Exif()
    exif[0x013B] = "Ada"
    picture(1).save(folder / "a.jpg", exif=exif)
    return with_files(folder, ["a.jpg"]), folder


def _unreadable(folder: Path) -> tuple[Dataset, Path]:
    (folder / "a.jpg").write_text("no picture")
    return with_files(folder, ["a.jpg"]), folder


def _twice(folder: Path) -> tuple[Dataset, Path]:
    """One person under two ids."""
    sides = {f"box_{edge}": [5.0, 5.0] for edge in "xywh"}
    people = pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "1"], **sides})
    return Dataset("twice", MADE_UP, people), folder


CHECKS: dict[str, Callable[[Path], tuple[Dataset, Path]]] = {
    "missing_files": _missing,
    "metadata": _owned,
    "images": _unreadable,
    "repeats": _twice,
}
"""Checks that find nothing wrong in ``test_checks``' own dataset: one in which they do, and the
folder of its pictures."""

_BRIGHT = """
import polars as pl

def net():
    def answer(pictures):
        said = ["day" if one.mean() > 60 else "night" for one in pictures]
        schema = {"picture": pl.Int64, "label": pl.String, "score": pl.Float64}
        rows = [(k, label, 0.75) for k, label in enumerate(said)]
        return pl.DataFrame(rows, schema=schema, orient="row")
    return answer
"""


def _own_callable(folder: Path) -> str:
    (folder / "isolux_sample_net.py").write_text(_BRIGHT)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return "isolux_sample_net:net"


def _network(folder: Path) -> str:
    pytest.importorskip("onnxruntime", reason="ONNXRUNTIME IS ABSENT: no ONNX network was run")
    return str(
        mean_colours(
            folder / "tiny.onnx", [[1, 0], [0, 1], [1, 1]], [0, 0.1], answers="labels",
            labels=["day", "night"],
        )
    )  # fmt: skip


def _checkpoint(folder: Path) -> str:
    pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no transformers model was run")
    with_torchvision()  # transformers takes it for whole where it is installed
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no model of it was run")
    return str(_checkpoints.classifier(folder))


def _needs(*packages: str) -> None:
    for package in packages:
        pytest.importorskip(package, reason=f"{package} IS ABSENT: no model of it was run")
    if "torch" in packages and not with_torchvision():
        pytest.skip("TORCHVISION IS ABSENT: no model of its kin was run")


def _of_timm(folder: Path) -> tuple[str, dict[str, str]]:
    _needs("torch")
    _needs("timm", "safetensors")
    import timm
    from safetensors.torch import save_file

    (folder / "names.txt").write_text("\n".join(map(str, range(1000))))
    state = timm.create_model("resnet10t", pretrained=False).state_dict()
    save_file(state, folder / "w.safetensors")
    told = {"weights": str(folder / "w.safetensors"), "labels": str(folder / "names.txt")}
    return "resnet10t", told


def _of_open_clip(folder: Path) -> tuple[str, dict[str, str]]:
    _needs("torch")
    _needs("open_clip", "safetensors")
    weights = _checkpoints.tiny_clip(folder)
    return _checkpoints.TINY, {"weights": str(weights), "answers": "embeddings"}


def _of_mtcnn(folder: Path) -> tuple[str, dict[str, tuple[float, ...]]]:
    _needs("torch")
    _needs("facenet_pytorch")
    return "", {"thresholds": (0.0, 0.0, 0.0)}  # which sees faces in noise


def _of_mediapipe(folder: Path) -> str:
    _needs("mediapipe")
    return "faces"


def _of_torchvision(folder: Path) -> tuple[str, dict[str, object]]:
    _needs("torch")
    _needs("torchvision", "safetensors")
    import torchvision
    from safetensors.torch import save_file

    inner = torchvision.models.get_model(
        "ssdlite320_mobilenet_v3_large", weights=None, weights_backbone=None, num_classes=3
    )
    save_file(inner.state_dict(), folder / "w.safetensors")
    (folder / "names.txt").write_text("person\ncar\n")
    told = {"weights": str(folder / "w.safetensors"), "labels": str(folder / "names.txt")}
    return "ssdlite320_mobilenet_v3_large", told | {"min_score": 0.0}


def _of_fairface(folder: Path) -> tuple[str, dict[str, str]]:
    torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: FairFace's net was NOT run")
    file = pytest.importorskip("safetensors.torch", reason="SAFETENSORS IS ABSENT: no weights")
    heads = heads_to_metadata(Heads({"light": ("day", "night")}, 32))
    net = build_resnet34(torch, 2)
    file.save_file(net.state_dict(), folder / "fairface.safetensors", metadata=heads)
    return str(folder), {"answers": "light"}


def _of_finetuned(folder: Path) -> str:
    """Give FairFace's network as an extractor a head, as a training would have left them."""
    spec, _ = _of_fairface(folder)
    import torch
    from safetensors.torch import load_file, save_file

    state = load_file(Path(spec) / "fairface.safetensors")
    held = {f"extractor.{name}": one for name, one in state.items()}
    head = torch.nn.Linear(512, 3)
    held |= {"head.weight": head.weight.detach(), "head.bias": head.bias.detach()}
    save_file(held, folder / "finetuned.safetensors")
    told = {"model": f"fairface:{spec}", "model_option": ["answers=embeddings"],
            "classes": ["dawn", "day", "night"]}  # fmt: skip
    (folder / "finetune.json").write_text(json.dumps(told))
    return str(folder)


MODELS: dict[str, Callable[[Path], Any]] = {
    "fairface": _of_fairface,
    "finetuned": _of_finetuned,
    "hf": _checkpoint,
    "mediapipe": _of_mediapipe,
    "mtcnn": _of_mtcnn,
    "onnx": _network,
    "open_clip": _of_open_clip,
    "python": _own_callable,
    "timm": _of_timm,
    "torchvision": _of_torchvision,
}
"""Families of models: who writes a tiny model's files into a folder, and gives what to load: a
spec, or a spec and settings."""

for _point in entry_points(group="isolux.samples"):
    _theirs = _point.load()
    for _name in ("TASKS", "DATASETS", "FORMATS", "OUTPUTS", "ANALYSES", "CHECKS", "MODELS"):
        globals()[_name].update(getattr(_theirs, _name, {}))


def sample_of(plugin: Plugin, table: str, what: str) -> Any:
    """Look a plugin's sample up; without one, fail with a sentence that says what to add where."""
    known = globals()[table]
    if plugin.name not in known:
        pytest.fail(
            f"{plugin} has no sample: add {what} to {table} in tests/contracts/_samples.py,"
            f" as {table}[{plugin.name!r}]"
        )
    return known[plugin.name]


def task_sample(plugin: Plugin) -> TaskSample:
    """Make a task's dataset, predictions and options."""
    return sample_of(plugin, "TASKS", "a function that gives a TaskSample")()


def dataset_file(plugin: Plugin, folder: Path) -> Path:
    """Write a copy of a dataset, and give the path to load."""
    return sample_of(plugin, "DATASETS", "a function that writes a synthetic copy")(folder)


def outputs_of(plugin: Plugin) -> tuple[Table, Callable[[Path], Path]]:
    """Say which table a format of other things than labels gives, and who writes a file of it."""
    return sample_of(plugin, "OUTPUTS", "a table and a function that writes N rows of it")


def answers_file(plugin: Plugin, folder: Path) -> Path:
    """Write a file of a format of predictions, and give its path."""
    if not is_label_format(plugin.module):
        return outputs_of(plugin)[1](folder)
    path = folder / f"net.{plugin.name}"
    sample_of(plugin, "FORMATS", "a function that writes the sample's answers to a path")(path)
    return path
