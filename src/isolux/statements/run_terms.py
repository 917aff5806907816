"""How analyses say what a run calls things: attributes, metrics, sizes, p-values.

Every sentence of a finding is made with these, so that two analyses never call one thing by two
names. Wording follows fairlearn's guide for contributors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isolux.core import registry
from isolux.core.containers import Run
from isolux.core.errors import UnknownNameError
from isolux.core.formatting import (
    describe_task_choices_by_metric,
    format_class_with_target,
    read_target_term,
)
from isolux.core.info import Metric
from isolux.core.spec import split_intersection
from isolux.core.survey_sample import is_census, is_weighted
from isolux.groups.unknown_values import KNOWN_SUFFIX
from isolux.statements.numbers import format_p_value_equation

HIDDEN_COMPARED = "Groups that cannot be shown here were compared, too."


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What the run calls things.

    Parameters
    ----------
    terms : mapping of str to str
        Attribute to the words to print for it.
    metrics : mapping of str to Metric
        The task's metrics; one that is not there is called by its name, and has no direction.
    level : float
        Of the intervals.
    is_adjusted : bool
        Whether p-values are adjusted for the family.
    n_models : int
        With more than one, sentences begin with the model's name.
    cluster : str or None
        What was sampled independently.
    minimum_sizes : str
        What a group needs to be judged: "50 units and 10 clusters".
    task_choices : mapping of str to str
        Metric to the words for what the task set for it (the threshold that its answers were made
        at, the number that it is of), with a space before.
    target : str
        What classes are classes of, in the dataset's term for it.
    margin : float or None
        Points of 100 by which groups may differ and still count as alike.
    references : mapping of str to str
        Attributes whose groups are compared with one of them only, and that group.
    is_weighted : bool
        Whether people count by their weights.
    is_census : bool
        Whether all of the population was drawn.
    is_redacted : bool
        Whether the run was cut to be published, so that groups and comparisons are hidden.
    """

    terms: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    level: float = 0.95
    is_adjusted: bool = True
    n_models: int = 1
    cluster: str | None = None
    minimum_sizes: str = ""
    task_choices: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    margin: float | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    is_weighted: bool = False
    is_census: bool = False
    is_redacted: bool = False

    def format_class(self, row: Mapping[str, Any]) -> str:
        """Call a row's class; by the target too where the label alone says nothing.

        Examples
        --------
        >>> RunTerms(target="ill").format_class({"label": "1"})
        'ill = 1'
        """
        return format_class_with_target(row["label"], self.target)

    def format_attribute(self, attribute: str) -> str:
        """Call an attribute or intersection by the dataset's terms.

        Examples
        --------
        >>> RunTerms(terms={"gender": "perceived gender presentation"}).format_attribute(
        ...     "race*gender (known)",
        ... )
        'race × perceived gender presentation (known)'
        """
        titles = []
        for name in split_intersection(attribute):
            base_name = name.removesuffix(KNOWN_SUFFIX)
            suffix = name[len(base_name) :]
            titles.append(self.terms.get(base_name, base_name.replace("_", " ")) + suffix)
        return " × ".join(titles)

    def format_metric(self, row: Mapping[str, Any]) -> str:
        """Call a metric, its class and its threshold: ``recall of nurse``."""
        metric_text = self._format_metric_and_class(row)
        return f"Weighted {lower_unless_acronym(metric_text)}" if self.is_weighted else metric_text

    def _format_metric_and_class(self, row: Mapping[str, Any]) -> str:
        metric = self.metrics.get(row["metric"])
        class_text = f" of {self.format_class(row)}" if row["label"] is not None else ""
        if metric and row["threshold"] is not None and metric.threshold_phrase != "at":
            return f"{metric.format_title(row['threshold'])}{class_text}"
        name = metric.title if metric else str(row["metric"]).replace("_", " ")
        threshold_text = f" at {row['threshold']:g}" if row["threshold"] is not None else ""
        return f"{name}{class_text}{threshold_text or self.task_choices.get(row['metric'], '')}"

    def find_unit(self, row: Mapping[str, Any]) -> str:
        """Return the metric's unit."""
        metric = self.metrics.get(row["metric"])
        return metric.unit if metric else "fraction"

    def format_p(self, p_value: float | None) -> str:
        """Print a p-value, and that it is adjusted.

        Examples
        --------
        >>> RunTerms().format_p(0.0002), RunTerms(is_adjusted=False).format_p(0.04)
        ('adjusted p < 0.001', 'p = 0.040 (not adjusted for the other tests)')
        """
        if p_value is None:
            return "not tested"
        text = format_p_value_equation(p_value)
        return (
            f"adjusted {text}" if self.is_adjusted else f"{text} (not adjusted for the other tests)"
        )

    def format_adjusted_p(self, p_value: float | None) -> str:
        """Print a p-value that an analysis adjusted itself, whatever the audit does with its own.

        Examples
        --------
        >>> RunTerms(is_adjusted=False).format_adjusted_p(0.04)
        'adjusted p = 0.040'
        """
        return replace(self, is_adjusted=True).format_p(p_value)

    def begin_sentence(self, model: str, sentence: str) -> str:
        """Begin with a capital letter; with the model where there are several."""
        upper = sentence[:1].upper() + sentence[1:]
        return f"{model}: {upper}" if self.n_models > 1 else upper


def read_display_terms(run: Run) -> RunTerms:
    """Read from a run's record and tables what it calls things."""
    spec = run.record.get("spec") or {}
    units, clusters = spec.get("min_units"), spec.get("min_clusters")
    return RunTerms(
        target=read_target_term(run.record),
        terms=dict((run.record.get("dataset") or {}).get("terms") or ()),
        metrics=_read_metrics_by_name(
            run.group_metrics["task"].unique().sort().to_list(), run.record
        ),
        level=float(spec.get("level", 0.95)),
        is_adjusted=spec.get("correction") != "none",
        n_models=run.group_metrics["model"].n_unique(),
        cluster=(run.record.get("clusters") or {}).get("column"),
        minimum_sizes=f"{units} units and {clusters} clusters" if units and clusters else "",
        task_choices=describe_task_choices_by_metric(run.record),
        margin=spec.get("margin"),
        references=dict(str(r).partition("=")[::2] for r in spec.get("reference") or ()),
        is_weighted=is_weighted(run.record),
        is_census=is_census(run.record),
        is_redacted=bool(run.record.get("withheld")),
    )


def list_declared_metrics_by_name(tasks: Iterable[str]) -> dict[str, Metric]:
    """Return what tasks declare by name, each task's defaults first."""
    metrics_by_name: dict[str, Metric] = {}
    for task in tasks:
        try:
            task_info = registry.task_info(task)
        except UnknownNameError:  # a run read back where the task's package is not installed
            continue
        ordered = sorted(task_info.metrics, key=lambda m: m.name not in task_info.defaults)
        metrics_by_name |= {m.name: m for m in ordered if m.name not in metrics_by_name}
    return metrics_by_name


def list_run_metrics_by_name(tasks: Iterable[str], record: Mapping[str, Any]) -> dict[str, Metric]:
    """Return what tasks declare by name, with the unit and direction that the run gave it."""
    declared_measures = record.get("measures") or {}
    # Of a number that could be anything, the user says the unit and which way is better.
    return {
        name: replace(
            m,
            **{
                k: declared_measures[name][k]
                for k in ("unit", "direction")
                if k in declared_measures[name]
            },
        )
        if name in declared_measures
        else m
        for name, m in list_declared_metrics_by_name(tasks).items()
    }


def _read_metrics_by_name(tasks: list[str], record: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the tasks' metrics by name; else as the run says."""
    metrics_by_name = list_run_metrics_by_name(tasks, record)
    declared_measures = record.get("measures") or {}
    return metrics_by_name | {
        name: Metric(name=name, definition="", **metric_fields)
        for name, metric_fields in declared_measures.items()
        if name not in metrics_by_name
    }


def format_confidence_level(run_terms: RunTerms) -> str:
    """Print the intervals' level: ``95 %``."""
    return f"{100 * run_terms.level:g} %"


def lower_unless_acronym(text: str) -> str:
    """Lower the first letter, unless the word is an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
