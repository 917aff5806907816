"""From ``FAMILY:WHAT`` to a model, or to the nearest name."""

from __future__ import annotations

import pytest

from isolux.models import callable_model, open_model
from isolux.vocabulary.errors import SpecError, UnknownNameError


@pytest.mark.parametrize(
    ("spec", "error", "match"),
    [
        ("pyhton:a:b", UnknownNameError, "did you mean 'python'"),
        ("net", SpecError, "(?s)FAMILY:WHAT.*isolux list models"),
        ("python", SpecError, "FAMILY:WHAT"),
        ("lpips:folder", SpecError, "judges two pictures at once"),
        ("imported:net.csv", SpecError, "(?s)not predicted again.*--predictions"),
    ],
)
def test_a_spec_that_names_no_model_is_refused(spec, error, match):
    with pytest.raises(error, match=match):
        open_model(spec)


def test_callables_are_told_apart_by_their_version_alone():
    def net(pictures):
        return []

    assert callable_model(net, version="1").key == callable_model(net, version="1").key
    assert callable_model(net, version="1").key != callable_model(net, version="2").key
    assert callable_model(net).key != callable_model(net).key
    assert callable_model(net).name == "net"
    assert callable_model(lambda p: []).name == "lambda"
