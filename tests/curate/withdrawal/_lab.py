"""A lab's folders: a project, its inbox, crops, caches, a run with pages, what was published."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

import isolux
from isolux.io.consent import append_consent
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.project.folder import Project, create_or_open_project

PER = 4
SCOPES = ["evaluation", "training", "publication"]


@dataclass
class Lab:
    root: Path
    project: Project
    subjects: list[str]
    photos: pl.DataFrame

    def of(self, subject: str) -> list[str]:
        return self.photos.filter(subject_id=subject)["image_id"].to_list()

    def pixels(self, images: list[str]) -> dict[str, np.ndarray]:
        files = self.photos.filter(pl.col("image_id").is_in(images))
        return {image: np.asarray(Image.open(self.root / "inbox" / file))
                for image, file in files.select("image_id", "file").iter_rows()}  # fmt: skip


def subject_of(k: int) -> str:
    return f"s{k:04d}"


def lab_of(root: Path, n: int, *, names=subject_of, seed: int = 0) -> Lab:
    """Make photos of n subjects, PER of each, and everything that is made of them."""
    rng = np.random.default_rng(seed)
    inbox = root / "inbox"
    inbox.mkdir(parents=True)
    people = [names(k) for k in range(n)]
    rows = []
    for who in people:
        for k in range(PER):
            image = f"{who}_{k}".replace("/", "-")
            file = f"{image}.jpg"
            small = rng.integers(0, 255, (6, 6, 3), dtype=np.uint8)
            Image.fromarray(small).resize((48, 48), Image.Resampling.BICUBIC).save(
                inbox / file, quality=90
            )
            rows.append({"file": file, "image_id": image, "subject_id": who, "copyright": "yes",
                         "copyright_holder": f"holder-{len(rows) % 7}"})  # fmt: skip
    photos = pl.DataFrame(rows)
    photos.write_csv(inbox / "photos.csv")
    pl.DataFrame(
        {"subject_id": people, "age": [20 + k % 50 for k in range(n)],
         "country": [("KE", "NO", "PE")[k % 3] for k in range(n)]}
    ).write_csv(inbox / "subjects.csv")  # fmt: skip
    project = create_or_open_project(root / "faces", curator="ada")
    ingest_sheet_photos(project, inbox / "photos.csv", subject_sheet=inbox / "subjects.csv")
    append_consent(project.consent_path, "grant", "subject", people, SCOPES, note="form of the day")
    lab = Lab(root, project, people, photos)
    _crops(lab)
    _cache(lab, rng)
    _run(lab, rng)
    _published(lab)
    return lab


def _crops(lab: Lab) -> None:
    out = lab.root / "crops"
    (out / "crops").mkdir(parents=True)
    rows = []
    for k, (image, file, who) in enumerate(
        lab.photos.select("image_id", "file", "subject_id").iter_rows()
    ):
        name = f"crops/{image}-1-{k:016x}.png"
        Image.open(lab.root / "inbox" / file).crop((4, 4, 44, 44)).save(out / name)
        rows.append({"id": f"{image}-1", "image_id": image, "subject_id": who, "file": name})
    pl.DataFrame(rows).write_csv(out / "crops.csv")
    (out / "crop.json").write_text('{"state": "finished"}\n')


def _cache(lab: Lab, rng: np.random.Generator) -> None:
    out = lab.root / "answers"
    (out / "shards").mkdir(parents=True)
    units = [f"{image}-1" for image in lab.photos["image_id"]]
    looks = pl.DataFrame(
        {"unit_id": units, "image_id": lab.photos["image_id"], "sha256": ["0" * 64] * len(units)}
    )
    for k, part in enumerate(looks.iter_slices(64)):
        part.write_parquet(out / "shards" / f"{k:06d}-{k:032x}.parquet")
    predictions = pl.DataFrame({"instance_id": units, "label": ["a"] * len(units)})
    predictions.write_parquet(out / "predictions.parquet")
    (out / "predict.json").write_text('{"state": "finished"}\n')
    vectors = rng.normal(size=(len(units), 8)).astype(np.float32)
    np.savez_compressed(out / "embeddings.npz", instance_id=np.array(units), vectors=vectors)


def _run(lab: Lab, rng: np.random.Generator) -> None:
    n = lab.photos.height
    scores = pl.DataFrame(
        {"unit_id": [f"{one}-1" for one in lab.photos["image_id"]],
         "light": ["day", "night"] * (n // 2), "value": rng.integers(0, 2, n).astype(float)}
    )  # fmt: skip
    found = isolux.audit(scores, by="light", replicates=100)
    found.report(lab.root / "runs" / "light")
    isolux.view(found, lab.root / "runs" / "light.html", people=True)


def _published(lab: Lab) -> None:
    out = lab.root / "public"
    (out / "photos").mkdir(parents=True)
    for file in lab.photos["file"]:
        (out / "photos" / file).write_bytes((lab.root / "inbox" / file).read_bytes())
    coco = {"images": [{"id": k, "file_name": f"photos/{file}"}
                       for k, file in enumerate(lab.photos["file"])],
            "annotations": [{"id": k, "image_id": k, "bbox": [0, 0, 9, 9]}
                            for k in range(lab.photos.height)]}  # fmt: skip
    (out / "coco.json").write_text(json.dumps(coco))
    lab.photos.write_ndjson(out / "people.jsonl")
    with zipfile.ZipFile(lab.root / "public.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in lab.photos["file"]:
            archive.write(out / "photos" / file, f"photos/{file}")
        archive.write(out / "coco.json", "coco.json")
    with tarfile.open(lab.root / "tables.tar.gz", "w:gz") as archive:
        data = lab.photos.write_csv().encode()
        info = tarfile.TarInfo("photos.csv")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
