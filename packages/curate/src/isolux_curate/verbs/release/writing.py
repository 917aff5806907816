"""A release's files: people and answers under pseudonyms, photos, objects, counts, papers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from isolux.datasets import TERMS
from isolux.io.atomic import write_text
from isolux.io.csv_text import csv_text
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.notes import Caution
from isolux_curate.privacy import KEY_MARK, NO_KEY, key_mark
from isolux_curate.privacy.photos import Box, copy_photos, filler, read_regions
from isolux_curate.privacy.table import AGGREGATE_ONLY, Told, anonymised, identified, pseudonym
from isolux_curate.project.folder import MARK as PROJECT
from isolux_curate.project.reading import read_bystanders, read_images
from isolux_curate.publication.people import FIXED, Published
from isolux_curate.publication.photos import split_by_subject
from isolux_curate.verbs.release.papers import Release, crowd_work_sheets, data_card, datasheet
from isolux_curate.verbs.release.tables import (
    composition_of,
    croissant_text,
    figure_svg,
    with_others,
)

if TYPE_CHECKING:
    from isolux.cards import Card, Facts
    from isolux_curate.project.folder import Project
    from isolux_curate.publication.photos import Chosen
    from isolux_curate.verbs.release.told import Told as Journal

_IDS = ("instance_id", "image_id", "subject_id", "cluster_id")
_MOST_GROUPS = 40  # of an attribute that the composition tells
_PHOTO_FILE = "file"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``publish:`` in ``project.yaml`` says of every publication.

    Parameters
    ----------
    licence : str
        The dataset's licence, in words.
    split : str
        Splits and their shares, as train=0.8,test=0.2; no subject is in two.
    stratify : list of str
        Attributes to balance across the splits.
    seed : int
        Of the splits.
    date : list of str
        Facts that are dates: months are published.
    aggregate : list of str
        Facts to publish only as counts, in addition to FHIBE's (relations, country of residence,
        height, weight, pregnancy, disability and difficulty), which always are.
    publish_min : int
        The smallest count of people that is published.
    keep_exif : list of str
        Tags of JPEG files to keep: Make, Model.
    inpaint : str
        What fills regions: black, opencv or python:MODULE:FUNCTION.
    """

    licence: str = ""
    split: str = "test=1"
    stratify: list[str] = []
    seed: int = 0
    date: list[str] = []
    aggregate: list[str] = []
    publish_min: int = 10
    keep_exif: list[str] = []
    inpaint: str = "black"


def settings_of(project: Project) -> Settings:
    """Read what ``project.yaml`` says of every publication."""
    try:
        return msgspec.convert(project.publish, Settings)
    except msgspec.ValidationError as error:
        raise SpecError(
            "these are not settings of a publication",
            found=str(error),
            expected=", ".join(Settings.__struct_fields__),
            where=f"{project.folder / PROJECT}, publish",
        ) from error


@dataclass(frozen=True, slots=True)
class Ready:
    """What is written, before ids are replaced; regions go by the photo's file."""

    found: Published
    counted: Sequence[str]
    regions: Mapping[str, Sequence[Box]]
    notes: Sequence[str] = ()

    def anonymise(self, asked: Settings, secret: bytes) -> Told:
        """Replace ids, coarsen dates, and count what is published as counts alone."""
        return anonymised(
            self.found.people,
            secret,
            ids=[*_IDS, _PHOTO_FILE],
            dates=asked.date,
            aggregate=self.counted,
            least=asked.publish_min,
            person="subject_id",
        )


def prepare(
    project: Project,
    found: Published,
    asked: Settings,
    shares: Mapping[str, float],
    redact: str | Path | None,
) -> Ready:
    """Split people, and see that all of it may be published; nothing is written."""
    people = found.people
    for name in asked.stratify:
        if name not in found.judgement:
            raise UnknownNameError("attribute", name, found.judgement, where="stratify")
    strata = [pl.col(n).fill_null("") for n in asked.stratify] or [pl.lit("")]
    stratum = pl.concat_str(strata, separator=" | ")
    joined = people.with_columns(stratum=stratum, subject_id=pl.col("cluster_id"))
    split = split_by_subject(joined, shares, asked.seed)
    people = people.with_columns(split).select(*FIXED, *found.judgement)
    never = [c for c in found.judgement if any(word in c.lower() for word in AGGREGATE_ONLY)]
    every = read_images(project, everything=True).select("image_id")
    by_image = read_regions(redact, every, "image_id", column="image_id")
    for image, *box in read_bystanders(project).iter_rows():
        by_image.setdefault(image, []).append((box[0], box[1], box[2], box[3]))
    files = dict(people.select("image_id", _PHOTO_FILE).unique().rows())
    regions = {files[image]: boxes for image, boxes in by_image.items() if image in files}
    counted = tuple(dict.fromkeys([*never, *asked.aggregate]))
    ready = Ready(replace(found, people=people), counted, regions)
    told = ready.anonymise(asked, NO_KEY)
    return replace(ready, notes=(*told.notes, *_on_composition(people, asked.publish_min)))


def _on_composition(people: pl.DataFrame, least: int) -> list[str]:
    """Say who is in no group of the composition, and that there are too few people for any."""
    known = identified(people, "subject_id")
    told: list[str] = []
    if known.height < people.height:
        told.append(
            f"{people.height - known.height:,} of {people.height:,} people in photos have no"
            " subject_id: composition.csv and counts.csv count none of them."
        )
    if known["subject_id"].n_unique() < least:
        told.append(
            Caution(f"composition.csv is empty: fewer than {least} people have a subject_id.")
        )
    return told


def write_release(
    project: Project,
    stage: Path,
    secret: bytes,
    chosen: Chosen,
    held: Ready,
    journal: Journal,
    facts: Facts,
    terms: Mapping[str, Any],
    asked: Settings,
    beside: str | Path | None,
) -> tuple[Release, list[Card]]:
    """Write all files of a release but its manifest."""
    told = held.anonymise(asked, secret)
    names = copy_photos(
        held.found.people[_PHOTO_FILE].sort(),
        project.folder,
        stage,
        secret,
        asked.keep_exif,
        held.regions,
        filler(asked.inpaint),
    )
    new = held.found.people[_PHOTO_FILE].replace_strict(names, return_dtype=pl.String)
    people = told.people.with_columns(new.alias(_PHOTO_FILE)).sort("instance_id")
    answers = _answers(held.found.answers, secret)
    tables = {"people.csv": people, "answers.csv": answers, "counts.csv": told.counts}
    tables = {name: table for name, table in tables.items() if table.height}
    attributes = {n: how for n, how in held.found.judgement.items() if n in people.columns}
    # How many people those without a subject are, nobody knows: they are in no count.
    who = identified(people, "subject_id").with_columns(who="subject_id")
    by = [
        n
        for n in attributes
        if n not in held.found.marks and 0 < who[n].drop_nulls().n_unique() <= _MOST_GROUPS
    ]
    as_words = who.with_columns(pl.col(n).cast(pl.String) for n in by)
    composition, hidden = composition_of(as_words, by, str(terms["name"]), asked.publish_min)
    if beside is not None:
        composition = with_others(composition, beside)
        for attribute in dict.fromkeys(composition["attribute"]):
            shown = composition.filter(attribute=attribute)
            if shown["dataset"].n_unique() > 1:
                write_text(
                    stage / f"composition {_plain(attribute)}.svg",
                    figure_svg(composition, attribute),
                )
    tables["composition.csv"] = composition
    for name, table in tables.items():
        write_text(stage / name, csv_text(table))
    others = []
    objects = _objects(people, held, secret)
    if objects is not None:
        write_text(stage / "objects.json", objects)
        others.append("objects.json")
    splits = dict(people.group_by("split").len().sort("split").rows())
    more = {"attributes": attributes, "splits": splits, KEY_MARK: key_mark(secret)}
    write_text(stage / TERMS, json.dumps(dict(terms) | more, indent=1, ensure_ascii=False) + "\n")
    release = Release(
        str(terms["name"]),
        str(terms["terms"]),
        people.height,
        len(names),
        people["subject_id"].drop_nulls().n_unique(),
        chosen.left,
        splits,
        attributes,
        composition,
        tuple(sorted(set(told.counts["attribute"]))),
        hidden,
        asked.publish_min,
        len(held.regions),
        answers.height,
        held.found.tied,
        people["subject_id"].null_count(),
    )
    cards = [made(release, journal, facts) for made in (data_card, datasheet, crowd_work_sheets)]
    for card in cards:
        write_text(stage / f"{card.kind}.md", card.markdown())
    text = croissant_text(stage, tables, [*others, TERMS], release, facts, str(terms["licence"]))
    write_text(stage / "croissant.json", text)
    return release, cards


def _plain(text: str) -> str:
    return "".join(c if c.isalnum() or c in " -_" else "-" for c in text)


def _answers(answers: pl.DataFrame, secret: bytes) -> pl.DataFrame:
    """Give annotators and people the ids that only the key leads back."""
    named = [
        answers[column].replace_strict(
            {one: pseudonym(secret, column, one) for one in answers[column].unique()},
            return_dtype=pl.String,
        )
        for column in ("instance_id", "annotator_id")
    ]
    return answers.with_columns(named).sort(answers.columns)


def _objects(people: pl.DataFrame, held: Ready, secret: bytes) -> str | None:
    """Write boxes and outlines in COCO's form; numbers follow the pseudonyms' order."""
    boxes = people.filter(pl.col("box_x").is_not_null())
    if boxes.is_empty():
        return None
    photos = people.select("image_id", "file", "width", "height").unique().sort("image_id")
    number = {image: k for k, image in enumerate(photos["image_id"], 1)}
    classes = sorted(boxes["class"].drop_nulls().unique()) or ["person"]
    category = {name: k for k, name in enumerate(classes, 1)}
    drawn = _outlines(held.found.outlines, secret)
    labels = sorted({label for one in drawn.values() for label in one})
    category |= {
        label: len(category) + k for k, label in enumerate(labels, 1) if label not in category
    }
    rows: list[dict[str, Any]] = []
    for row in boxes.iter_rows(named=True):
        head = {
            "image_id": number[row["image_id"]],
            "instance_id": row["instance_id"],
            "iscrowd": 0,
        }
        bbox = [row[f"box_{side}"] for side in "xywh"]
        rows.append(
            head
            | {
                "category_id": category[row["class"] or classes[0]],
                "bbox": bbox,
                "area": bbox[2] * bbox[3],
            }
        )
        for label, outlines in sorted(drawn.get(row["instance_id"], {}).items()):
            rows.append(head | _mask(outlines) | {"category_id": category[label]})
    told = {
        "images": [
            {"id": number[i], "file_name": f, "width": w, "height": h}
            for i, f, w, h in photos.iter_rows()
        ],
        "categories": [{"id": k, "name": name} for name, k in category.items()],
        "annotations": [{"id": k} | row for k, row in enumerate(rows, 1)],
    }
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def _outlines(outlines: pl.DataFrame, secret: bytes) -> dict[str, dict[str, list[list[float]]]]:
    found: dict[str, dict[str, list[list[float]]]] = {}
    for unit, label, points in outlines.select("instance_id", "label", "points").iter_rows():
        flat = [number for point in json.loads(points) for number in point[:2]]
        of = found.setdefault(pseudonym(secret, "instance_id", unit), {})
        of.setdefault(str(label), []).append(flat)
    return found


def _mask(outlines: Sequence[Sequence[float]]) -> dict[str, Any]:
    xs = [x for line in outlines for x in line[0::2]]
    ys = [y for line in outlines for y in line[1::2]]
    left, top = min(xs), min(ys)
    area = sum(abs(sum(a * d - c * b for a, b, c, d in _edges(line))) / 2 for line in outlines)
    return {
        "segmentation": [list(line) for line in outlines],
        "area": area,
        "bbox": [left, top, max(xs) - left, max(ys) - top],
    }


def _edges(line: Sequence[float]) -> list[tuple[float, float, float, float]]:
    points = list(zip(line[0::2], line[1::2], strict=True))
    return [(*a, *b) for a, b in zip(points, [*points[1:], points[0]], strict=True)]
