"""Write a release's files: pseudonymised people and answers, photos, objects, counts, documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.notes import Caution
from isolux.datasets import TERMS_FILE
from isolux.io.atomic import write_text
from isolux.io.csv_text import to_safe_csv
from isolux_curate.api.release.documents import (
    Release,
    build_crowdworksheets,
    build_data_card,
    build_datasheet,
)
from isolux_curate.api.release.tables import (
    append_shares_of_other_datasets,
    count_groups_suppressing_small,
    draw_composition_svg,
    format_croissant_json,
)
from isolux_curate.privacy import DUMMY_KEY, KEY_HASH_FIELD, hash_pseudonym_key
from isolux_curate.privacy.photos import (
    Box,
    copy_photos_without_metadata,
    load_region_filler,
    read_redaction_boxes_by_photo,
)
from isolux_curate.privacy.table import (
    AGGREGATE_ONLY,
    PublishableTable,
    anonymise_table,
    compute_pseudonym,
    keep_rows_with_person_id,
)
from isolux_curate.project.folder import PROJECT_FILE as PROJECT
from isolux_curate.project.queries import read_bystander_boxes, read_images
from isolux_curate.publication.people import FIXED_COLUMNS, PublishedPeople
from isolux_curate.publication.photos import assign_subjects_to_splits

if TYPE_CHECKING:
    from isolux.cards import Card, CardFacts
    from isolux_curate.api.release.project_facts import ProjectFacts as Journal
    from isolux_curate.project.folder import Project
    from isolux_curate.publication.photos import EligiblePhotos

_ID_COLUMNS = ("instance_id", "image_id", "subject_id", "cluster_id")
_MAX_GROUPS = 40  # attributes with more groups are not in the composition
_FILE_COLUMN = "file"


class PublicationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of publications, ``publish:`` in ``project.yaml``.

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


def read_publication_settings(project: Project) -> PublicationSettings:
    """Read the settings of publications from ``project.yaml``."""
    try:
        return msgspec.convert(project.publish, PublicationSettings)
    except msgspec.ValidationError as error:
        raise SpecError(
            "these are not settings of a publication",
            found=str(error),
            expected=", ".join(PublicationSettings.__struct_fields__),
            where=f"{project.folder / PROJECT}, publish",
        ) from error


@dataclass(frozen=True, slots=True)
class PreparedRelease:
    """A release before ids are replaced; regions by the photo's file."""

    published: PublishedPeople
    count_columns: Sequence[str]
    regions: Mapping[str, Sequence[Box]]
    notes: Sequence[str] = ()

    def anonymise_people(self, settings: PublicationSettings, key_bytes: bytes) -> PublishableTable:
        """Replace ids, coarsen dates, and count columns that are published as counts only."""
        return anonymise_table(
            self.published.people,
            key_bytes,
            id_columns=[*_ID_COLUMNS, _FILE_COLUMN],
            date_columns=settings.date,
            count_only_columns=self.count_columns,
            min_people=settings.publish_min,
            person="subject_id",
        )


def prepare_and_check_release(
    project: Project,
    published_people: PublishedPeople,
    settings: PublicationSettings,
    share_by_split: Mapping[str, float],
    redaction_table: str | Path | None,
) -> PreparedRelease:
    """Split people, and check that all of it may be published, without writing anything."""
    people = published_people.people
    for name in settings.stratify:
        if name not in published_people.judgement:
            raise UnknownNameError("attribute", name, published_people.judgement, where="stratify")
    strata = [pl.col(n).fill_null("") for n in settings.stratify] or [pl.lit("")]
    stratum = pl.concat_str(strata, separator=" | ")
    people_with_strata = people.with_columns(stratum=stratum, subject_id=pl.col("cluster_id"))
    split = assign_subjects_to_splits(people_with_strata, share_by_split, settings.seed)
    people = people.with_columns(split).select(*FIXED_COLUMNS, *published_people.judgement)
    aggregate_only_columns = [
        c for c in published_people.judgement if any(word in c.lower() for word in AGGREGATE_ONLY)
    ]
    all_images = read_images(project, include_excluded=True).select("image_id")
    by_image = read_redaction_boxes_by_photo(
        redaction_table, all_images, "image_id", photo_column="image_id"
    )
    for image, *box in read_bystander_boxes(project).iter_rows():
        by_image.setdefault(image, []).append((box[0], box[1], box[2], box[3]))
    files = dict(people.select("image_id", _FILE_COLUMN).unique().rows())
    regions = {files[image]: boxes for image, boxes in by_image.items() if image in files}
    count_columns = tuple(dict.fromkeys([*aggregate_only_columns, *settings.aggregate]))
    prepared = PreparedRelease(replace(published_people, people=people), count_columns, regions)
    publishable = prepared.anonymise_people(settings, DUMMY_KEY)
    return replace(
        prepared,
        notes=(*publishable.notes, *_note_people_without_subject(people, settings.publish_min)),
    )


def _note_people_without_subject(people: pl.DataFrame, min_people: int) -> list[str]:
    """Note people in no group of the composition, and caution about too few people."""
    identified_people = keep_rows_with_person_id(people, "subject_id")
    notes: list[str] = []
    if identified_people.height < people.height:
        notes.append(
            f"{people.height - identified_people.height:,} of {people.height:,} people in photos"
            " have no"
            " subject_id: composition.csv and counts.csv count none of them."
        )
    if identified_people["subject_id"].n_unique() < min_people:
        notes.append(
            Caution(f"composition.csv is empty: fewer than {min_people} people have a subject_id.")
        )
    return notes


def write_release_except_manifest(
    project: Project,
    staging_dir: Path,
    key_bytes: bytes,
    eligible: EligiblePhotos,
    prepared: PreparedRelease,
    journal: Journal,
    facts: CardFacts,
    terms: Mapping[str, Any],
    settings: PublicationSettings,
    other_compositions: str | Path | None,
) -> tuple[Release, list[Card]]:
    """Write all files of a release but its manifest."""
    publishable = prepared.anonymise_people(settings, key_bytes)
    names = copy_photos_without_metadata(
        prepared.published.people[_FILE_COLUMN].sort(),
        project.folder,
        staging_dir,
        key_bytes,
        settings.keep_exif,
        prepared.regions,
        load_region_filler(settings.inpaint),
    )
    new_files = prepared.published.people[_FILE_COLUMN].replace_strict(
        names, return_dtype=pl.String
    )
    people = publishable.people.with_columns(new_files.alias(_FILE_COLUMN)).sort("instance_id")
    answers = _pseudonymise_answer_ids(prepared.published.answers, key_bytes)
    tables = {"people.csv": people, "answers.csv": answers, "counts.csv": publishable.counts}
    tables = {name: table for name, table in tables.items() if table.height}
    attributes = {
        n: label_source
        for n, label_source in prepared.published.judgement.items()
        if n in people.columns
    }
    # Rows without a subject are in no count: their number of people is unknown.
    identified_people = keep_rows_with_person_id(people, "subject_id").with_columns(
        who="subject_id"
    )
    by = [
        n
        for n in attributes
        if n not in prepared.published.marks
        and 0 < identified_people[n].drop_nulls().n_unique() <= _MAX_GROUPS
    ]
    as_words = identified_people.with_columns(pl.col(n).cast(pl.String) for n in by)
    composition, hidden = count_groups_suppressing_small(
        as_words, by, str(terms["name"]), settings.publish_min
    )
    if other_compositions is not None:
        composition = append_shares_of_other_datasets(composition, other_compositions)
        for attribute in dict.fromkeys(composition["attribute"]):
            attribute_rows = composition.filter(attribute=attribute)
            if attribute_rows["dataset"].n_unique() > 1:
                write_text(
                    staging_dir / f"composition {_replace_unsafe_file_characters(attribute)}.svg",
                    draw_composition_svg(composition, attribute),
                )
    tables["composition.csv"] = composition
    for name, table in tables.items():
        write_text(staging_dir / name, to_safe_csv(table))
    other_files = []
    objects = _format_coco_objects_or_none(people, prepared, key_bytes)
    if objects is not None:
        write_text(staging_dir / "objects.json", objects)
        other_files.append("objects.json")
    splits = dict(people.group_by("split").len().sort("split").rows())
    extra_terms = {
        "attributes": attributes,
        "splits": splits,
        KEY_HASH_FIELD: hash_pseudonym_key(key_bytes),
    }
    write_text(
        staging_dir / TERMS_FILE,
        json.dumps(dict(terms) | extra_terms, indent=1, ensure_ascii=False) + "\n",
    )
    release = Release(
        str(terms["name"]),
        str(terms["terms"]),
        people.height,
        len(names),
        people["subject_id"].drop_nulls().n_unique(),
        eligible.excluded_counts,
        splits,
        attributes,
        composition,
        tuple(sorted(set(publishable.counts["attribute"]))),
        hidden,
        settings.publish_min,
        len(prepared.regions),
        answers.height,
        prepared.published.tied,
        people["subject_id"].null_count(),
    )
    cards = [
        build_document(release, journal, facts)
        for build_document in (build_data_card, build_datasheet, build_crowdworksheets)
    ]
    for card in cards:
        write_text(staging_dir / f"{card.kind}.md", card.markdown())
    text = format_croissant_json(
        staging_dir, tables, [*other_files, TERMS_FILE], release, facts, str(terms["licence"])
    )
    write_text(staging_dir / "croissant.json", text)
    return release, cards


def _replace_unsafe_file_characters(file_name: str) -> str:
    return "".join(c if c.isalnum() or c in " -_" else "-" for c in file_name)


def _pseudonymise_answer_ids(answers: pl.DataFrame, key_bytes: bytes) -> pl.DataFrame:
    """Replace ids of annotators and people by pseudonyms."""
    pseudonym_columns = [
        answers[column].replace_strict(
            {
                original_id: compute_pseudonym(key_bytes, column, original_id)
                for original_id in answers[column].unique()
            },
            return_dtype=pl.String,
        )
        for column in ("instance_id", "annotator_id")
    ]
    return answers.with_columns(pseudonym_columns).sort(answers.columns)


def _format_coco_objects_or_none(
    people: pl.DataFrame, prepared: PreparedRelease, key_bytes: bytes
) -> str | None:
    """Format boxes and outlines as COCO JSON; numbers follow the pseudonyms' order."""
    boxes = people.filter(pl.col("box_x").is_not_null())
    if boxes.is_empty():
        return None
    photos = people.select("image_id", "file", "width", "height").unique().sort("image_id")
    image_numbers = {image: k for k, image in enumerate(photos["image_id"], 1)}
    classes = sorted(boxes["class"].drop_nulls().unique()) or ["person"]
    category_numbers = {name: k for k, name in enumerate(classes, 1)}
    outlines_by_person = _group_outlines_by_pseudonym(prepared.published.outlines, key_bytes)
    labels = sorted(
        {label for person_outlines in outlines_by_person.values() for label in person_outlines}
    )
    category_numbers |= {
        label: len(category_numbers) + k
        for k, label in enumerate(labels, 1)
        if label not in category_numbers
    }
    rows: list[dict[str, Any]] = []
    for row in boxes.iter_rows(named=True):
        head = {
            "image_id": image_numbers[row["image_id"]],
            "instance_id": row["instance_id"],
            "iscrowd": 0,
        }
        bbox = [row[f"box_{column}"] for column in "xywh"]
        rows.append(
            head
            | {
                "category_id": category_numbers[row["class"] or classes[0]],
                "bbox": bbox,
                "area": bbox[2] * bbox[3],
            }
        )
        for label, outlines in sorted(outlines_by_person.get(row["instance_id"], {}).items()):
            rows.append(
                head
                | _convert_outlines_to_coco_mask(outlines)
                | {"category_id": category_numbers[label]}
            )
    document = {
        "images": [
            {"id": image_numbers[i], "file_name": f, "width": w, "height": h}
            for i, f, w, h in photos.iter_rows()
        ],
        "categories": [{"id": k, "name": name} for name, k in category_numbers.items()],
        "annotations": [{"id": k} | row for k, row in enumerate(rows, 1)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _group_outlines_by_pseudonym(
    outlines: pl.DataFrame, key_bytes: bytes
) -> dict[str, dict[str, list[list[float]]]]:
    outlines_by_person: dict[str, dict[str, list[list[float]]]] = {}
    for unit, label, points in outlines.select("instance_id", "label", "points").iter_rows():
        polygon = [number for point in json.loads(points) for number in point[:2]]
        person_outlines = outlines_by_person.setdefault(
            compute_pseudonym(key_bytes, "instance_id", unit), {}
        )
        person_outlines.setdefault(str(label), []).append(polygon)
    return outlines_by_person


def _convert_outlines_to_coco_mask(outlines: Sequence[Sequence[float]]) -> dict[str, Any]:
    xs = [x for line in outlines for x in line[0::2]]
    ys = [y for line in outlines for y in line[1::2]]
    x_min, y_min = min(xs), min(ys)
    area = sum(
        abs(sum(a * d - c * b for a, b, c, d in _list_polygon_edges(line))) / 2 for line in outlines
    )
    return {
        "segmentation": [list(line) for line in outlines],
        "area": area,
        "bbox": [x_min, y_min, max(xs) - x_min, max(ys) - y_min],
    }


def _list_polygon_edges(flat_polygon: Sequence[float]) -> list[tuple[float, float, float, float]]:
    points = list(zip(flat_polygon[0::2], flat_polygon[1::2], strict=True))
    return [(*a, *b) for a, b in zip(points, [*points[1:], points[0]], strict=True)]
