"""Suspicious photos: rows of evidence become a sheet of subjects and photos for people to review.

FHIBE (Methods, "Detection and removal of suspicious images"): photos found on the web, places that
contradict what was said, patterns that reviewers noticed. A subject with one such photo leaves with
every photo, so subjects are reviewed; logos are about one photo. No row decides anything by itself:
62 % of what the web detector found was wrong.

FHIBE (Methods, "Quality control and data filtering") compared scenes that were said to be outdoors
with what the pixels show, and does not print how. Ours is one rule without a model: sky is bright,
blue and smooth. It names photos for people to look at; a blue wall is named too, and
a photo outdoors without sky is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from isolux.io.images import Pixels, read_shrunk
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.words import numbered
from isolux_curate.project.decisions import note, refuse_held
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import read_images, read_instances
from isolux_curate.quality.answers import facts_of_units
from isolux_curate.user_tables import read_text, refuse_missing, refuse_rows, to_text

INDOORS = ("indoor", "indoors", "inside")
SKY = 0.5
"""Of the upper third of a photo: from this share of sky on, "indoors" is doubted."""
_SIDE = 256  # pixels of the longer side that are looked at
_BRIGHT, _BLUER, _SMOOTH = 120.0, 12.0, 6.0  # grey levels


def sky_share(pixels: Pixels) -> float:
    """Give the share of the upper third that looks like blue sky, 0 to 1.

    Examples
    --------
    >>> blue = np.full((30, 30, 3), (110, 160, 230), np.uint8)
    >>> sky_share(blue), sky_share(blue[..., ::-1])
    (1.0, 0.0)
    """
    top = np.asarray(pixels, dtype=np.float64)[: max(pixels.shape[0] // 3, 1)]
    grey = top.mean(axis=2)
    # A gradient of one pixel to the next, along both sides.
    steps = np.zeros_like(grey)
    steps[:, 1:] = np.abs(np.diff(grey, axis=1))
    steps[1:] = np.maximum(steps[1:], np.abs(np.diff(grey, axis=0)))
    blue = (top[..., 2] - top[..., 0] >= _BLUER) & (top[..., 2] >= top[..., 1])
    return float((blue & (grey >= _BRIGHT) & (steps <= _SMOOTH)).mean())


def sky_share_of_file(path: str | Path) -> float:
    """Read a photo, made small, and give its ``sky_share``."""
    return sky_share(read_shrunk(path, _SIDE).pixels)


STEP = "suspicious"
LOGO_SCORE = 0.6
"""FHIBE: a detector's score from which on a logo is looked at."""
LOGO, SCENE, CONTRADICTION = "logo", "scene", "contradiction"
EVIDENCE = {
    "image_id": pl.String,
    "subject_id": pl.String,
    "kind": pl.String,
    "says": pl.String,
    "score": pl.Float64,
}
_SHEET = ("unit_kind", "unit_id", "kinds", "photos", "evidence", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class Suspects:
    """What is to be reviewed.

    Parameters
    ----------
    sheet : polars.DataFrame
        One row a unit, most kinds of evidence first: ``unit_kind`` (subject, of logos image),
        ``unit_id, kinds, photos, evidence``, and empty ``verdict, reason``.
    kinds : polars.DataFrame
        ``kind, rows, photos, subjects``.
    notes : tuple of str
    """

    sheet: pl.DataFrame
    kinds: pl.DataFrame
    notes: tuple[str, ...]


def gather_suspects(
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
    refuse_held(project)
    if evidence is None and not contradict and scene is None:
        raise SpecError(
            "there is no evidence to collect",
            expected="a table of evidence, --contradict FACT=FACT, or --scene FACT",
        )
    parts = [pl.DataFrame(schema=EVIDENCE)]
    notes: list[str] = []
    if evidence is not None:
        rows, passed = _given(project, Path(evidence).expanduser(), logo_score)
        parts.append(rows)
        if passed:
            notes.append(f"{numbered(passed, 'logo')} of a score below {logo_score:g} passed over.")
    parts += [_contradictions(project, pair) for pair in contradict]
    if scene is not None:
        parts.append(_scenes(project, scene))
    whole, gone = _of_standing(project, pl.concat(parts))
    if gone:
        notes.append(f"{gone:,} rows are about photos or subjects that have left already.")
    kinds = (
        whole.group_by("kind")
        .agg(
            rows=pl.len(),
            photos=pl.col("image_id").n_unique(),
            subjects=pl.col("subject_id").n_unique(),
        )
        .sort("kind")
        .cast(dict.fromkeys(("rows", "photos", "subjects"), pl.Int64))
    )
    sheet = _sheet(whole)
    # Kinds may be a reviewer's own words: the journal counts them and does not repeat them.
    counts = {"rows": whole.height, "kinds": kinds.height, "to_review": sheet.height}
    note(project, STEP, "evidence", counts)
    return Suspects(sheet, kinds, tuple(notes))


def _given(project: Project, path: Path, logo_score: float) -> tuple[pl.DataFrame, int]:
    """Read the user's rows; those about unknown ids are refused."""
    frame = read_text(path, "kind")
    refuse_missing(frame, ["image_id"] if "subject_id" not in frame.columns else [], str(path))
    rows = to_text(frame, EVIDENCE)
    rows = rows.with_columns(pl.col("kind").str.to_lowercase().str.strip_chars())
    rows = rows.with_columns(_given=pl.col("score").is_not_null()).with_columns(
        pl.col("score").cast(pl.Float64, strict=False)
    )
    about = pl.col("image_id").is_null() & pl.col("subject_id").is_null()
    for wrong, problem, expected in (
        (about, "a row is about nobody", "image_id or subject_id"),
        (pl.col("kind").is_null(), "a row is of no kind", "web match, location, logo, …"),
        (
            pl.col("_given") & ~pl.col("score").is_between(0, 1).fill_null(value=False),
            "a score is none",
            "a number from 0 to 1",
        ),
    ):
        refuse_rows(rows.select(wrong).to_series(), problem, str(path), expected=expected)
    for column, known in (
        ("image_id", read_images(project, everything=True)["image_id"]),
        ("subject_id", read_instances(project, everything=True)["subject_id"]),
    ):
        strange = rows.filter(
            pl.col(column).is_not_null() & ~pl.col(column).is_in(known.drop_nulls().implode())
        )[column]
        if len(strange):
            kind = column.removesuffix("_id")
            raise UnknownNameError(
                kind, strange[0], known.drop_nulls().unique().to_list(), where=str(path)
            )
    weak = (pl.col("kind") == LOGO) & (pl.col("score") < logo_score).fill_null(value=False)
    kept = rows.filter(~weak)
    return kept.select(list(EVIDENCE)), rows.height - kept.height


def _contradictions(project: Project, pair: str) -> pl.DataFrame:
    """Find people of whom two facts say different things."""
    one, _, other = (part.strip() for part in pair.partition("="))
    if not one or not other:
        raise SpecError(
            "this is not a pair of facts",
            expected="country=landmark_country",
            found=repr(pair),
            where="contradict",
        )
    facts = facts_of_units(project, [one, other])
    people = read_instances(project).select("instance_id", "image_id")
    held = people.join(facts, left_on="instance_id", right_on="unit_id", maintain_order="left")
    plain = [pl.col(n).str.strip_chars().str.to_lowercase() for n in (one, other)]
    said = pl.format(f"{one}: {{}}, {other}: {{}}", one, other)
    return _rows(held.filter(plain[0] != plain[1]), f"{CONTRADICTION} of {one}", said)


def _rows(
    held: pl.DataFrame, kind: str, says: pl.Expr, score: pl.Expr | None = None
) -> pl.DataFrame:
    none = pl.lit(None, dtype=pl.Float64) if score is None else score
    return held.select("image_id", "subject_id", kind=pl.lit(kind), says=says, score=none)


def _scenes(project: Project, fact: str) -> pl.DataFrame:
    """Find photos that are said to be indoors and show a sky."""
    facts = facts_of_units(project, [fact])
    people = read_instances(project).select("instance_id", "image_id")
    held = people.join(facts, left_on="instance_id", right_on="unit_id", maintain_order="left")
    said = held.filter(pl.col(fact).str.to_lowercase().str.strip_chars().is_in(INDOORS))
    files = read_images(project).filter(pl.col("file").is_not_null()).select("image_id", "file")
    shown = said.select("image_id").unique().sort("image_id").join(files, on="image_id")
    shares = [sky_share_of_file(project.folder / file) for file in shown["file"]]
    seen = shown.with_columns(share=pl.Series(shares, dtype=pl.Float64)).filter(
        pl.col("share") > SKY
    )
    doubted = said.join(seen, on="image_id", maintain_order="left")
    told = pl.format(
        f"{fact}: {{}}; {{}} % of the upper third looks like sky",
        fact,
        (pl.col("share") * 100).round(0).cast(pl.Int64),
    )
    return _rows(doubted, SCENE, told, pl.col("share"))


def _of_standing(project: Project, rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Give rows about a photo its subjects; leave out what has left. How many rows left."""
    numbered = rows.with_row_index("row")
    people = read_instances(project).select("image_id", "subject_id").unique()
    photos = read_images(project)["image_id"]
    of_subjects = numbered.filter(pl.col("image_id").is_null()).filter(
        pl.col("subject_id").is_in(people["subject_id"].drop_nulls().implode())
    )
    of_photos = numbered.filter(
        pl.col("image_id").is_not_null() & pl.col("image_id").is_in(photos.implode())
    )
    named = of_photos.filter(pl.col("subject_id").is_not_null())
    bare = of_photos.filter(pl.col("subject_id").is_null()).drop("subject_id")
    whole = pl.concat(
        [of_subjects, named, bare.join(people, on="image_id", how="left").select(numbered.columns)]
    )
    left = rows.height - whole["row"].n_unique()
    return whole.sort("row").select(list(EVIDENCE)).unique(maintain_order=True), left


def _sheet(rows: pl.DataFrame) -> pl.DataFrame:
    """Bring rows together by the unit that is decided about: a subject, of logos a photo."""
    photo = (pl.col("kind") == LOGO) | pl.col("subject_id").is_null()
    shown = (
        pl.when(pl.col("says").is_null())
        .then(pl.col("kind"))
        .otherwise(pl.format("{}: {}", "kind", "says"))
    )
    held = rows.with_columns(
        unit_kind=pl.when(photo).then(pl.lit("image")).otherwise(pl.lit("subject")),
        unit_id=pl.when(photo).then(pl.col("image_id")).otherwise(pl.col("subject_id")),
        told=shown,
    )
    found = held.group_by("unit_kind", "unit_id").agg(
        kinds=pl.col("kind").unique().sort().str.join(";"),
        n=pl.col("kind").n_unique(),
        photos=pl.col("image_id").drop_nulls().unique().sort().str.join(";"),
        evidence=pl.col("told").unique().sort().str.join(" | "),
        verdict=pl.lit(None, dtype=pl.String),
        reason=pl.lit(None, dtype=pl.String),
    )
    return found.sort("n", "unit_kind", "unit_id", descending=[True, True, False]).select(_SHEET)
