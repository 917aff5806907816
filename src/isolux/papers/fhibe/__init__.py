"""FHIBE: its protocols as audits, and its tables from a run.

Xiang et al. ask for whom eight kinds of narrow models work worse: detectors of people and faces,
masks of people, poses, parts of faces, face verification, reconstruction and super-resolution. A
protocol is an audit's settings: the release that the task is judged on, the metric, the attributes,
the least people of a group, and the paper's own test of every two groups' scores (Mann–Whitney with
the difference of medians D, by the analysis ``rank_tests``, which sets a test that knows of
subjects beside it). Its error models and patterns are analyses to be asked for. Two protocols are
of foundation models, of which value's descriptions CLIP takes a photo for and what BLIP-2 answers.
Three more are the comparisons that the Methods name filters for, on other datasets.

The paper gives no intervals: a run's ``group_metrics`` and ``disparities`` do. Where its text and
the authors' evaluation tool differ, the text holds; ``DISAGREEMENTS`` says so and how to have the
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from isolux.core import citations
from isolux.core.containers import Run
from isolux.core.info import PluginInfo
from isolux.core.spec import read_recorded_spec, split_intersection
from isolux.core.tables import COMPARABLE_STATUSES
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings
from isolux.io.image_tables import FHIBE_API
from isolux.papers._protocols import check_protocol_exists
from isolux.papers.fhibe.disagreements import DISAGREEMENTS
from isolux.papers.fhibe.groups import ATTRIBUTES, DEMOGRAPHIC, FACE_ATTRIBUTES, NESTED

__all__ = ["DISAGREEMENTS"]

# FHIBE's tables: of each group how many scores and people it has, their median and mean.

_METRIC_KEY = ("model", "metric", "label", "threshold")
_PERCENT, _DIGITS = 100.0, 1
_CLUSTER_COLUMNS = {"subject": "n_subjects", "image": "n_images"}


def build_score_tables_by_attribute(run: Run) -> dict[str, pl.DataFrame]:
    """Lay scores out by the groups of each attribute."""
    group_rows = _select_publishable_group_rows(run, run.scores["metric"].unique().to_list())
    if group_rows.is_empty():
        return {}
    with_medians = group_rows.join(
        _compute_median_score_by_group(run),
        on=[*_METRIC_KEY, "attribute", "group"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).with_columns(median=pl.when(pl.col("value").is_not_null()).then(pl.col("median")))
    used_keys = [name for name in ("label", "threshold") if with_medians[name].is_not_null().any()]
    columns = [
        "model",
        "metric",
        *used_keys,
        "group",
        "n_scores",
        _find_cluster_count_column(run),
        "median",
        "mean",
    ]
    return _split_rows_by_attribute(with_medians.rename({"value": "mean"}), columns)


def build_accept_rate_tables_by_attribute(run: Run) -> dict[str, pl.DataFrame]:
    """Lay true accept rates out by the groups of each attribute."""
    group_key = ["model", "attribute", "values"]
    # The rate's own n are its genuine pairs; whether a face could be compared is told of each.
    faces = _select_publishable_group_rows(run, ["failure_rate"]).select(
        *group_key, n_faces="n_scores"
    )
    accept_rates = _select_publishable_group_rows(run, ["tar_at_far"]).rename({"value": "tar"})
    accept_rates = accept_rates.join(faces, on=group_key, how="left", maintain_order="left")
    columns = ["model", "group", "n_faces", _find_cluster_count_column(run), "tar", "low", "high"]
    return _split_rows_by_attribute(accept_rates, columns)


def build_answer_share_tables_by_attribute(run: Run) -> dict[str, pl.DataFrame]:
    """Pivot the shares of a model's answers by the groups of each attribute, a column a group."""
    group_rows = _select_publishable_group_rows(run, run.scores["metric"].unique().to_list())
    tables = {}
    for (attribute,), rows in group_rows.group_by("attribute", maintain_order=True):
        percentages = rows.with_columns((pl.col("value") * _PERCENT).round(_DIGITS))
        tables[str(attribute)] = percentages.pivot(
            on="group", index=["model", "metric", "label"], values="value", maintain_order=True
        )
    return tables


def _select_publishable_group_rows(run: Run, metrics: Sequence[str]) -> pl.DataFrame:
    """Select the rows of groups of these metrics, without the overall rows."""
    rows = run.group_metrics.filter(
        pl.col("attribute").is_not_null(), pl.col("metric").is_in(metrics)
    )
    # Groups of fewer subjects than the minimum have a value in the run; FHIBE looks at none such.
    has_published_value = pl.col("status").is_in(COMPARABLE_STATUSES)
    rows = rows.with_columns(
        pl.when(has_published_value).then(pl.col("value", "low", "high")).name.keep()
    )
    return rows.rename({"n_units": "n_scores", "n_clusters": _find_cluster_count_column(run)})


def _find_cluster_count_column(run: Run) -> str:
    """Name the column that counts what was sampled independently."""
    return _CLUSTER_COLUMNS.get(run.record.get("clusters", {}).get("column"), "n_clusters")


def _compute_median_score_by_group(run: Run) -> pl.DataFrame:
    """Compute the median score of every group: the key, ``attribute, group, median``."""
    scored = run.scores.drop_nulls("value")
    settings = read_recorded_spec(run.record).groups
    people = run.scores.select("unit_id").unique(maintain_order=True)
    members = build_membership(
        run.attributes, settings.by, read_groupings(settings, run.attributes), units=people
    ).frame.select("attribute", "group", "unit_id")
    return (
        scored.select(*_METRIC_KEY, "unit_id", "value")
        .join(members, on="unit_id")
        .group_by(*_METRIC_KEY, "attribute", "group")
        .agg(median=pl.col("value").median())
    )


def _split_rows_by_attribute(
    group_rows: pl.DataFrame, columns: Sequence[str]
) -> dict[str, pl.DataFrame]:
    names = group_rows["attribute"].unique(maintain_order=True)
    return {name: group_rows.filter(attribute=name).select(columns) for name in names}


INFO = PluginInfo(
    title="FHIBE",
    summary="Eight tasks on photos of consenting people, by what they say of themselves and by "
    "what the photos show.",
    references=(
        citations.FHIBE.with_location(
            "Methods: datasets, narrow models and their metrics, bias discovery in narrow models, "
            "bias discovery in foundation models"
        ),
        replace(FHIBE_API, location="docs/task_specifics.md, datasets and metrics"),
    ),
    assumptions=(
        "People are independent of one another, photos of one person are not.",
        "Answers are people's own, but for what annotators see: head pose and camera distance.",
        "Recall does not see false alarms: they belong to no group.",
        "Attributes go together: those of a photo differ between countries, and so between people.",
    ),
)

PARTS = (
    "skin",
    "nose",
    "eye_g",
    "l_eye",
    "r_eye",
    "l_brow",
    "r_brow",
    "mouth",
    "u_lip",
    "l_lip",
    "hair",
    "hat",
    "neck",
    "cloth",
)
"""The parts of CelebAMask-HQ that FHIBE annotates: no ears, no jewellery."""

_LEAST_SUBJECTS = 10
# So low that a pose stays with its person however few keypoints are right: a single right one,
# half a face's diagonal off, has a similarity far above it.
_ANY_POSE = "lowest_oks=1e-100"

_EVERY_SIZE: dict[str, object] = {
    "min_units": 1,
    "min_clusters": _LEAST_SUBJECTS,
    "unmatched_values": "note",  # a part of FHIBE may lack a continent
}
_OWN_TEST: dict[str, object] = {"explain": ("rank_tests",)}
_BODY: dict[str, object] = {"by": ATTRIBUTES, "nested": NESTED, **_EVERY_SIZE, **_OWN_TEST}
_FACE: dict[str, object] = {"by": FACE_ATTRIBUTES, "nested": NESTED, **_EVERY_SIZE, **_OWN_TEST}
_FACES = ("release=face",)
_VERIFICATION: dict[str, object] = _FACE | {
    "task": "face_verification",
    "by": DEMOGRAPHIC,
    "metric": ("tar_at_far", "failure_rate"),  # of which come the numbers of faces
    "data_option": _FACES,
    "explain": (),  # a rate of pairs is no person's score
}
_ANSWER_PROTOCOLS: dict[str, object] = {
    "task": "answers",
    "by": DEMOGRAPHIC,
    "nested": NESTED,
    **_EVERY_SIZE,
}
_OF_FACET: dict[str, object] = {
    "by": ("skin_tone", "gender_presentation", "age_presentation"),
    "votes": "any+unknown",
    "metric": ("average_recall",),
    **_EVERY_SIZE,
}

PROTOCOLS: dict[str, dict[str, object]] = {
    "detection": _BODY | {"task": "detection", "metric": ("average_recall",)},
    "segmentation": _BODY
    | {
        "task": "segmentation",
        "metric": ("average_recall",),
        "data_option": ("segments=true",),
        "option": ("whole_from=parts",),
    },
    "keypoints": _BODY
    | {
        "task": "keypoints",
        "metric": ("pck",),
        "data_option": ("keypoint_set=coco",),
        "option": ("fractions=0.5", "scale=face-diagonal", _ANY_POSE),
    },
    "face_detection": _BODY
    | {"task": "face_detection", "metric": ("average_recall",), "data_option": ("box=face",)},
    "face_parsing": _FACE
    | {
        "task": "face_parsing",
        "metric": ("mean_f1",),
        "data_option": _FACES,
        "option": (
            "classes=all",
            "absent=leave-out",
            "background=false",
            f"parts={','.join(PARTS)}",
            "mapping={l_ear: skin, r_ear: skin}",
        ),
    },
    "face_verification": _VERIFICATION | {"option": ("far=0.001", "max_per_group=3000")},
    "face_verification_hard": _VERIFICATION
    | {
        "option": (
            "far=0.001",
            "impostors=hard",
            "same=pronoun",
            "near=apparent_skin_color",
            "within=1",
        )
    },
    "reconstruction": _FACE
    | {"task": "reconstruction", "data_option": _FACES, "option": ("size_px=256",)},
    "super_resolution": _FACE
    | {
        "task": "super_resolution",
        "metric": ("lpips",),
        "data_option": _FACES,
        "option": ("size_px=256",),
    },
    "zero_shot": _ANSWER_PROTOCOLS | {"option": ("prompts=fhibe_scene",)},
    "question_answering": _ANSWER_PROTOCOLS | {"option": ("prompts=fhibe_questions",)},
    "face_detection_on_widerface": {
        "task": "face_detection",
        "by": ("perceived_gender", "perceived_age", "perceived_skin"),
        "metric": ("average_recall",),
        "data_option": ("judge=annotated", "not_sure=leave out"),
        "unknown": "drop",
        **_EVERY_SIZE,
    },
    "detection_on_facet": _OF_FACET | {"task": "detection"},
    "segmentation_on_facet": _OF_FACET | {"task": "segmentation"},
}
"""Settings by protocol.

``detection``, ``segmentation``, ``keypoints``, ``face_detection``: whole photos; name the people of
a detector of many things by ``person_label``. ``face_parsing``, ``face_verification``,
``face_verification_hard``, ``reconstruction``, ``super_resolution``: aligned faces. Verification
is by the demographic attributes alone, as the Methods have it, and so are ``zero_shot`` (CLIP) and
``question_answering`` (BLIP-2), of what a model says; all others by every attribute.
``…_on_…``: the comparison with WIDER FACE (8,519 faces) and FACET.
"""

_HEADINGS = {
    "detection": "average recall of people's boxes over overlaps of .50 to .95",
    "segmentation": "average recall of people's masks over overlaps of .50 to .95",
    "keypoints": "share of correct keypoints (PCK)",
    "face_detection": "average recall of faces' boxes over overlaps of .50 to .95",
    "face_parsing": "F1 of the parts of a face, mean over all parts",
    "face_verification": "true accept rate at a false accept rate, pairs within each group",
    "face_verification_hard": "true accept rate at a false accept rate, hard pairs within each "
    "group",
    "reconstruction": "reconstructed faces against the originals (LPIPS: lower is better; PSNR and "
    "identity: higher)",
    "super_resolution": "super-resolved faces against the originals (LPIPS: lower is better)",
    "zero_shot": "share of people given each label, percent",
    "question_answering": "share of people given each answer, percent",
    "face_detection_on_widerface": "average recall of faces' boxes over overlaps of .50 to .95",
    "detection_on_facet": "average recall of people's boxes over overlaps of .50 to .95",
    "segmentation_on_facet": "average recall of people's masks over overlaps of .50 to .95",
}


_LAYOUTS = {
    "face_verification": build_accept_rate_tables_by_attribute,
    "answers": build_answer_share_tables_by_attribute,
}


def tables(name: str, run: Run) -> dict[str, pl.DataFrame]:
    """Lay a run of one protocol out by group, a table for each attribute.

    Parameters
    ----------
    name : str
        The protocol, as for ``protocol``.
    run : Run
        In memory or read back from a directory.

    Returns
    -------
    dict of str to polars.DataFrame
        Caption to table, in the order of the run's attributes. The paper's own tables are in its
        supplement; these hold what its Methods compare (medians) and the authors' reports print
        (mean, median, size): ``model``, ``metric``, ``group``, ``n_scores``, ``n_subjects``,
        ``median``, ``mean``, in the metric's own unit. Of verification ``model``, ``group``,
        ``n_faces``, ``n_subjects``, ``tar``, ``low``, ``high``. Null: no value, as where a group
        has fewer than ten subjects. Other datasets have images where these have subjects. Of what a
        model says ``metric, label`` and a column a group, in percent.

    Raises
    ------
    UnknownNameError
        No such protocol.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
    >>> from isolux.core.tables import SCORES
    >>> cells = GROUP_METRICS.conform(pl.DataFrame({
    ...     "model": "m", "metric": "tar_at_far", "attribute": "pronoun", "group": ["a", "b"],
    ...     "n_units": [40, 8], "n_clusters": [12, 3], "value": [0.9, 0.8],
    ...     "status": ["ok", "insufficient clusters"]}))
    >>> others = (t.empty() for t in (DISPARITIES, FINDINGS))
    >>> record = {"clusters": {"column": "subject"}}
    >>> run = Run(record, SCORES.empty(), ATTRIBUTES.empty(), cells, *others)
    >>> for caption, table in tables("face_verification", run).items():
    ...     caption[:9], table.select("group", "n_subjects", "tar").rows()
    ('Pronoun: ', [('a', 12, 0.9), ('b', 3, None)])
    """
    check_protocol_exists("fhibe", PROTOCOLS, name)
    laid_out = _LAYOUTS.get(str(PROTOCOLS[name]["task"]), build_score_tables_by_attribute)
    tables_by_attribute = laid_out(run)
    words = _build_caption_starts(
        list(tables_by_attribute), run.record.get("dataset", {}).get("terms", {})
    )
    return {
        f"{words[entry]}: {_HEADINGS[name]}": table for entry, table in tables_by_attribute.items()
    }


def _build_caption_starts(attributes: Sequence[str], terms: Mapping[str, str]) -> dict[str, str]:
    """Start a caption for each attribute or intersection in the dataset's terms for them."""
    terms_by_entry = {
        e: " and ".join(terms.get(attribute, attribute) for attribute in split_intersection(e))
        for e in attributes
    }
    n_uses = Counter(terms_by_entry.values())
    readable = {
        e: (words if n_uses[words] == 1 else e).replace("_", " ")
        for e, words in terms_by_entry.items()
    }
    return {e: words[:1].upper() + words[1:] for e, words in readable.items()}
