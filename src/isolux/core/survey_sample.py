"""A sample that stands for a population: what marks its runs, and the refusal of what ignores that.

A run of such a sample keeps, beside its scores, the table ``sample``: for how many people each unit
stands, and from which part of the population it was drawn. Whatever reads scores and does not read
that table would answer another question, so it refuses.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from isolux.core.errors import SpecError

SAMPLE = "sample"
"""The evidence that says how units were drawn: ``unit_id, weight, stratum, stratum_clusters``."""


def is_survey_sample(run_record: Mapping[str, Any]) -> bool:
    """Tell by its record whether a run's numbers are those of a population.

    Examples
    --------
    >>> is_survey_sample({"sample": {"weight": "w"}}), is_survey_sample({})
    (True, False)
    """
    return bool(run_record.get("sample"))


def is_weighted(run_record: Mapping[str, Any]) -> bool:
    """Tell by its record whether people count by their weights.

    Examples
    --------
    >>> is_weighted({"sample": {"strata": "s"}})
    False
    """
    sample_record = run_record.get("sample") or {}
    return bool(sample_record.get("weight") or sample_record.get("population"))


def is_census(run_record: Mapping[str, Any]) -> bool:
    """Tell by its record whether all of a run's population was drawn.

    Examples
    --------
    >>> is_census({"sample": {"census": True}}), is_census({})
    (True, False)
    """
    return bool((run_record.get("sample") or {}).get("census"))


def describe_survey_sample(run_record: Mapping[str, Any]) -> str:
    """Say in one sentence how a run's people were drawn; empty: nothing was said of it.

    Examples
    --------
    >>> describe_survey_sample({"sample": {"said": "Weighted by 'w'."}}), describe_survey_sample({})
    ("Weighted by 'w'.", '')
    """
    return str((run_record.get("sample") or {}).get("said") or "")


def add_weighted_to_title(title: str, run_record: Mapping[str, Any]) -> str:
    """Call a metric weighted where its run's numbers are.

    Examples
    --------
    >>> drawn = {"sample": {"weight": "w"}}
    >>> (
    ...     add_weighted_to_title("Accuracy", drawn),
    ...     add_weighted_to_title("AP", drawn),
    ...     add_weighted_to_title("AP", {}),
    ... )
    ('Weighted accuracy', 'Weighted AP', 'AP')
    """
    if not is_weighted(run_record):
        return title
    acronym = title[1:2].isupper()
    return f"Weighted {title if acronym else title[:1].lower() + title[1:]}"


def refuse_survey_sample(evidence_names: Container[str], command: str, expected: str) -> None:
    """Refuse a run of a sample with weights or strata where they would be ignored.

    Examples
    --------
    >>> refuse_survey_sample(["classification"], "monitor", "runs without --weight")
    """
    if SAMPLE in evidence_names:
        raise SpecError(
            f"{command} takes no weights, no strata and no clusters both ways yet, and "
            f"would ignore "
            "how the people of this run were drawn",
            expected=expected,
            found="a run with --weight, --strata, --population or population_size, or with two "
            "columns in --cluster",
        )
