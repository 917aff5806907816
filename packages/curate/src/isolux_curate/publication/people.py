"""The people of a published dataset, one row a person in a photo, with annotators' answers.

Attributes are consensus answers of annotators, labels of a consensus, and requested facts that
people stated themselves. Answers of single annotators are published in a separate table, as in
FHIBE and FACET.

For a question, the answers that more than half of its annotators gave. For a scale on which each
annotator marks several values (FACET's skin tones) **one** value, the one with the most marks, and
all marks in a second column: a person with two tones would count in the groups of both, and blur
differences between groups.

FACET (Gustafson et al. 2023, section 5.2 and appendix B) publishes how often each tone was marked,
prefers a distribution to a single value (appendix C), and names no single tone and no rule for
ties. The rule is ours: of tied values the middle one, of two middle ones the lower (of tones, the
lighter).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from isolux.core.errors import SpecError, TableError
from isolux_curate.annotation.answer_format import read_answer_rows
from isolux_curate.annotation.stages import STAGES, UNKNOWN
from isolux_curate.annotation.tasks import compute_upright_size
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_people_in_photos, read_verified_consent_or_none
from isolux_curate.publication.photos import assign_clusters_by_shared_photos
from isolux_curate.quality.typed_answers import read_facts_by_unit_id
from isolux_curate.user_tables import read_table_as_text

VALUE_SEPARATOR = ";"
MARKS_SUFFIX = "_marks"
"""The suffix of the column with all marks of a scale."""
_UNIT_COLUMNS = ["instance_id", "question"]


@dataclass(frozen=True, slots=True)
class ConsensusAnswers:
    """Consensus answers, one row a person.

    Parameters
    ----------
    table : polars.DataFrame
        ``instance_id``, a column for each question, called as it is with ``_`` for spaces, and of a
        scale a second one whose name ends in ``_marks``. Several values are parted by ``;``; marks
        are repeated as often as they were made, so that ``--votes`` counts them.
    marks : tuple of str
        The columns of marks.
    tied : mapping of str to int
        Of each scale, people of whom several values had the most marks.
    """

    table: pl.DataFrame
    marks: tuple[str, ...]
    tied: dict[str, int]


def combine_answers_by_person(answers: pl.DataFrame) -> ConsensusAnswers:
    """Combine annotators' answers into one row a person.

    Examples
    --------
    >>> marks = {"x": (5, 6), "y": (5, 6), "z": (6, 7)}
    >>> tone = "perceived skin tone"
    >>> rows = [("a", who, tone, str(t)) for who, two in marks.items() for t in two]
    >>> schema = ["instance_id", "annotator", "question", "label"]
    >>> combine_answers_by_person(pl.DataFrame(rows, schema=schema, orient="row")).table.row(0)
    ('a', '6', '5;5;6;6;6;7')
    """
    checks = [question for stage in STAGES.values() for question in stage.requeue_answers]
    answers = answers.filter(~pl.col("question").is_in(checks))
    if answers.is_empty():
        return ConsensusAnswers(pl.DataFrame(schema={"instance_id": pl.String}), (), {})
    scales = {question for stage in STAGES.values() for question in stage.consecutive}
    names = answers["question"].unique(maintain_order=True).to_list()
    majority_answers = _select_majority_answers(answers)
    on_scale = pl.col("question").is_in(sorted(scales))
    top_values, tied = _select_top_labels_count_ties(majority_answers.filter(on_scale))
    value_tables = [_join_labels_by_unit(majority_answers.filter(~on_scale)), top_values]
    table = _pivot_questions_to_columns(pl.concat(value_tables), names)
    marks = [name for name in names if name in scales]
    if marks:
        all_marks = _pivot_questions_to_columns(
            _join_labels_by_unit(_sort_by_answer_order(answers.filter(on_scale))), marks
        )
        renamed = all_marks.rename(
            {name: _format_question_as_column(name) + MARKS_SUFFIX for name in marks}
        )
        table = table.join(renamed, on="instance_id", how="full", coalesce=True)
    table = table.rename({name: _format_question_as_column(name) for name in names})
    order = [
        c
        for name in map(_format_question_as_column, names)
        for c in (name, name + MARKS_SUFFIX)
        if c in table.columns
    ]
    n_tied = {_format_question_as_column(name): n for name, n in tied.items()}
    return ConsensusAnswers(
        table.select("instance_id", *order).sort("instance_id"),
        tuple(_format_question_as_column(name) + MARKS_SUFFIX for name in marks),
        n_tied,
    )


def _format_question_as_column(question: str) -> str:
    return question.strip("?").replace(" ", "_")


def _select_majority_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Take answers that more than half of a unit's annotators gave, with their ``votes``."""
    annotator_counts = answers.group_by(_UNIT_COLUMNS).agg(asked=pl.col("annotator").n_unique())
    votes = answers.group_by([*_UNIT_COLUMNS, "label"]).agg(votes=pl.col("annotator").n_unique())
    majority_answers = votes.join(annotator_counts, on=_UNIT_COLUMNS).filter(
        pl.col("votes") * 2 > pl.col("asked")
    )
    return _sort_by_answer_order(majority_answers)


def _sort_by_answer_order(answer_rows: pl.DataFrame) -> pl.DataFrame:
    """Sort by unit, and by the answers' order in their question."""
    order = {
        word: k
        for stage in STAGES.values()
        for answers in stage.choices.values()
        for k, word in enumerate(answers)
    }
    position = pl.col("label").replace_strict(order, default=len(order), return_dtype=pl.Int64)
    return answer_rows.sort([*_UNIT_COLUMNS, position, "label"])


def _join_labels_by_unit(answer_rows: pl.DataFrame) -> pl.DataFrame:
    return answer_rows.group_by(_UNIT_COLUMNS, maintain_order=True).agg(
        value=pl.col("label").str.join(VALUE_SEPARATOR)
    )


def _select_top_labels_count_ties(
    majority_answers: pl.DataFrame,
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Take the value with the most marks, known values first, and count ties by question."""
    top_answers = majority_answers.with_columns(known=pl.col("label") != UNKNOWN)
    top_answers = top_answers.filter(pl.col("votes") == pl.col("votes").max().over(_UNIT_COLUMNS))
    top_answers = top_answers.filter(pl.col("known") == pl.col("known").max().over(_UNIT_COLUMNS))
    answer_lists = top_answers.group_by(_UNIT_COLUMNS, maintain_order=True).agg("label")
    n = pl.col("label").list.len()
    tied = answer_lists.filter(n > 1).group_by("question").len()
    top_values = answer_lists.select(*_UNIT_COLUMNS, value=pl.col("label").list.get((n - 1) // 2))
    return top_values, {question: int(k) for question, k in tied.iter_rows()}


def _pivot_questions_to_columns(value_rows: pl.DataFrame, questions: list[str]) -> pl.DataFrame:
    wide = value_rows.pivot("question", index="instance_id", values="value")
    missing = [pl.lit(None, dtype=pl.String).alias(n) for n in questions if n not in wide.columns]
    return wide.with_columns(missing).select("instance_id", *questions)


FIXED_COLUMNS = (
    "instance_id",
    "image_id",
    "subject_id",
    "cluster_id",
    "split",
    "file",
    "width",
    "height",
    "class",
    "box_x",
    "box_y",
    "box_w",
    "box_h",
)
_ANSWER_COLUMNS = ("instance_id", "annotator_id", "question", "answer")


@dataclass(frozen=True, slots=True)
class PublishedPeople:
    """People, answers and outlines, with ids as the project has them.

    Parameters
    ----------
    people : polars.DataFrame
        The columns of ``FIXED_COLUMNS`` but ``split``, and a column for each attribute.
    answers : polars.DataFrame
        ``instance_id, annotator_id, question, answer``: what each annotator said.
    outlines : polars.DataFrame
        ``instance_id, image_id, label, points`` (JSON): masks.
    judgement : mapping of str to str
        Of each attribute: perceived (by annotators), self-reported, or consensus.
    marks : tuple of str
        Columns with every mark of a scale.
    tied : mapping of str to int
        Of each scale, people of whom several values had the most marks.
    """

    people: pl.DataFrame
    answers: pl.DataFrame
    outlines: pl.DataFrame
    judgement: Mapping[str, str]
    marks: tuple[str, ...] = ()
    tied: Mapping[str, int] = field(default_factory=dict)


def read_published_people(
    project: Project,
    photos: pl.DataFrame,
    *,
    fact_columns: Sequence[str] = (),
    label_files: Sequence[str] = (),
) -> PublishedPeople:
    """Read the people in some photos with their attributes, answers and outlines."""
    people = _read_drawn_else_named_people(project, photos)
    answer_rows, outlines = _read_publishable_answers_and_outlines(project, people["instance_id"])
    combined = combine_answers_by_person(answer_rows)
    source_by_column = dict.fromkeys(combined.table.columns[1:], "perceived")
    people = people.join(combined.table, on="instance_id", how="left", maintain_order="left")
    for text in label_files:
        name, table = _read_named_label_file(text)
        _refuse_used_column_name(name, source_by_column)
        source_by_column[name] = "consensus"
        people = people.join(table, on="instance_id", how="left", maintain_order="left")
    for name in fact_columns:
        _refuse_used_column_name(name, source_by_column)
        source_by_column[name] = "self-reported"
    unit_facts = (
        read_facts_by_unit_id(project, fact_columns)
        .rename({"unit_id": "instance_id"})
        .drop("subject_id")
    )
    people = people.join(unit_facts, on="instance_id", how="left", maintain_order="left")
    answers = answer_rows.select(
        "instance_id", "question", annotator_id="annotator", answer="label"
    ).select(_ANSWER_COLUMNS)
    return PublishedPeople(
        people, answers, outlines, source_by_column, combined.marks, combined.tied
    )


def _refuse_used_column_name(column: str, used_names: Mapping[str, str]) -> None:
    if column in used_names or column in FIXED_COLUMNS:
        raise SpecError(
            "two columns would have one name", expected="a name of its own", found=repr(column)
        )


def _read_drawn_else_named_people(project: Project, photos: pl.DataFrame) -> pl.DataFrame:
    """Read the people that annotators drew in each photo, else those who were named."""
    photo_sizes = [
        compute_upright_size(w or 0, h or 0, o)
        for w, h, o in photos.select(
            "width",
            "height",
            photos["orientation"]
            if "orientation" in photos.columns
            else pl.lit(None, dtype=pl.Int64).alias("orientation"),
        ).iter_rows()
    ]
    photo_columns = photos.select(
        "image_id",
        "file",
        width=pl.Series([w or None for w, _ in photo_sizes], dtype=pl.Int64),
        height=pl.Series([h or None for _, h in photo_sizes], dtype=pl.Int64),
    )
    instances = read_people_in_photos(project).join(photo_columns, on="image_id", how="inner")
    named_in = instances.filter(pl.col("origin") == "submitted")
    instances = instances.join(
        assign_clusters_by_shared_photos(named_in), on="image_id", how="left", maintain_order="left"
    )
    boxed_people = instances.filter(pl.col("x").is_not_null())
    unboxed_people = instances.filter(
        pl.col("x").is_null() & ~pl.col("image_id").is_in(boxed_people["image_id"].implode())
    )
    class_label = (
        pl.col("primary") if "primary" in instances.columns else pl.lit(None, dtype=pl.String)
    )
    rows = pl.concat([boxed_people, unboxed_people]).sort("image_id", "instance_id")
    boxes = {f"box_{column}": pl.col(column) for column in "xywh"}
    people = rows.with_columns(class_label.alias("class"), **boxes)
    return people.select(c for c in FIXED_COLUMNS if c != "split")


def _read_publishable_answers_and_outlines(
    project: Project, instance_ids: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read answers and outlines of annotators who have not refused publication."""
    answer_tables = [
        read_answer_rows(project, name)
        for name, stage in STAGES.items()
        if stage.unit_kind == "instance"
    ]
    answers = pl.concat(answer_tables).filter(pl.col("instance_id").is_in(instance_ids.implode()))
    if (ledger := read_verified_consent_or_none(project)) is not None:
        annotators = answers["annotator"].unique().sort()
        refusing_annotators = annotators.filter(
            ~ledger.allows("annotator", annotators, "publication").fill_null(value=True)
        )
        answers = answers.filter(~pl.col("annotator").is_in(refusing_annotators.implode()))
    has_outline = pl.col("points").is_not_null()
    outlines = answers.filter(has_outline).select("instance_id", "image_id", "label", "points")
    return answers.filter(~has_outline).sort(
        "instance_id", "question", "annotator", "label"
    ), outlines


def _read_named_label_file(name_and_path: str) -> tuple[str, pl.DataFrame]:
    name, _, file = name_and_path.partition("=")
    if not name or not file:
        raise SpecError(
            "these are not labels", expected="NAME=labels.csv", found=repr(name_and_path)
        )
    table = read_table_as_text(file, "instance_id", "label").select(
        "instance_id", pl.col("label").alias(name)
    )
    if table["instance_id"].is_duplicated().any():
        raise TableError("a person has two labels", expected="one row each", where=file)
    return name, table
