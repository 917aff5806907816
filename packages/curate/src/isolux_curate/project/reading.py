"""What stands in a project: its tables as frames, who is left out and why, the funnel.

Facts, which are JSON in the database, are columns here. ``left_out`` is the one place that says
which photos may not be used now: every step reads photos and people through it. It asks the ledger
of consent each time, so that a revocation counts at once.

People in photos who are not named: a photo with more people than subjects waits for a decision.

Who is drawn in a photo of one subject is that subject only where nobody else is drawn. Someone says
which boxes show bystanders (``isolux curate decide --unit instance --rule bystander``); these boxes
are filled in where the photo is published.

A photo counts in the funnel where it left first. What other rules would have left out too is told
beside it, so that a rule's own number can be read without the order in which rules were asked.

Source: Sony AI (2025), Methods, "Quality control and data filtering": 28,703 photos came in, 6,868
left for quality and specifications, 5,855 for forms of consent or copyright, 15,980 remained.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import sqlalchemy as sa

from isolux.io.consent import Kind, Ledger, key_path, read_ledger
from isolux.vocabulary.errors import FileError, UnknownNameError
from isolux_curate.project.database import reading
from isolux_curate.project.decisions import came_in, standing
from isolux_curate.project.folder import Project, check_ledger_head
from isolux_curate.project.tables import META, images, instances, subjects

ANNOTATION = "annotation"
DRAWN_AGAIN, BYSTANDER, COUNTED = "drawn again", "bystander", "more counted than named"


def assign_subjects(people: pl.DataFrame, out: pl.DataFrame) -> pl.DataFrame:
    """Give a drawn person the photo's subject where one is named and one drawn; else none."""
    with_counts = people.join(_counts(people, out), on="image_id", maintain_order="left")
    is_subject = (pl.col("named") == 1) & (pl.col("drawn") == 1) & ~_is_dropped(out)
    named_id = pl.when(pl.col("origin") == "submitted").then("subject_id")
    subject_id = named_id.when(is_subject).then("subject")
    return with_counts.with_columns(subject_id=subject_id).select(people.columns)


def list_crowded_photos(ledger: Ledger, people: pl.DataFrame, out: pl.DataFrame) -> pl.DataFrame:
    """List photos with more people drawn than named, where the ledger says who agreed."""
    counts = _counts(people, out).filter(pl.col("named") > 0, pl.col("drawn") > pl.col("named"))
    words = "{} people are drawn in this photo and {} named: someone must say who is a bystander."
    rows = counts.sort("image_id").select(
        "image_id",
        step=pl.lit(ANNOTATION),
        rule=pl.lit(BYSTANDER),
        reason=pl.format(words, "drawn", "named"),
    )
    return rows if ledger.has_grants("subject") else rows.clear()


def _counts(people: pl.DataFrame, out: pl.DataFrame) -> pl.DataFrame:
    """Count by photo who is named (the first is ``subject``), and who is drawn and no bystander."""
    is_submitted = pl.col("origin") == "submitted"
    subject = pl.col("subject_id").filter(is_submitted).drop_nulls()
    is_person = ~is_submitted & ~_is_dropped(out)
    return people.group_by("image_id").agg(
        named=subject.n_unique(), subject=subject.min(), drawn=is_person.sum()
    )


def _is_dropped(out: pl.DataFrame) -> pl.Expr:
    """Tell of boxes whether they were drawn again, or someone said that they show a bystander."""
    dropped = out.filter(pl.col("rule").is_in([DRAWN_AGAIN, BYSTANDER]), unit_kind="instance")
    return pl.col("instance_id").is_in(dropped["unit_id"].implode())


CONSENT: tuple[tuple[Kind, str, str], ...] = (
    ("subject", "consent", "subject_id"),
    ("copyright", "copyright", "copyright_holder"),
)
"""Who is asked: the kind of person in the ledger, the rule of intake, the column with their id."""
_REASONS = {
    "consent": "A person in this photo took their consent back. Nothing more is to be done.",
    "copyright": "Whoever holds the copyright of this photo took their agreement back.",
}


def read_consent(project: Project) -> Ledger | None:
    """Read the project's ledger of consent, and see that it verifies; None: it never had one."""
    ledger = read_ledger(project.consent) if project.consent.exists() else None
    with reading(project.engine) as connection:
        check_ledger_head(connection, project, ledger)
    if ledger is None and key_path(project.consent, None).exists():
        raise FileError(
            "the project's ledger of consent is not there",
            expected=str(project.consent),
            found="its key alone",
            where=str(project.folder),
            hint="bring it back from a backup",
        )
    return ledger


def list_revoked_photos(ledger: Ledger, people: pl.DataFrame) -> pl.DataFrame:
    """List photos whose subject or copyright holder took back their consent to evaluation."""
    parts = [pl.DataFrame(schema=dict.fromkeys(("image_id", "step", "rule", "reason"), pl.String))]
    for kind, rule, column in CONSENT:
        if column in people.columns:
            is_allowed = ledger.allows(kind, people[column].cast(pl.String), "evaluation")
            photos = people.filter(~is_allowed.fill_null(value=True))["image_id"]
            parts.append(
                pl.select(image_id=photos.unique(maintain_order=True)).with_columns(
                    step=pl.lit("consent"), rule=pl.lit(rule), reason=pl.lit(_REASONS[rule])
                )
            )
    return pl.concat(parts)


def drop_revoked_rows(
    project: Project, rows: pl.DataFrame, subjects: pl.DataFrame | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Take photos of people whose consent is revoked, and these subjects, out of sheets."""
    ledger = read_consent(project)
    if ledger is None:
        return rows, subjects
    revoked_ids = list_revoked_photos(ledger, rows)["image_id"]
    if subjects is not None:
        is_allowed = ledger.allows("subject", subjects["subject_id"], "evaluation")
        subjects = subjects.filter(is_allowed.fill_null(value=True))
    return rows.filter(~pl.col("image_id").is_in(revoked_ids.implode())), subjects


FACTS: dict[str, Any] = {
    "exif": pl.Boolean,
    "megapixels": pl.Float64,
    "exif_width": pl.Int64,
    "exif_height": pl.Int64,
    "digital_zoom": pl.Float64,
    "custom_rendered": pl.Int64,
    "pages": pl.Int64,
    "age": pl.Float64,
    "age_of_majority": pl.Float64,
    "device_year": pl.Int64,
    "language_right": pl.Int64,
    "orientation": pl.Int64,
}
"""Facts that are numbers; all others are text."""
_TYPES: tuple[tuple[type[Any], Any], ...] = (
    (sa.Boolean, pl.Boolean),
    (sa.Integer, pl.Int64),
    (sa.Float, pl.Float64),
)


def read_table(project: Project, name: str) -> pl.DataFrame:
    """Read one of the project's tables as it is; JSON is text."""
    if name not in META.tables:
        raise UnknownNameError("table", name, META.tables)
    frame, objects = _read(project, META.tables[name])
    texts = [
        pl.Series(name, [None if v is None else json.dumps(v) for v in cells], dtype=pl.String)
        for name, cells in objects.items()
    ]
    return frame.hstack(texts).select(c.name for c in META.tables[name].columns)


def _read(project: Project, table: sa.Table) -> tuple[pl.DataFrame, dict[str, list[Any]]]:
    """Read a table in the order of its keys; columns of JSON beside it."""
    rows = project.rows(sa.select(table).order_by(*table.primary_key.columns))
    cells = {c.name: [row[k] for row in rows] for k, c in enumerate(table.columns)}
    objects = {c.name: cells.pop(c.name) for c in table.columns if isinstance(c.type, sa.JSON)}
    types = {
        name: next((to for of, to in _TYPES if isinstance(table.c[name].type, of)), pl.String)
        for name in cells
    }
    return pl.DataFrame(cells, schema=types), objects


def read_images(project: Project, *, everything: bool = False) -> pl.DataFrame:
    """Read the photos that stand."""
    frame = _with_facts(project, images)
    if everything:
        return frame
    gone = left_out(project)["image_id"].drop_nulls().unique()
    return frame.filter(~pl.col("image_id").is_in(gone.implode()))


def read_instances(project: Project, *, everything: bool = False) -> pl.DataFrame:
    """Read the people in the photos that stand."""
    frame = assign_subjects(_with_facts(project, instances), standing(project))
    if everything:
        return frame
    gone = left_out(project)
    own = gone.filter(unit_kind="instance")["unit_id"]
    return frame.filter(
        ~pl.col("image_id").is_in(gone["image_id"].drop_nulls().unique().implode()),
        ~pl.col("instance_id").is_in(own.implode()),
    )


def read_bystanders(project: Project) -> pl.DataFrame:
    """Read the boxes of which someone said that they show bystanders."""
    out = standing(project).filter(rule=BYSTANDER, unit_kind="instance")["unit_id"]
    people = _with_facts(project, instances).filter(pl.col("instance_id").is_in(out.implode()))
    return people.drop_nulls("x").select("image_id", "x", "y", "w", "h")


def read_subjects(project: Project) -> pl.DataFrame:
    """Read the subjects: ``subject_id`` and a column for each fact."""
    return _with_facts(project, subjects)


def with_facts_of_subjects(project: Project, people: pl.DataFrame) -> pl.DataFrame:
    """Add what is known of subjects to people in photos; a fact that is there already stays."""
    known = read_subjects(project)
    new = [c for c in known.columns if c not in people.columns or c == "subject_id"]
    return people.join(known.select(new), on="subject_id", how="left", maintain_order="left")


def left_out(project: Project) -> pl.DataFrame:
    """List why each photo is left out; a subject who is, takes their photos along."""
    out = standing(project)
    people = _with_facts(project, instances)
    of_images = out.filter(unit_kind="image").with_columns(image_id=pl.col("unit_id"))
    of_subjects = out.filter(unit_kind="subject").join(
        people.select("image_id", unit_id="subject_id").unique(), on="unit_id", how="left"
    )
    rest = out.filter(~pl.col("unit_kind").is_in(["image", "subject"])).with_columns(
        image_id=pl.lit(None, dtype=pl.String)
    )
    recorded = pl.concat([of_images, of_subjects, rest], how="diagonal").sort("decision_id")
    ledger = read_consent(project)
    if ledger is None:
        return recorded
    current = pl.concat(
        [list_revoked_photos(ledger, people), list_crowded_photos(ledger, people, out)]
    ).join(recorded, on=["image_id", "step", "rule"], how="anti", maintain_order="left")
    latest = int(recorded.select(pl.col("decision_id").max().fill_null(0)).item())
    current = current.with_columns(
        unit_kind=pl.lit("image"), unit_id=pl.col("image_id"), decision_id=pl.lit(latest + 1)
    )
    return pl.concat([recorded, current.cast({"decision_id": pl.Int64})], how="diagonal")


def find_revoked_photos(project: Project) -> frozenset[str]:
    """List the photos of people who took back their consent to evaluation."""
    ledger = read_consent(project)
    if ledger is None or all(row.act == "grant" for row in ledger.rows):
        return frozenset()
    return frozenset(list_revoked_photos(ledger, _with_facts(project, instances))["image_id"])


def _with_facts(project: Project, table: sa.Table) -> pl.DataFrame:
    frame, objects = _read(project, table)
    facts = objects["facts"]
    return frame.hstack(
        [
            pl.Series(name, [one.get(name) for one in facts], dtype=FACTS.get(name, pl.String))
            for name in dict.fromkeys(name for one in facts for name in one)
        ]
    )


def funnel(project: Project) -> pl.DataFrame:
    """Count what came in, what left at which step by which rule, and what remained."""
    return funnel_of(came_in(project)["image_id"], left_out(project))


def funnel_of(came: pl.Series, gone: pl.DataFrame) -> pl.DataFrame:
    """Count the funnel of photos and the reasons why they are left out.

    Examples
    --------
    >>> gone = pl.DataFrame({"image_id": ["a", "b", "a"], "step": ["quality", "quality", "consent"],
    ...                      "rule": ["blurred", "small", "form"], "decision_id": [1, 2, 3]})
    >>> funnel_of(pl.Series(["a", "b", "c"]), gone).rows()
    [('arrival', 'came in', 0, 0, 3), ('quality', 'blurred', 1, 1, 2),
     ('quality', 'small', 1, 1, 1), ('consent', 'form', 0, 1, 1)]
    """
    held = _in_order(came, gone)
    first = held.unique("image_id", keep="first", maintain_order=True)
    keys = ["step", "rule"]
    refused = held.group_by(keys, maintain_order=True).agg(
        refused=pl.col("image_id").n_unique(),
        at=pl.col("decision_id").min(),
        step_at=pl.col("step_at").first(),
    )
    left = first.group_by(keys).agg(left=pl.len())
    told = refused.join(left, on=keys, how="left").sort("step_at", "at")
    table = pl.concat(
        [
            pl.DataFrame({"step": ["arrival"], "rule": ["came in"], "left": [0], "refused": [0]}),
            told.select("step", "rule", pl.col("left").fill_null(0), "refused").cast(
                {"left": pl.Int64, "refused": pl.Int64}
            ),
        ]
    )
    return table.with_columns(remain=came.n_unique() - pl.col("left").cum_sum())


def first_reasons(project: Project) -> pl.DataFrame:
    """Tell of each photo that left at which step and by which rule it did so first."""
    held = _in_order(came_in(project)["image_id"], left_out(project))
    first = held.unique("image_id", keep="first", maintain_order=True)
    return first.select("image_id", "step", "rule")


def _in_order(came: pl.Series, gone: pl.DataFrame) -> pl.DataFrame:
    """Sort reasons as the funnel has them: by their step's first verdict, then by their own."""
    held = gone.filter(pl.col("image_id").is_in(came.implode()))
    step_at = pl.col("decision_id").min().over("step")
    return held.with_columns(step_at=step_at).sort("step_at", "decision_id")
