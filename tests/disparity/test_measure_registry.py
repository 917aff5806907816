"""The words and functions behind each kind of disparity."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import numpy as np
import pytest

from isolux.core import registry
from isolux.core.errors import IsoluxError
from isolux.core.info import MeasureInfo
from isolux.disparity.measure_registry import PluginMeasure, disparity_measure_info, load_measures

INFO = MeasureInfo(title="Gini coefficient", summary="Half the relative mean gap.", references=())


def _plugin(function) -> PluginMeasure:
    module = ModuleType("theirs")
    module.measure = function
    return PluginMeasure("gini", INFO, module)


def test_a_measure_is_given_the_settings_that_it_names():
    two = _plugin(lambda values, *, ddof, log_base: np.asarray(values[..., 0] * ddof + log_base))
    one = _plugin(lambda values, *, overall: np.asarray(overall))
    chosen = {"overall": np.array(7.0), "ddof": 3, "log_base": 10.0}
    assert two.evaluate(np.array([2.0, 9.0]), chosen) == 16.0
    assert one.evaluate(np.array([2.0, 9.0]), chosen) == 7.0
    assert (two.needs_centre, one.needs_centre) == (False, True)


def test_a_measure_along_the_wrong_axis_is_refused():
    wrong = _plugin(lambda values: np.asarray(values).max(axis=0))
    with pytest.raises(IsoluxError, match=r"(?s)'gini' does not give one number.*\(5,\).*\(3,\)"):
        wrong.evaluate(np.zeros((5, 3)), {})


@pytest.mark.parametrize(
    ("metric", "low", "fits"),
    [
        ("accuracy", 0.0, False),
        ("recall", 0.0, True),
        ("recall", None, False),
        ("recall", -1.0, False),
    ],
)
def test_a_measure_is_for_the_metrics_that_it_says(metric, low, fits):
    info = MeasureInfo(
        title="t", summary="s.", references=(), metrics=("recall",), nonnegative=True
    )
    assert PluginMeasure("one", info, ModuleType("theirs")).is_applicable(metric, low) is fits


def test_a_measure_cannot_take_the_name_of_a_kind(monkeypatch):
    module = ModuleType("theirs")
    module.INFO, module.measure = INFO, lambda values: values[..., 0]
    monkeypatch.setitem(sys.modules, "theirs", module)
    point = EntryPoint("omnibus_test", "theirs", "isolux.measures")
    monkeypatch.setattr(
        registry, "list_entry_points", lambda group: [point] if group == point.group else []
    )
    with pytest.raises(IsoluxError, match="as one of isolux, 'omnibus_test'"):
        load_measures()


def test_measures_stand_in_the_order_in_which_they_are_read():
    names = [measure.name for measure in load_measures()]
    assert names[0] == "range"
    assert names[-2:] == ["standard_deviation", "mean_absolute_gap"]
    assert sorted(names) == registry.names("measures")


def test_a_kind_of_a_package_that_is_gone_is_called_by_its_name():
    info = disparity_measure_info("theil_ratio")
    assert (info.title, info.unit) == ("theil ratio", "")
    assert re.search("not installed here", info.summary)
