"""Made-up people and detections of FACET's scale, alike in every run, for several benchmarks.

31,702 images, 49,551 people, 100 boxes an image (3.17 M, of which one in thirty overlaps anybody
by half), and 206 groups that overlap: six attributes, of which skin tone has one to three values a
person, and four intersections. As columns, and as the files that a user would have: COCO's results
(311 MB) and ground truth, the attributes as Parquet. Nothing is kept from one run to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, BOX_PREDICTIONS, INSTANCES

IMAGES, PEOPLE, BOXES_AN_IMAGE, GROUPS = 31_702, 49_551, 100, 206
WIDTH, HEIGHT = 1_500.0, 1_000.0
NEAR = 2.0  # boxes near a person, in the mean; three in four of them overlap by half
BY = (
    "class", "skin_tone", "gender_presentation", "age_presentation", "hair_color", "visible",
    "skin_tone*gender_presentation", "skin_tone*age_presentation",
    "gender_presentation*age_presentation", "skin_tone*hair_color",
)  # fmt: skip
VALUES = {
    "class": 52, "skin_tone": 10, "gender_presentation": 3, "age_presentation": 3,
    "hair_color": 6, "visible": 3,
}  # fmt: skip
BOX = ("box_x", "box_y", "box_w", "box_h")
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class World:
    """Columns: boxes ``[.., 4]`` as x, y, width, height in pixels; images counted from 1."""

    n_images: int
    people_image: IntArray
    people_box: FloatArray
    image: IntArray
    box: FloatArray
    score: FloatArray
    attributes: pl.DataFrame

    @property
    def n_people(self) -> int:
        return len(self.people_image)

    def predictions(self) -> pl.DataFrame:
        """Give the table that a reader of predictions gives, ids as text."""
        words = pl.int_range(self.n_images + 1, eager=True).cast(pl.String)
        columns = {name: np.ascontiguousarray(self.box[:, k]) for k, name in enumerate(BOX)}
        frame = pl.DataFrame(
            {"image_id": words.gather(self.image), **columns, "score": self.score}
        ).with_columns(model=pl.lit("detector"), label=pl.lit("person"))
        return frame.select(column.name for column in BOX_PREDICTIONS.columns)

    def dataset(self) -> Dataset:
        """Give the people as a loader gives them; images are clusters."""
        image = pl.Series(self.people_image).cast(pl.String)
        columns = {name: np.ascontiguousarray(self.people_box[:, k]) for k, name in enumerate(BOX)}
        people = pl.DataFrame(
            {
                "instance_id": person_ids(self.n_people),
                "image_id": image,
                "cluster_id": image,
                **columns,
            }
        )
        info = DatasetInfo(title="Made up", summary="FACET's scale.", references=())
        return Dataset(
            name="made up",
            info=info,
            instances=INSTANCES.conform(people),
            attributes=self.attributes,
            images=pl.DataFrame(
                {"image_id": pl.int_range(1, self.n_images + 1, eager=True).cast(pl.String)}
            ),
        )

    def write(self, folder: Path) -> tuple[Path, Path, Path]:
        """Write results and ground truth in COCO's JSON, and the attributes as Parquet."""
        results, truth = folder / "results.json", folder / "truth.json"
        _write_results(self, results)
        _write_truth(self, truth)
        attributes = folder / "attributes.parquet"
        self.attributes.write_parquet(attributes)
        return results, truth, attributes


def person_ids(n: int) -> pl.Series:
    """Name people by the numbers that they have in COCO's ground truth."""
    return pl.int_range(1, n + 1, eager=True).cast(pl.String)


def make(share: float = 1.0, seed: int = 0) -> World:
    """Make a world of this share of FACET's size."""
    rng = np.random.default_rng(seed)
    n_images, n_people = round(IMAGES * share), round(PEOPLE * share)
    # Every image has somebody, and the others stand anywhere.
    others = rng.integers(0, n_images, n_people - n_images)
    people_image = np.sort(np.concatenate([np.arange(n_images), others]))
    people_box = _boxes(rng, n_people)
    near = np.minimum(rng.poisson(NEAR, n_people), 6)
    of_person = np.repeat(np.arange(n_people), near)
    close = _shifted(rng, people_box[of_person])
    of_image = np.bincount(people_image[of_person], minlength=n_images)
    rest = np.repeat(np.arange(n_images), np.maximum(BOXES_AN_IMAGE - of_image, 0))
    image = np.concatenate([people_image[of_person], rest])
    box = np.concatenate([close, _boxes(rng, len(rest))])
    score = np.concatenate([rng.beta(4, 2, len(close)), rng.beta(1, 6, len(rest))])
    score = np.maximum(score.round(5), 0.00001)
    order = np.lexsort((-score, image))  # as detectors write them
    return World(
        n_images, people_image + 1, people_box, image[order] + 1, box[order], score[order],
        _attributes(rng, n_people),
    )  # fmt: skip


def _boxes(rng: np.random.Generator, n: int) -> FloatArray:
    size = np.exp(rng.normal(np.log((110.0, 220.0)), 0.6, (n, 2)))
    size = np.clip(size, 8.0, (WIDTH - 2, HEIGHT - 2))
    corner = rng.random((n, 2)) * (np.array([WIDTH, HEIGHT]) - size)
    box: FloatArray = np.concatenate([corner, size], axis=1).round(2)
    return box


def _shifted(rng: np.random.Generator, box: FloatArray) -> FloatArray:
    spread = 0.02 + 0.16 * rng.random((len(box), 1))
    size = box[:, 2:]
    corner = box[:, :2] + size * rng.normal(0, spread, size.shape)
    size = size * np.exp(rng.normal(0, spread, size.shape))
    return np.maximum(np.concatenate([corner, size], axis=1), 1.0).round(2)


def _attributes(rng: np.random.Generator, n_people: int) -> pl.DataFrame:
    """Draw everybody's values; a share of the people has two or three neighbouring skin tones."""
    ids = person_ids(n_people)
    parts = []
    for name, n_values in VALUES.items():
        weight = rng.dirichlet(np.full(n_values, 8.0))
        code = rng.choice(n_values, n_people, p=weight)
        person = np.arange(n_people)
        if name == "skin_tone":
            more = rng.integers(0, 3, n_people)
            person = np.repeat(person, more + 1)
            step = np.arange(len(person)) - np.repeat(np.cumsum(more + 1) - more - 1, more + 1)
            code = (code[person] + step) % n_values
        words = pl.Series([f"{name} {v:02d}" for v in range(1, n_values + 1)])
        parts.append(
            pl.DataFrame({"unit_id": ids.gather(person), "value": words.gather(code)}).select(
                unit_kind=pl.lit("instance"), unit_id="unit_id", attribute=pl.lit(name),
                value="value",
            )
        )  # fmt: skip
    return ATTRIBUTES.conform(pl.concat(parts))


def _write_results(world: World, path: Path) -> None:
    box = [pl.Series(np.ascontiguousarray(world.box[:, k])) for k in range(4)]
    rows = pl.select(
        pl.format(
            '{"image_id": {}, "category_id": 1, "bbox": [{}, {}, {}, {}], "score": {}}'.replace(
                '{"', "\x01", 1
            ).replace("{}}", "{}\x02"),
            pl.Series(world.image), *box, pl.Series(world.score),
        )
    ).to_series()  # fmt: skip
    with path.open("w", encoding="ascii") as file:
        file.write("[")
        for start in range(0, len(rows), 1 << 16):
            text = ", ".join(rows[start : start + (1 << 16)].to_list())
            text = text.replace("\x01", '{"').replace("\x02", "}")
            file.write((", " if start else "") + text)
        file.write("]")


def _write_truth(world: World, path: Path) -> None:
    people = zip(world.people_image.tolist(), world.people_box.tolist(), strict=True)
    images = ", ".join(
        f'{{"id": {i}, "file_name": "{i}.jpg", "width": {WIDTH:.0f}, "height": {HEIGHT:.0f}}}'
        for i in range(1, world.n_images + 1)
    )
    annotations = ", ".join(
        f'{{"id": {k}, "image_id": {image}, "category_id": 1, "bbox": {box}, '
        f'"area": {box[2] * box[3]:.2f}, "iscrowd": 0}}'
        for k, (image, box) in enumerate(people, start=1)
    )
    path.write_text(
        f'{{"images": [{images}], "annotations": [{annotations}], '
        '"categories": [{"id": 1, "name": "person"}]}',
        encoding="ascii",
    )
