"""What holds for each disparity measure: a number of the groups' values, and words for it.

A new measure needs no sample: its ``INFO`` says its range, its direction and its value where all
groups are alike, and every line below is asked of it.
"""

from __future__ import annotations

import html
import inspect
import math
import re
from functools import cache

import numpy as np
import pytest

import isolux
from isolux.disparity.measure_registry import disparity_measure_info, load_measures
from isolux.report.html import render_report
from isolux.report.summary import summarise_run
from tests.contracts._plugins import Plugin, of_package
from tests.contracts._samples import labels, people

every_measure = of_package("measures")
VALUES = np.array([[0.5, 0.75, 0.9, 0.6], [0.2, 0.9, 0.4, 0.3], [0.6, 0.6, 0.61, 0.6]])
SETTINGS = {"ddof": 1, "log_base": 10.0}


def _measured(plugin: Plugin, values: np.ndarray) -> np.ndarray:
    (measure,) = (one for one in load_measures() if one.name == plugin.name)
    everyone = np.ma.masked_invalid(values).mean(axis=-1)
    overall = np.ma.filled(np.ma.asarray(everyone, dtype=np.float64), np.nan)
    return measure.evaluate(values, {"overall": overall, **SETTINGS})


@every_measure
def test_it_is_one_number_for_each_row_of_groups(plugin: Plugin) -> None:
    found = _measured(plugin, VALUES)
    assert np.isfinite(found).all()
    assert [_measured(plugin, row).item() for row in VALUES] == found.tolist()


@every_measure
def test_it_lies_within_its_range(plugin: Plugin) -> None:
    found, info = _measured(plugin, VALUES), plugin.module.INFO
    assert info.low is None or (found >= info.low).all()
    assert info.high is None or (found <= info.high).all()


@every_measure
def test_alike_groups_have_the_value_that_it_says(plugin: Plugin) -> None:
    alike = _measured(plugin, np.full(4, 0.6)).item()
    assert alike == pytest.approx(plugin.module.INFO.parity_value, abs=1e-12)


@every_measure
def test_groups_farther_apart_move_it_the_way_that_it_says(plugin: Plugin) -> None:
    near, far = _measured(plugin, np.array([[0.5, 0.6, 0.7], [0.3, 0.6, 0.9]]))
    direction = plugin.module.INFO.direction
    assert direction in {"higher", "lower"}, "a measure of several groups has no sign"
    assert near < far if direction == "lower" else near > far


@every_measure
def test_the_order_of_groups_does_not_matter(plugin: Plugin) -> None:
    turned = _measured(plugin, VALUES[:, ::-1])
    np.testing.assert_allclose(turned, _measured(plugin, VALUES), rtol=1e-12)


@every_measure
def test_a_group_that_is_not_judged_takes_no_part(plugin: Plugin) -> None:
    with_gap = np.column_stack([VALUES, np.full(len(VALUES), np.nan)])
    np.testing.assert_allclose(_measured(plugin, with_gap), _measured(plugin, VALUES), rtol=1e-12)
    assert np.isnan(_measured(plugin, np.full(3, np.nan))).all()


@every_measure
def test_what_it_takes_is_what_an_audit_gives(plugin: Plugin) -> None:
    takes = {*inspect.signature(plugin.module.measure).parameters} - {"values"}
    assert takes <= {"overall", *SETTINGS}


@every_measure
def test_its_ends_are_in_order_and_hold_what_they_bound(plugin: Plugin) -> None:
    info = plugin.module.INFO
    if info.interval == "percentile":
        assert not hasattr(plugin.module, "bounds"), "percentiles have no other ends"
        return
    (measure,) = (one for one in load_measures() if one.name == plugin.name)
    values = np.array([0.5, 0.75, 0.9])
    gap = 0.4 if info.interval == "largest difference" else math.log(0.9 / 0.5)
    value = measure.evaluate(values, SETTINGS).item()
    low, high = measure.convert_bounds((0.5 * gap, 1.5 * gap), SETTINGS)
    assert low < value < high
    at, same = measure.convert_bounds((gap, gap), SETTINGS)
    assert (at, same) == (pytest.approx(value), pytest.approx(value)), "bounds that meet are it"


@cache
def _audited() -> tuple[frozenset[str], str]:
    """Audit the sample on every metric; give the kinds that have a value, and the report."""
    scores = isolux.score(
        "classification", people(), labels(), target="class", positive="nurse",
    )  # fmt: skip
    audit = isolux.audit(
        scores, people(), by=["tone"], min_units=1, min_clusters=1, replicates=200,
        metric=["accuracy", "selection_rate", "true_positive_rate", "false_positive_rate"],
    )  # fmt: skip
    rows = audit.disparities.drop_nulls("value")  # of fewer than five groups there is no SD
    kinds = frozenset(rows["kind"].unique())
    page = re.sub(
        r"<(style|script).*?</\1>", " ", render_report(summarise_run(audit.run)), flags=re.DOTALL
    )
    return kinds, html.unescape(re.sub(r"<[^>]+>", " ", page))


def _is_said(words: str, page: str) -> bool:
    return re.sub(r"\s+", "", words).casefold() in re.sub(r"\s+", "", page).casefold()


@every_measure
def test_the_report_calls_it_by_its_title(plugin: Plugin) -> None:
    kinds, page = _audited()
    assert plugin.name in kinds, "the audit of these four metrics measures it"
    assert _is_said(plugin.module.INFO.title, page)
    if "_" in plugin.name:
        assert plugin.name not in page, "its raw name is for tables"


def test_every_kind_of_row_has_words() -> None:
    kinds, page = _audited()
    assert {"difference", "omnibus_test", "equalized_odds_difference"} <= kinds
    for kind in kinds:
        info = disparity_measure_info(kind)
        assert "not installed" not in info.summary, kind
        assert info.title.strip()
        assert info.summary.endswith(".")
    of_many = {"noise_corrected_sd"}  # of five groups or more: not said of these
    other_words = {"log_ratio", "omnibus_test", "max_difference_bound"}
    for kind in kinds - other_words - of_many:
        assert _is_said(disparity_measure_info(kind).title, page), kind
    assert not _is_said(disparity_measure_info(*of_many).title, page)
