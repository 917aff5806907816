"""Suspicious photos: rows of evidence become a sheet of subjects and photos for people to review.

FHIBE (Methods, "Detection and removal of suspicious images"): photos found on the web, landmarks
that contradict the stated country, patterns that reviewers noticed. A subject with one such photo
is excluded with every photo, so subjects are reviewed; logos concern one photo. No row decides
anything by itself: 62 % of the web detector's matches were false positives.

FHIBE (Methods, "Quality control and data filtering") compared the stated scene with the pixels, and
does not print how. Ours is one rule without a model: sky is bright, blue and smooth. It lists
photos for people to look at; a blue wall is listed too, and a photo outdoors without sky is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.formatting import pluralise
from isolux.io.images import Pixels, read_downscaled
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_images, read_people_in_photos
from isolux_curate.project.verdicts import (
    record_journal_note_unless_repeated,
    refuse_undecided_hash_matches,
)
from isolux_curate.quality.typed_answers import read_facts_by_unit_id
from isolux_curate.user_tables import (
    convert_columns_to_text,
    read_table_as_text,
    refuse_faulty_rows,
    refuse_missing_columns,
)

INDOORS = ("indoor", "indoors", "inside")
MIN_SKY_SHARE = 0.5
"""The share of sky in the upper third of a photo above which "indoors" is doubtful."""
_MAX_SIDE_PX = 256  # photos are downscaled to this longer side
_MIN_BRIGHTNESS, _MIN_BLUE_EXCESS, _MAX_GRADIENT = 120.0, 12.0, 6.0  # grey levels


def compute_sky_share(pixels: Pixels) -> float:
    """Compute the share of the upper third that looks like blue sky, 0 to 1.

    Examples
    --------
    >>> blue = np.full((30, 30, 3), (110, 160, 230), np.uint8)
    >>> compute_sky_share(blue), compute_sky_share(blue[..., ::-1])
    (1.0, 0.0)
    """
    upper_third = np.asarray(pixels, dtype=np.float64)[: max(pixels.shape[0] // 3, 1)]
    grey = upper_third.mean(axis=2)
    # The larger difference from the pixel to the left and the one above.
    gradients = np.zeros_like(grey)
    gradients[:, 1:] = np.abs(np.diff(grey, axis=1))
    gradients[1:] = np.maximum(gradients[1:], np.abs(np.diff(grey, axis=0)))
    is_blue = (upper_third[..., 2] - upper_third[..., 0] >= _MIN_BLUE_EXCESS) & (
        upper_third[..., 2] >= upper_third[..., 1]
    )
    return float((is_blue & (grey >= _MIN_BRIGHTNESS) & (gradients <= _MAX_GRADIENT)).mean())


def compute_sky_share_of_file(path: str | Path) -> float:
    """Compute the ``compute_sky_share`` of a photo's file, downscaled."""
    return compute_sky_share(read_downscaled(path, _MAX_SIDE_PX).pixels)


STEP = "suspicious"
LOGO_SCORE = 0.6
"""FHIBE: the minimum score of a detected logo that is reviewed."""
LOGO, SCENE, CONTRADICTION = "logo", "scene", "contradiction"
EVIDENCE_SCHEMA = {
    "image_id": pl.String,
    "subject_id": pl.String,
    "kind": pl.String,
    "says": pl.String,
    "score": pl.Float64,
}
_SHEET_COLUMNS = ("unit_kind", "unit_id", "kinds", "photos", "evidence", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class Suspects:
    """The sheet of subjects and photos to be reviewed.

    Parameters
    ----------
    sheet : polars.DataFrame
        One row a unit, most kinds of evidence first: ``unit_kind`` (subject, of logos image),
        ``unit_id, kinds, photos, evidence``, and empty ``verdict, reason``.
    evidence_kinds : polars.DataFrame
        ``kind, rows, photos, subjects``.
    notes : tuple of str
    """

    sheet: pl.DataFrame
    evidence_kinds: pl.DataFrame
    notes: tuple[str, ...]


def gather_evidence_for_review(
    project: Project,
    *,
    evidence: str | Path | None = None,
    contradict: Sequence[str] = (),
    scene: str | None = None,
    logo_score: float = LOGO_SCORE,
) -> Suspects:
    """Bring evidence together, a row for each unit to be reviewed.

    Parameters
    ----------
    project : Project
        An open project.
    evidence : str, optional
        A table image_id or subject_id, kind (web match, location, logo, …), says, score.
    contradict : sequence of str
        Facts that must say the same, as in --contradict country=landmark_country.
    scene : str, optional
        The fact that says indoors or outdoors, to be compared with the pixels.
    logo_score : float
        Logos with a lower score are ignored (FHIBE's).
    """
    refuse_undecided_hash_matches(project)
    if evidence is None and not contradict and scene is None:
        raise SpecError(
            "there is no evidence to collect",
            expected="a table of evidence, --contradict FACT=FACT, or --scene FACT",
        )
    tables = [pl.DataFrame(schema=EVIDENCE_SCHEMA)]
    notes: list[str] = []
    if evidence is not None:
        rows, n_ignored = _read_evidence_without_faint_logos(
            project, Path(evidence).expanduser(), logo_score
        )
        tables.append(rows)
        if n_ignored:
            notes.append(
                f"{pluralise(n_ignored, 'logo')} of a score below {logo_score:g} passed over."
            )
    tables += [_find_contradicting_facts(project, pair) for pair in contradict]
    if scene is not None:
        tables.append(_find_indoor_photos_with_sky(project, scene))
    evidence_rows, n_excluded = _join_subjects_drop_excluded(project, pl.concat(tables))
    if n_excluded:
        notes.append(f"{n_excluded:,} rows are about photos or subjects that have left already.")
    evidence_kinds = (
        evidence_rows.group_by("kind")
        .agg(
            rows=pl.len(),
            photos=pl.col("image_id").n_unique(),
            subjects=pl.col("subject_id").n_unique(),
        )
        .sort("kind")
        .cast(dict.fromkeys(("rows", "photos", "subjects"), pl.Int64))
    )
    sheet = _build_sheet_of_reviewed_units(evidence_rows)
    # Kinds may be a reviewer's own words: the journal counts them and does not repeat them.
    counts = {
        "rows": evidence_rows.height,
        "kinds": evidence_kinds.height,
        "to_review": sheet.height,
    }
    record_journal_note_unless_repeated(project, STEP, "evidence", counts)
    return Suspects(sheet, evidence_kinds, tuple(notes))


def _read_evidence_without_faint_logos(
    project: Project, path: Path, logo_score: float
) -> tuple[pl.DataFrame, int]:
    """Read the user's rows of evidence, and refuse unknown ids; the rows and ignored logos."""
    frame = read_table_as_text(path, "kind")
    refuse_missing_columns(
        frame, ["image_id"] if "subject_id" not in frame.columns else [], str(path)
    )
    rows = convert_columns_to_text(frame, EVIDENCE_SCHEMA)
    rows = rows.with_columns(pl.col("kind").str.to_lowercase().str.strip_chars())
    rows = rows.with_columns(_has_score=pl.col("score").is_not_null()).with_columns(
        pl.col("score").cast(pl.Float64, strict=False)
    )
    lacks_unit = pl.col("image_id").is_null() & pl.col("subject_id").is_null()
    for is_faulty, problem, expected in (
        (lacks_unit, "a row is about nobody", "image_id or subject_id"),
        (pl.col("kind").is_null(), "a row is of no kind", "web match, location, logo, …"),
        (
            pl.col("_has_score") & ~pl.col("score").is_between(0, 1).fill_null(value=False),
            "a score is none",
            "a number from 0 to 1",
        ),
    ):
        refuse_faulty_rows(
            rows.select(is_faulty).to_series(), problem, str(path), expected=expected
        )
    for column, existing_ids in (
        ("image_id", read_images(project, include_excluded=True)["image_id"]),
        ("subject_id", read_people_in_photos(project, include_excluded=True)["subject_id"]),
    ):
        unknown_ids = rows.filter(
            pl.col(column).is_not_null()
            & ~pl.col(column).is_in(existing_ids.drop_nulls().implode())
        )[column]
        if len(unknown_ids):
            unit_kind = column.removesuffix("_id")
            raise UnknownNameError(
                unit_kind,
                unknown_ids[0],
                existing_ids.drop_nulls().unique().to_list(),
                where=str(path),
            )
    has_low_score = (pl.col("kind") == LOGO) & (pl.col("score") < logo_score).fill_null(value=False)
    kept_rows = rows.filter(~has_low_score)
    return kept_rows.select(list(EVIDENCE_SCHEMA)), rows.height - kept_rows.height


def _find_contradicting_facts(project: Project, fact_pair: str) -> pl.DataFrame:
    """Find people with different values of two facts."""
    fact, _, other_fact = (fact_name.strip() for fact_name in fact_pair.partition("="))
    if not fact or not other_fact:
        raise SpecError(
            "this is not a pair of facts",
            expected="country=landmark_country",
            found=repr(fact_pair),
            where="contradict",
        )
    facts = read_facts_by_unit_id(project, [fact, other_fact])
    people = read_people_in_photos(project).select("instance_id", "image_id")
    person_facts = people.join(
        facts, left_on="instance_id", right_on="unit_id", maintain_order="left"
    )
    normalised_facts = [pl.col(n).str.strip_chars().str.to_lowercase() for n in (fact, other_fact)]
    description = pl.format(f"{fact}: {{}}, {other_fact}: {{}}", fact, other_fact)
    return _build_evidence_rows(
        person_facts.filter(normalised_facts[0] != normalised_facts[1]),
        f"{CONTRADICTION} of {fact}",
        description,
    )


def _build_evidence_rows(
    person_facts: pl.DataFrame,
    evidence_kind: str,
    description: pl.Expr,
    score: pl.Expr | None = None,
) -> pl.DataFrame:
    score_column = pl.lit(None, dtype=pl.Float64) if score is None else score
    return person_facts.select(
        "image_id", "subject_id", kind=pl.lit(evidence_kind), says=description, score=score_column
    )


def _find_indoor_photos_with_sky(project: Project, scene_fact: str) -> pl.DataFrame:
    """Find photos whose scene is stated as indoors and that show a sky."""
    facts = read_facts_by_unit_id(project, [scene_fact])
    people = read_people_in_photos(project).select("instance_id", "image_id")
    person_facts = people.join(
        facts, left_on="instance_id", right_on="unit_id", maintain_order="left"
    )
    indoor_people = person_facts.filter(
        pl.col(scene_fact).str.to_lowercase().str.strip_chars().is_in(INDOORS)
    )
    files = read_images(project).filter(pl.col("file").is_not_null()).select("image_id", "file")
    photos = indoor_people.select("image_id").unique().sort("image_id").join(files, on="image_id")
    shares = [compute_sky_share_of_file(project.folder / file) for file in photos["file"]]
    sky_photos = photos.with_columns(share=pl.Series(shares, dtype=pl.Float64)).filter(
        pl.col("share") > MIN_SKY_SHARE
    )
    doubtful_people = indoor_people.join(sky_photos, on="image_id", maintain_order="left")
    description = pl.format(
        f"{scene_fact}: {{}}; {{}} % of the upper third looks like sky",
        scene_fact,
        (pl.col("share") * 100).round(0).cast(pl.Int64),
    )
    return _build_evidence_rows(doubtful_people, SCENE, description, pl.col("share"))


def _join_subjects_drop_excluded(
    project: Project, evidence_rows: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Join subjects to rows about photos, and drop rows about excluded units; how many."""
    numbered_rows = evidence_rows.with_row_index("row")
    people = read_people_in_photos(project).select("image_id", "subject_id").unique()
    photos = read_images(project)["image_id"]
    of_subjects = numbered_rows.filter(pl.col("image_id").is_null()).filter(
        pl.col("subject_id").is_in(people["subject_id"].drop_nulls().implode())
    )
    of_photos = numbered_rows.filter(
        pl.col("image_id").is_not_null() & pl.col("image_id").is_in(photos.implode())
    )
    with_subject = of_photos.filter(pl.col("subject_id").is_not_null())
    without_subject = of_photos.filter(pl.col("subject_id").is_null()).drop("subject_id")
    current_rows = pl.concat(
        [
            of_subjects,
            with_subject,
            without_subject.join(people, on="image_id", how="left").select(numbered_rows.columns),
        ]
    )
    n_excluded = evidence_rows.height - current_rows["row"].n_unique()
    return current_rows.sort("row").select(list(EVIDENCE_SCHEMA)).unique(
        maintain_order=True
    ), n_excluded


def _build_sheet_of_reviewed_units(rows: pl.DataFrame) -> pl.DataFrame:
    """Group rows by the unit to be decided about: a subject, or for logos a photo."""
    is_photo = (pl.col("kind") == LOGO) | pl.col("subject_id").is_null()
    description = (
        pl.when(pl.col("says").is_null())
        .then(pl.col("kind"))
        .otherwise(pl.format("{}: {}", "kind", "says"))
    )
    evidence_rows = rows.with_columns(
        unit_kind=pl.when(is_photo).then(pl.lit("image")).otherwise(pl.lit("subject")),
        unit_id=pl.when(is_photo).then(pl.col("image_id")).otherwise(pl.col("subject_id")),
        told=description,
    )
    units = evidence_rows.group_by("unit_kind", "unit_id").agg(
        kinds=pl.col("kind").unique().sort().str.join(";"),
        n=pl.col("kind").n_unique(),
        photos=pl.col("image_id").drop_nulls().unique().sort().str.join(";"),
        evidence=pl.col("told").unique().sort().str.join(" | "),
        verdict=pl.lit(None, dtype=pl.String),
        reason=pl.lit(None, dtype=pl.String),
    )
    return units.sort("n", "unit_kind", "unit_id", descending=[True, True, False]).select(
        _SHEET_COLUMNS
    )
