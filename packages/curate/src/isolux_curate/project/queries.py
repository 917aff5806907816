"""Queries of a project: its tables as frames, exclusions with their reasons, the funnel.

Facts, which are JSON in the database, are columns here. Exclusions are read in one function, which
every step uses, and which reads the consent ledger each time: a revocation takes effect at once.

People in photos who are not named: a photo with more people than subjects waits for a decision.

A drawn person in a photo of one subject is that subject only if no other person is drawn. A curator
decides which boxes show bystanders (``isolux curate decide --unit instance --rule bystander``);
these boxes are filled in where the photo is published.

The funnel counts a photo at the first rule that excluded it (``left``). ``refused`` also counts
photos that other rules excluded first, so that it does not depend on the order of the rules.

Source: Sony AI (2025), Methods, "Quality control and data filtering": 28,703 photos came in, 6,868
left for quality and specifications, 5,855 for forms of consent or copyright, 15,980 remained.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import sqlalchemy as sa

from isolux.core.errors import FileError, UnknownNameError
from isolux.io.consent import ConsentRole, Ledger, key_path, read_ledger
from isolux_curate.project.database import open_read_transaction
from isolux_curate.project.fact_columns import find_fact_dtype, name_fact_column
from isolux_curate.project.folder import Project, refuse_ledger_without_stored_head
from isolux_curate.project.tables import META, images, instances, subjects
from isolux_curate.project.verdicts import read_arrived_photos, read_current_out_verdicts

ANNOTATION = "annotation"
DRAWN_AGAIN, BYSTANDER, MORE_COUNTED = "drawn again", "bystander", "more counted than named"


def assign_only_subject_to_drawing(
    people: pl.DataFrame, out_verdicts: pl.DataFrame
) -> pl.DataFrame:
    """Assign the photo's subject to a drawn person if one is named and one drawn; else null."""
    rows = people.select("instance_id", "image_id", "subject_id", "origin").join(
        _count_named_and_drawn_people(people, out_verdicts), on="image_id", maintain_order="left"
    )
    is_subject = (
        (pl.col("named") == 1) & (pl.col("drawn") == 1) & ~_build_dropped_box_mask(out_verdicts)
    )
    named_id = pl.when(pl.col("origin") == "submitted").then("subject_id")
    subject_id = rows.select(subject_id=named_id.when(is_subject).then("subject"))
    return people.with_columns(subject_id.to_series())


def list_photos_drawn_beyond_named(
    ledger: Ledger, people: pl.DataFrame, out_verdicts: pl.DataFrame
) -> pl.DataFrame:
    """List photos with more people drawn than named, if the ledger has grants of subjects."""
    counts = _count_named_and_drawn_people(people, out_verdicts).filter(
        pl.col("named") > 0, pl.col("drawn") > pl.col("named")
    )
    sentence = (
        "{} people are drawn in this photo and {} named: someone must say who is a bystander."
    )
    rows = counts.sort("image_id").select(
        "image_id",
        step=pl.lit(ANNOTATION),
        rule=pl.lit(BYSTANDER),
        reason=pl.format(sentence, "drawn", "named"),
    )
    return rows if ledger.has_grants("subject") else rows.clear()


def _count_named_and_drawn_people(people: pl.DataFrame, out_verdicts: pl.DataFrame) -> pl.DataFrame:
    """Count named subjects (the first is ``subject``) and drawn people but bystanders, by photo."""
    is_submitted = pl.col("origin") == "submitted"
    subject = pl.col("subject_id").filter(is_submitted).drop_nulls()
    is_person = ~is_submitted & ~_build_dropped_box_mask(out_verdicts)
    return people.group_by("image_id").agg(
        named=subject.n_unique(), subject=subject.min(), drawn=is_person.sum()
    )


def _build_dropped_box_mask(out_verdicts: pl.DataFrame) -> pl.Expr:
    """Build a mask of boxes that were drawn again or show a bystander."""
    dropped = out_verdicts.filter(
        pl.col("rule").is_in([DRAWN_AGAIN, BYSTANDER]), unit_kind="instance"
    )
    return pl.col("instance_id").is_in(dropped["unit_id"].implode())


CONSENT_KINDS: tuple[tuple[ConsentRole, str, str], ...] = (
    ("subject", "consent", "subject_id"),
    ("copyright", "copyright", "copyright_holder"),
)
"""The kind of person in the ledger, the rule of intake, the column with the person's id."""
_REASONS = {
    "consent": "A person in this photo took their consent back. Nothing more is to be done.",
    "copyright": "Whoever holds the copyright of this photo took their agreement back.",
}


def read_verified_consent_or_none(project: Project) -> Ledger | None:
    """Read and verify the project's consent ledger; None: the project never had one."""
    ledger = read_ledger(project.consent_path) if project.consent_path.exists() else None
    with open_read_transaction(project.engine) as connection:
        refuse_ledger_without_stored_head(connection, project, ledger)
    if ledger is None and key_path(project.consent_path, None).exists():
        raise FileError(
            "the project's ledger of consent is not there",
            expected=str(project.consent_path),
            found="its key alone",
            where=str(project.folder),
            hint="bring it back from a backup",
        )
    return ledger


def list_photos_of_revoked_consent(ledger: Ledger, people: pl.DataFrame) -> pl.DataFrame:
    """List photos whose subject or copyright holder revoked consent to evaluation."""
    tables = [pl.DataFrame(schema=dict.fromkeys(("image_id", "step", "rule", "reason"), pl.String))]
    for person_kind, rule, column in CONSENT_KINDS:
        if column in people.columns:
            is_allowed = ledger.allows(person_kind, people[column].cast(pl.String), "evaluation")
            photos = people.filter(~is_allowed.fill_null(value=True))["image_id"]
            tables.append(
                pl.select(image_id=photos.unique(maintain_order=True)).with_columns(
                    step=pl.lit("consent"), rule=pl.lit(rule), reason=pl.lit(_REASONS[rule])
                )
            )
    return pl.concat(tables)


def drop_rows_of_revoked_consent(
    project: Project, photo_rows: pl.DataFrame, subjects: pl.DataFrame | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Exclude photos of people whose consent is revoked, and these subjects, from sheets."""
    ledger = read_verified_consent_or_none(project)
    if ledger is None:
        return photo_rows, subjects
    revoked_ids = list_photos_of_revoked_consent(ledger, photo_rows)["image_id"]
    if subjects is not None:
        is_allowed = ledger.allows("subject", subjects["subject_id"], "evaluation")
        subjects = subjects.filter(is_allowed.fill_null(value=True))
    return photo_rows.filter(~pl.col("image_id").is_in(revoked_ids.implode())), subjects


_DTYPES: tuple[tuple[type[Any], Any], ...] = (
    (sa.Boolean, pl.Boolean),
    (sa.Integer, pl.Int64),
    (sa.Float, pl.Float64),
)


def read_database_table(project: Project, table_name: str) -> pl.DataFrame:
    """Read one of the project's tables unchanged; JSON columns are text."""
    if table_name not in META.tables:
        raise UnknownNameError("table", table_name, META.tables)
    frame, json_columns = _read_columns_and_json(project, META.tables[table_name])
    texts = [
        pl.Series(
            table_name, [None if v is None else json.dumps(v) for v in cells], dtype=pl.String
        )
        for table_name, cells in json_columns.items()
    ]
    return frame.hstack(texts).select(c.name for c in META.tables[table_name].columns)


def _read_columns_and_json(
    project: Project, table: sa.Table
) -> tuple[pl.DataFrame, dict[str, list[Any]]]:
    """Read a table in the order of its keys, and its JSON columns separately."""
    rows = project.fetch_rows(sa.select(table).order_by(*table.primary_key.columns))
    cells = {c.name: [row[k] for row in rows] for k, c in enumerate(table.columns)}
    json_columns = {c.name: cells.pop(c.name) for c in table.columns if isinstance(c.type, sa.JSON)}
    types = {
        name: next(
            (dtype for sql_type, dtype in _DTYPES if isinstance(table.c[name].type, sql_type)),
            pl.String,
        )
        for name in cells
    }
    return pl.DataFrame(cells, schema=types), json_columns


def read_images(project: Project, *, include_excluded: bool = False) -> pl.DataFrame:
    """Read the photos that are not excluded, or all of them."""
    frame = _read_table_with_fact_columns(project, images)
    if include_excluded:
        return frame
    excluded_ids = read_exclusions_with_reasons(project)["image_id"].drop_nulls().unique()
    return frame.filter(~pl.col("image_id").is_in(excluded_ids.implode()))


def read_people_in_photos(project: Project, *, include_excluded: bool = False) -> pl.DataFrame:
    """Read the people in photos that are not excluded, or all of them."""
    frame = assign_only_subject_to_drawing(
        _read_table_with_fact_columns(project, instances), read_current_out_verdicts(project)
    )
    if include_excluded:
        return frame
    exclusions = read_exclusions_with_reasons(project)
    excluded_instance_ids = exclusions.filter(unit_kind="instance")["unit_id"]
    return frame.filter(
        ~pl.col("image_id").is_in(exclusions["image_id"].drop_nulls().unique().implode()),
        ~pl.col("instance_id").is_in(excluded_instance_ids.implode()),
    )


def read_bystander_boxes(project: Project) -> pl.DataFrame:
    """Read the boxes that a curator marked as bystanders."""
    bystander_ids = read_current_out_verdicts(project).filter(rule=BYSTANDER, unit_kind="instance")[
        "unit_id"
    ]
    people = _read_table_with_fact_columns(project, instances).filter(
        pl.col("instance_id").is_in(bystander_ids.implode())
    )
    return people.drop_nulls("x").select("image_id", "x", "y", "w", "h")


def read_subjects(project: Project) -> pl.DataFrame:
    """Read the subjects: ``subject_id`` and a column for each fact."""
    return _read_table_with_fact_columns(project, subjects)


def join_subject_facts(project: Project, people: pl.DataFrame) -> pl.DataFrame:
    """Join facts to people: what was stated of them in that photo, then of the subject."""
    named_rows = _read_table_with_fact_columns(project, instances).filter(origin="submitted")
    stated_facts = named_rows.drop(
        "instance_id", "origin", *"xywh", "primary", "secondary", strict=False
    )
    with_stated = join_and_coalesce_facts(people, stated_facts, "image_id", "subject_id")
    return join_and_coalesce_facts(with_stated, read_subjects(project), "subject_id")


def join_and_coalesce_facts(
    facts: pl.DataFrame, more_facts: pl.DataFrame, *keys: str
) -> pl.DataFrame:
    """Join tables of facts; where both have a fact, the first is taken."""
    shared_columns = [c for c in more_facts.columns if c in facts.columns and c not in keys]
    joined_facts = facts.join(more_facts, on=keys, how="left", suffix=" 2", maintain_order="left")
    return joined_facts.with_columns(
        pl.coalesce(c, f"{c} 2").alias(c) for c in shared_columns
    ).drop(f"{c} 2" for c in shared_columns)


def read_exclusions_with_reasons(project: Project) -> pl.DataFrame:
    """Read the reasons why photos and people are excluded; a subject's exclude all their photos."""
    out_verdicts = read_current_out_verdicts(project)
    people = _read_table_with_fact_columns(project, instances)
    image_verdicts = out_verdicts.filter(unit_kind="image").with_columns(image_id=pl.col("unit_id"))
    subject_verdicts = out_verdicts.filter(unit_kind="subject").join(
        people.select("image_id", unit_id="subject_id").unique(), on="unit_id", how="left"
    )
    other_verdicts = out_verdicts.filter(
        ~pl.col("unit_kind").is_in(["image", "subject"])
    ).with_columns(image_id=pl.lit(None, dtype=pl.String))
    recorded_exclusions = pl.concat(
        [image_verdicts, subject_verdicts, other_verdicts], how="diagonal"
    ).sort("decision_id")
    ledger = read_verified_consent_or_none(project)
    if ledger is None:
        return recorded_exclusions
    consent_exclusions = pl.concat(
        [
            list_photos_of_revoked_consent(ledger, people),
            list_photos_drawn_beyond_named(ledger, people, out_verdicts),
        ]
    ).join(recorded_exclusions, on=["image_id", "step", "rule"], how="anti", maintain_order="left")
    latest = int(recorded_exclusions.select(pl.col("decision_id").max().fill_null(0)).item())
    consent_exclusions = consent_exclusions.with_columns(
        unit_kind=pl.lit("image"), unit_id=pl.col("image_id"), decision_id=pl.lit(latest + 1)
    )
    return pl.concat(
        [recorded_exclusions, consent_exclusions.cast({"decision_id": pl.Int64})], how="diagonal"
    )


def find_photos_of_revoked_consent(project: Project) -> frozenset[str]:
    """Find the photos of people who revoked consent to evaluation."""
    ledger = read_verified_consent_or_none(project)
    if ledger is None or all(row.act == "grant" for row in ledger.rows):
        return frozenset()
    return frozenset(
        list_photos_of_revoked_consent(ledger, _read_table_with_fact_columns(project, instances))[
            "image_id"
        ]
    )


def _read_table_with_fact_columns(project: Project, table: sa.Table) -> pl.DataFrame:
    frame, json_columns = _read_columns_and_json(project, table)
    facts = json_columns["facts"]
    columns: dict[str, pl.Series] = {}
    for fact_name in dict.fromkeys(name for fact_values in facts for name in fact_values):
        name, dtype = name_fact_column(table, fact_name), find_fact_dtype(table, fact_name)
        values = [fact_values.get(fact_name) for fact_values in facts]
        if dtype == pl.String:  # a fact that was a number before may be text now
            values = [None if value is None else str(value) for value in values]
        column = pl.Series(name, values, dtype=dtype)
        first = columns.get(name, column)  # two columns may have one name: height, person_height
        columns[name] = first.zip_with(first.is_not_null(), column)
    return frame.hstack(list(columns.values()))


def tabulate_project_funnel(project: Project) -> pl.DataFrame:
    """Count photos that arrived, that each step and rule excluded, and that remain."""
    return tabulate_funnel_of_exclusions(
        read_arrived_photos(project)["image_id"], read_exclusions_with_reasons(project)
    )


def tabulate_funnel_of_exclusions(arrived_ids: pl.Series, exclusions: pl.DataFrame) -> pl.DataFrame:
    """Count the funnel from arrived photos and the reasons for exclusion.

    Examples
    --------
    >>> gone = pl.DataFrame({"image_id": ["a", "b", "a"], "step": ["quality", "quality", "consent"],
    ...                      "rule": ["blurred", "small", "form"], "decision_id": [1, 2, 3]})
    >>> tabulate_funnel_of_exclusions(pl.Series(["a", "b", "c"]), gone).rows()
    [('arrival', 'came in', 0, 0, 3), ('quality', 'blurred', 1, 1, 2),
     ('quality', 'small', 1, 1, 1), ('consent', 'form', 0, 1, 1)]
    """
    reasons = _sort_reasons_by_funnel_order(arrived_ids, exclusions)
    first_reason_rows = reasons.unique("image_id", keep="first", maintain_order=True)
    keys = ["step", "rule"]
    refused = reasons.group_by(keys, maintain_order=True).agg(
        refused=pl.col("image_id").n_unique(),
        at=pl.col("decision_id").min(),
        step_at=pl.col("step_at").first(),
    )
    n_left = first_reason_rows.group_by(keys).agg(left=pl.len())
    counts = refused.join(n_left, on=keys, how="left").sort("step_at", "at")
    table = pl.concat(
        [
            pl.DataFrame({"step": ["arrival"], "rule": ["came in"], "left": [0], "refused": [0]}),
            counts.select("step", "rule", pl.col("left").fill_null(0), "refused").cast(
                {"left": pl.Int64, "refused": pl.Int64}
            ),
        ]
    )
    return table.with_columns(remain=arrived_ids.n_unique() - pl.col("left").cum_sum())


def read_first_exclusion_by_photo(project: Project) -> pl.DataFrame:
    """Read the step and rule that excluded each photo first."""
    reasons = _sort_reasons_by_funnel_order(
        read_arrived_photos(project)["image_id"], read_exclusions_with_reasons(project)
    )
    first_reason_rows = reasons.unique("image_id", keep="first", maintain_order=True)
    return first_reason_rows.select("image_id", "step", "rule")


def _sort_reasons_by_funnel_order(arrived_ids: pl.Series, exclusions: pl.DataFrame) -> pl.DataFrame:
    """Sort reasons in the funnel's order: by their step's first verdict, then by their own."""
    reasons = exclusions.filter(pl.col("image_id").is_in(arrived_ids.implode()))
    step_at = pl.col("decision_id").min().over("step")
    return reasons.with_columns(step_at=step_at).sort("step_at", "decision_id")
