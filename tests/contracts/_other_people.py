"""Predictions as they go wrong on the way: other people's, shuffled, renamed, in other words.

``CASES`` holds, for each task, a sound sample whose answers are right for most, and ``WAYS`` the
ways in which a file of predictions comes to be about somebody or something else. What a way does
not change (rows in another order) must give the same numbers; everything else must be refused, or
be said before any number.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, PART_MASK_FILES

N, PER_PICTURE = 160, 2
WIDTH, HEIGHT = 640, 480
CLASSES = ("drummer", "guard", "nurse")
INFO = DatasetInfo(title="x", summary="x", references=())
BOX = ("box_x", "box_y", "box_w", "box_h")


@dataclass(frozen=True)
class Case:
    """A task's people, sound predictions of them, and options."""

    dataset: Dataset
    predictions: pl.DataFrame
    options: dict[str, Any] = field(default_factory=dict)


def _people(draw: np.random.Generator) -> pl.DataFrame:
    w, h = draw.uniform(60, 160, N), draw.uniform(80, 200, N)
    return pl.DataFrame(
        {
            "instance_id": [f"p{i:03}" for i in range(N)],
            "image_id": [f"i{i // PER_PICTURE:03}.jpg" for i in range(N)],
            "subject_id": [f"s{i // 4:03}" for i in range(N)],
            "truth": draw.choice(CLASSES, N).tolist(),
            "tone": draw.choice(["A", "B"], N).tolist(),
            "box_x": draw.uniform(0, WIDTH - w), "box_y": draw.uniform(0, HEIGHT - h),
            "box_w": w, "box_h": h,
        }
    )  # fmt: skip


def _dataset(people: pl.DataFrame, **columns: object) -> Dataset:
    long = [
        people.select(unit_kind=pl.lit("instance"), unit_id="instance_id", attribute=pl.lit(name),
                      value=pl.col(name))
        for name in ("truth", "tone")
    ]  # fmt: skip
    more = {k: pl.Series(k, v) for k, v in columns.items()}
    instances = people.with_columns(classes=pl.concat_list("truth"), **more).drop("truth", "tone")
    images = people.select("image_id").unique(maintain_order=True)
    images = images.with_columns(width=pl.lit(WIDTH), height=pl.lit(HEIGHT))
    return Dataset("x", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(pl.concat(long)),
                   IMAGES.conform(images))  # fmt: skip


def classification(draw: np.random.Generator) -> Case:
    people = _people(draw)
    right = draw.random(N) < 0.85
    said = [t if ok else draw.choice(CLASSES) for t, ok in zip(people["truth"], right, strict=True)]
    given = people.select("instance_id", model=pl.lit("m"), label=pl.Series(said), rank=pl.lit(1))
    return Case(_dataset(people), given.with_columns(score=pl.lit(0.9)), {"target": "truth"})


def harmful(draw: np.random.Generator) -> Case:
    """Labels of which one is harmful; nothing is true of anyone that could tell whose they are."""
    case = classification(draw)
    file = _folder() / "taxonomy.yaml"
    file.write_text("human: [drummer, nurse]\nnon_human: [guard]\n")
    return Case(case.dataset, case.predictions, {"taxonomy": str(file), "top_k": 1})


def at_home(draw: np.random.Generator) -> Case:
    """Photos of three things, each its own; the homes are the subjects."""
    case = classification(draw)
    apart = case.dataset.instances.with_columns(
        image_id="instance_id", household_id="subject_id", cluster_id="subject_id"
    )
    return Case(replace(case.dataset, instances=apart), case.predictions,
                {"top_k": 1, "metrics": ("household_hit_rate", "hit_rate")})  # fmt: skip


def _drawn(people: pl.DataFrame, draw: np.random.Generator) -> pl.DataFrame:
    noise = [pl.col(name) + pl.Series(draw.normal(0, 4, N)) for name in BOX]
    boxes = people.select("image_id", *noise, model=pl.lit("m"))
    return boxes.with_columns(score=pl.Series(draw.uniform(0.3, 1, N)))


def boxes(draw: np.random.Generator) -> Case:
    people = _people(draw)
    return Case(_dataset(people), _drawn(people, draw).with_columns(label=pl.lit("person")))


def classed_boxes(draw: np.random.Generator) -> Case:
    people = _people(draw)
    return Case(_dataset(people), _drawn(people, draw).with_columns(label=people["truth"]))


def one_box(draw: np.random.Generator) -> Case:
    people = _people(draw).with_columns(image_id=pl.format("i{}.jpg", pl.col("instance_id")))
    return Case(_dataset(people), _drawn(people, draw).with_columns(label=people["truth"]))


def segmentation(draw: np.random.Generator) -> Case:
    from pycocotools import mask as coco

    people, columns, drawn = _people(draw), [], []
    for shift, into in ((0, columns), (3, drawn)):
        for x, y, w, h in people.select(BOX).iter_rows():
            pixels = np.zeros((HEIGHT, WIDTH), np.uint8)
            pixels[int(y) + shift : int(y + h), int(x) + shift : int(x + w)] = 1
            into.append(coco.encode(np.asfortranarray(pixels))["counts"].decode())
    sides = {"mask_height": [HEIGHT] * N, "mask_width": [WIDTH] * N}
    given = _drawn(people, draw).drop(BOX).with_columns(label=pl.lit("person"))
    given = given.with_columns(
        mask_counts=pl.Series(drawn), **{k: pl.Series(v) for k, v in sides.items()}
    )
    return Case(_dataset(people, mask_counts=columns, **sides), given)


def keypoints(draw: np.random.Generator) -> Case:
    people = _people(draw)
    places = draw.uniform(0.05, 0.95, (N, 17, 2))
    x = people["box_x"].to_numpy()[:, None] + places[:, :, 0] * people["box_w"].to_numpy()[:, None]
    y = people["box_y"].to_numpy()[:, None] + places[:, :, 1] * people["box_h"].to_numpy()[:, None]
    area = people["box_w"] * people["box_h"] * 0.6
    dataset = _dataset(people, keypoints_x=x.tolist(), keypoints_y=y.tolist(),
                       keypoints_v=[[2] * 17] * N, area=area)  # fmt: skip
    given = people.select("image_id", model=pl.lit("m"), label=pl.lit("person")).with_columns(
        score=pl.Series(draw.uniform(0.3, 1, N)),
        keypoints_x=pl.Series((x + draw.normal(0, 2, x.shape)).tolist()),
        keypoints_y=pl.Series((y + draw.normal(0, 2, y.shape)).tolist()),
        keypoints_v=pl.Series([[1.0] * 17] * N),
    )
    return Case(dataset, given)


def _vectors(people: pl.DataFrame, column: str, draw: np.random.Generator) -> pl.DataFrame:
    centres = {name: draw.normal(0, 1, 8) for name in people[column].unique().sort()}
    vectors = [(centres[v] + draw.normal(0, 0.4, 8)).tolist() for v in people[column]]
    return people.select("instance_id", model=pl.lit("m"), embedding=pl.Series(vectors))


def retrieval(draw: np.random.Generator) -> Case:
    people = _people(draw)
    return Case(
        _dataset(people), _vectors(people, "truth", draw), {"target": "truth", "top_k": (10,)}
    )


def searched(draw: np.random.Generator) -> Case:
    """Queries with a number for each of 160 images, of which half are of either tone."""
    people = _people(draw)
    pictures = _people(draw).with_columns(
        instance_id=pl.format("j{}", pl.int_range(N)), tone=pl.Series(["A", "B"] * (N // 2))
    )
    both = people.select("instance_id").join(pictures.select(other_id="instance_id"), how="cross")
    given = both.with_columns(score=pl.Series(draw.normal(0, 1, both.height)), model=pl.lit("m"))
    return Case(_dataset(people), given, {"database": _dataset(pictures), "target": "tone"})


def described(draw: np.random.Generator) -> Case:
    """A caption of each, with words for the tone that is true of nine in ten."""
    people = _people(draw)
    right = draw.random(N) < 0.9
    said = ["a man and his hat" if (tone == "A") == ok else "a woman and her hat"
            for tone, ok in zip(people["tone"], right, strict=True)]  # fmt: skip
    given = people.select("instance_id", model=pl.lit("m"), label=pl.Series(said), rank=pl.lit(1))
    tones = {"masculine": ("A",), "feminine": ("B",)}
    return Case(_dataset(people), given, {"target": "tone", "label_map": tones})


def drawn_pictures(draw: np.random.Generator) -> Case:
    """What people saw in each of some pictures; no one knows who is in them."""
    people = _people(draw)
    given = people.select("instance_id", model=pl.lit("m"), label=pl.col("tone"), rank=pl.lit(1))
    return Case(_dataset(people), given, {"by_people": True})


def changed_scenes(draw: np.random.Generator) -> Case:
    """Scenes of two pictures of either tone, with a number each."""
    people = _people(draw).with_columns(
        tone=pl.Series(["A", "B"] * (N // 2)),
        cluster_id=pl.Series([f"scene {i // 2}" for i in range(N)]),
    )
    given = people.select("instance_id", model=pl.lit("m"))
    given = given.with_columns(value=pl.Series(draw.normal(0, 1, N)))
    return Case(_dataset(people), given, {"changed": "tone"})


def said_of(draw: np.random.Generator) -> Case:
    """Work that a model says people do; no one says whether it is theirs."""
    people = _people(draw)
    given = people.select("instance_id", model=pl.lit("m"), label=pl.col("truth"), rank=pl.lit(1))
    return Case(_dataset(people), given, {"read": ("occupation",)})


def verification(draw: np.random.Generator) -> Case:
    people = _people(draw)
    return Case(_dataset(people), _vectors(people, "subject_id", draw), {"far": 0.01})


def identification(draw: np.random.Generator) -> Case:
    people = _people(draw)
    return Case(_dataset(people), _vectors(people, "subject_id", draw), {"candidates": 20})


def found_lists(draw: np.random.Generator) -> Case:
    case = pairs(draw)
    return replace(case, options={"top_k": (1, 3)})


def pairs(draw: np.random.Generator) -> Case:
    people = _people(draw)
    ids, who = people["instance_id"].to_list(), people["subject_id"].to_list()
    both = [(i, j) for i in range(N) for j in range(i + 1, N)]
    alike = [0.4 * (who[i] == who[j]) + draw.uniform(0, 0.5) for i, j in both]
    given = pl.DataFrame(
        {"model": "m", "instance_id": [ids[i] for i, _ in both],
         "other_id": [ids[j] for _, j in both], "score": alike}
    )  # fmt: skip
    return Case(_dataset(people), given, {"far": 0.01})


def values(draw: np.random.Generator) -> Case:
    people = _people(draw)
    given = people.select("instance_id", model=pl.lit("m"), metric=pl.lit("psnr"))
    return Case(_dataset(people), given.with_columns(value=pl.Series(draw.normal(26, 3, N))))


def counts(draw: np.random.Generator) -> Case:
    people = _people(draw)
    given = people.select("instance_id", model=pl.lit("m"), label=pl.lit(None, dtype=pl.String))
    given = given.with_columns(
        value=pl.Series((draw.random(N) < 0.3).astype(float)),
        times=pl.Series(draw.integers(1, 9, N)),
    )
    return Case(_dataset(people), given)


def agreement(draw: np.random.Generator) -> Case:
    people = _people(draw)
    said = [
        people.select(
            "instance_id",
            annotator=pl.lit(who),
            label=pl.Series(np.where(draw.random(N) < 0.2, "chef", people["truth"])),
        )
        for who in "abc"
    ]
    return Case(_dataset(people), pl.concat(said))


def any_number(draw: np.random.Generator) -> Case:
    people = _people(draw)
    given = people.select("instance_id", model=pl.lit("m"))
    return Case(_dataset(people), given.with_columns(value=pl.Series(draw.normal(26, 3, N))))


def regression(draw: np.random.Generator) -> Case:
    people = _people(draw)
    age = draw.integers(1, 90, N)
    long = people.select(unit_kind=pl.lit("instance"), unit_id="instance_id",
                         attribute=pl.lit("age"), value=pl.Series(age.astype(str)))  # fmt: skip
    dataset = _dataset(people)
    dataset = replace(dataset, attributes=pl.concat([dataset.attributes, ATTRIBUTES.conform(long)]))
    given = people.select("instance_id", model=pl.lit("m"))
    given = given.with_columns(value=pl.Series(age + draw.normal(0, 5, N)))
    return Case(dataset, given, {"target": "age"})


def ages(draw: np.random.Generator) -> Case:
    return replace(regression(draw), options={"age_mix": ("1-89=1",)})


def scores_alone(draw: np.random.Generator) -> Case:
    people = _people(draw)
    apart = (people["truth"] == "nurse").to_numpy() * 2.0
    given = people.select("instance_id", model=pl.lit("m"))
    given = given.with_columns(score=pl.Series(draw.normal(apart, 1.0)))
    options = {"target": "truth", "positive": "nurse", "threshold": 1.0}
    return Case(_dataset(people), given, options)


@cache
def _folder() -> Path:
    """Make a folder that is there as long as the tests run: part masks are files."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def parsing(draw: np.random.Generator) -> Case:
    """Faces of 24 x 24 pixels: skin in an ellipse of their own, hair above it."""
    n, side = 24, 24
    people = _people(draw)[:n]
    rows, masks = [], []
    y, x = np.mgrid[:side, :side]
    for i, (cx, cy, r) in enumerate(draw.uniform([6, 8, 5], [18, 16, 9], (n, 3))):
        skin = (x - cx) ** 2 + (y - cy) ** 2 < r**2
        parts = {"skin": skin & (y > cy - r / 2), "hair": skin & (y <= cy - r / 2)}
        masks.append([{"part": k, **_runs(m)} for k, m in parts.items()])
        for name, mask in parts.items():
            file = _folder() / f"{draw.integers(1 << 40)}.png"
            Image.fromarray(np.roll(mask, 1, axis=1).astype(np.uint8) * 255).save(file)
            rows.append(("m", people["instance_id"][i], name, str(file)))
    given = pl.DataFrame(rows, schema=PART_MASK_FILES.schema, orient="row")
    people = people.with_columns(image_id=pl.format("i{}", "instance_id"))
    dataset = _dataset(people, part_masks=masks)
    return Case(replace(dataset, images=IMAGES.empty()), given)


def _runs(mask: np.ndarray) -> dict[str, object]:
    from pycocotools import mask as coco

    counts = coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()
    return {"counts": counts, "height": mask.shape[0], "width": mask.shape[1]}


CASES: dict[str, tuple[str, Callable[[np.random.Generator], Case]]] = {
    "classification": ("classification", classification),
    "classification, scores alone": ("classification", scores_alone),
    "number": ("number", any_number),
    "counts": ("counts", counts),
    "agreement": ("agreement", agreement),
    "label_association": ("label_association", harmful),
    "geodiversity": ("geodiversity", at_home),
    "regression": ("regression", regression),
    "age_estimation": ("age_estimation", ages),
    "detection": ("detection", boxes),
    "face_detection": ("face_detection", boxes),
    "segmentation": ("segmentation", segmentation),
    "keypoints": ("keypoints", keypoints),
    "open_vocabulary": ("open_vocabulary", classed_boxes),
    "grounding": ("grounding", one_box),
    "face_parsing": ("face_parsing", parsing),
    "retrieval": ("retrieval", retrieval),
    "text_to_image_retrieval": ("text_to_image_retrieval", searched),
    "generated_images": ("generated_images", drawn_pictures),
    "counterfactual_pairs": ("counterfactual_pairs", changed_scenes),
    "answers": ("answers", said_of),
    "pronoun_resolution": ("pronoun_resolution", described),
    "caption_gender": ("caption_gender", described),
    "face_verification": ("face_verification", verification),
    "face_verification, pairs": ("face_verification", pairs),
    "identification": ("identification", identification),
    "identification, lists": ("identification", found_lists),
    "reconstruction": ("reconstruction", values),
    "super_resolution": ("super_resolution", values),
}


def _id(frame: pl.DataFrame) -> str:
    return "instance_id" if "instance_id" in frame.columns else "image_id"


def reordered(case: Case, draw: np.random.Generator) -> Case:
    """Put rows in another order: nothing is lost, so nothing may change."""
    return replace(
        case,
        predictions=case.predictions.sample(fraction=1, shuffle=True, seed=int(draw.integers(99))),
    )


def others(case: Case, draw: np.random.Generator) -> Case:
    """Give everybody somebody else's answers: ids in another order, answers as they were."""
    frame = case.predictions
    names = [c for c in ("instance_id", "other_id", "image_id") if c in frame.columns]
    known = pl.concat([frame[c] for c in names]).unique(maintain_order=True)
    while True:
        order = draw.permutation(len(known))
        if (order != np.arange(len(known))).mean() > 0.9:
            break
    swapped = dict(zip(known.to_list(), known[order].to_list(), strict=True))
    return replace(case, predictions=frame.with_columns(pl.col(names).replace(swapped)))


def off_by_one(case: Case, draw: np.random.Generator) -> Case:
    """Lose a row of answers: everybody has the next person's, or the next picture's."""
    del draw
    frame, name = case.predictions, _id(case.predictions)
    known = frame[name].unique(maintain_order=True)
    moved = dict(zip(known.to_list(), [*known[1:].to_list(), known[0]], strict=True))
    if "other_id" in frame.columns:  # a pair has no next person: its scores move
        return replace(
            case, predictions=frame.with_columns(pl.col("score").shift(1, fill_value=0.2))
        )
    return replace(case, predictions=frame.with_columns(pl.col(name).replace(moved)))


def renamed(case: Case, draw: np.random.Generator) -> Case:
    """Name people or pictures as another program does."""
    del draw
    frame = case.predictions
    names = [c for c in ("instance_id", "other_id", "image_id") if c in frame.columns]
    return replace(
        case,
        predictions=frame.with_columns(pl.format("x/{}.png", pl.col(c)).alias(c) for c in names),
    )


def halved(case: Case, draw: np.random.Generator) -> Case:
    """Lose the second half of the file."""
    del draw
    frame, name = case.predictions, _id(case.predictions)
    known = frame[name].unique(maintain_order=True)
    return replace(
        case, predictions=frame.filter(pl.col(name).is_in(known[: len(known) // 2].implode()))
    )


def other_words(case: Case, draw: np.random.Generator) -> Case:
    """Say the same in other words: initials, capitals, numbers."""
    frame = case.predictions
    column = next(c for c in ("label", "metric", "part") if c in frame.columns)
    known = frame[column].unique(maintain_order=True).to_list()
    spell = [str.upper, lambda w: w[:1].upper(), lambda w: str(known.index(w)), lambda w: f"{w} "]
    word = spell[int(draw.integers(len(spell)))]
    told = frame.with_columns(pl.col(column).replace({w: word(w) for w in known}))
    options = case.options
    if known == ["person"]:  # a detector of one thing: any word for it will do
        options = {**options, "person_label": "person"}
    return replace(case, predictions=told, options=options)


def swapped_words(case: Case, draw: np.random.Generator) -> Case:
    """Number the classes in another order."""
    del draw
    frame = case.predictions
    turned = dict(zip(CLASSES, (*CLASSES[1:], CLASSES[0]), strict=True))
    return replace(case, predictions=frame.with_columns(pl.col("label").replace(turned)))


def other_scale(case: Case, draw: np.random.Generator) -> Case:
    """Give numbers on another scale: percents, shares, pictures at another size, distances."""
    frame = case.predictions
    if set(BOX) <= set(frame.columns):
        factor = (0.25, 3.0, 1 / WIDTH)[int(draw.integers(3))]
        return replace(case, predictions=frame.with_columns(pl.col(BOX) * factor))
    if "keypoints_x" in frame.columns:
        factor = (0.25, 3.0, 1 / WIDTH)[int(draw.integers(3))]
        scaled = pl.col("keypoints_x", "keypoints_y").list.eval(pl.element() * factor)
        return replace(case, predictions=frame.with_columns(scaled))
    if "other_id" in frame.columns:
        return replace(case, predictions=frame.with_columns(score=1 - pl.col("score")))
    if "value" in frame.columns:
        return replace(
            case,
            predictions=frame.with_columns(
                value=pl.col("value") / (100, -1)[int(draw.integers(2))]
            ),
        )
    return replace(case, predictions=frame.with_columns(score=pl.lit(93.0)))


def other_box(case: Case, draw: np.random.Generator) -> Case:
    """Write boxes as corners, by their centre, or with y before x."""
    x, y, w, h = (pl.col(c) for c in BOX)
    written = (
        {"box_w": x + w, "box_h": y + h},
        {"box_x": x + w / 2, "box_y": y + h / 2},
        {"box_x": y, "box_y": x, "box_w": h, "box_h": w},
    )[int(draw.integers(3))]
    return replace(case, predictions=case.predictions.with_columns(**written))


def truth_lost(case: Case, draw: np.random.Generator) -> Case:
    """Lose the annotations of a quarter of the pictures, and with them that they exist."""
    known = case.dataset.instances["image_id"].unique(maintain_order=True)
    gone = draw.choice(len(known), len(known) // 4, replace=False)
    left = known.filter(~pl.int_range(len(known), eager=True).is_in(gone.tolist()))
    stay = pl.col("image_id").is_in(left.implode())
    kept = case.dataset.instances.filter(stay)
    rows = case.dataset.attributes.filter(pl.col("unit_id").is_in(kept["instance_id"].implode()))
    images = case.dataset.images.filter(stay)
    return replace(
        case, dataset=replace(case.dataset, instances=kept, attributes=rows, images=images)
    )


def resized(case: Case, draw: np.random.Generator) -> Case:
    """Give pixels of pictures that were made a little or much larger or smaller, or of one size."""
    factor = (1.1, 1 / 1.1, 2.0, 0.5)[int(draw.integers(4))]
    frame = case.predictions
    if "keypoints_x" in frame.columns:
        scaled = pl.col("keypoints_x", "keypoints_y").list.eval(pl.element() * factor)
        return replace(case, predictions=frame.with_columns(scaled))
    return replace(case, predictions=frame.with_columns(pl.col(BOX) * factor))


WAYS: dict[str, Callable[[Case, np.random.Generator], Case]] = {
    f.__name__: f
    for f in (reordered, others, off_by_one, renamed, halved, other_words, swapped_words,
              other_scale, other_box, truth_lost, resized)
}  # fmt: skip
_CLASSED = {"classification", "open_vocabulary", "grounding"}
_BOXED = {"detection", "face_detection", "open_vocabulary", "grounding"}
_VALUES = {"reconstruction", "super_resolution"}


def fits(name: str, way: str) -> bool:
    """Tell whether a way can be told from a sound file at all, and makes sense of a task."""
    # A number measured elsewhere says nothing of whose it is, and any number nothing of its scale.
    untold = ("others", "off_by_one") if name in _VALUES else ()
    # Nor does a score of an image for a text.
    told_of_nothing = name in (
        "number", "counts", "text_to_image_retrieval", "agreement", "label_association",
        "generated_images", "counterfactual_pairs", "answers",
    )  # fmt: skip
    if name == "identification, lists" and way == "off_by_one":
        return False  # most of a person's candidates are next to others of theirs
    if way in (("others", "off_by_one", "other_scale") if told_of_nothing else untold):
        return False
    if way == "other_words":
        return name in _CLASSED | _VALUES | {
            "face_parsing",
            "detection",
            "face_detection",
            "segmentation",
            "keypoints",
        }
    of_tasks = {
        "swapped_words": _CLASSED,
        "other_box": _BOXED,
        "truth_lost": _BOXED | {"keypoints", "segmentation"},
        "resized": _BOXED | {"keypoints"},  # masks are of their pictures' size, or refused
    }
    if way in of_tasks:
        return name in of_tasks[way]
    if way == "other_scale":  # a cosine does not change with the length of vectors
        return name not in (
            "retrieval", "face_verification", "identification", "segmentation", "face_parsing",
            "pronoun_resolution", "caption_gender", "generated_images",
        )  # fmt: skip
    return True
