"""From ``FAMILY:WHAT`` to a model, or to the nearest name."""

from __future__ import annotations

import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux.models import open_model, wrap_callable_as_model


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

    assert (
        wrap_callable_as_model(net, version="1").key == wrap_callable_as_model(net, version="1").key
    )
    assert (
        wrap_callable_as_model(net, version="1").key != wrap_callable_as_model(net, version="2").key
    )
    assert wrap_callable_as_model(net).key != wrap_callable_as_model(net).key
    assert wrap_callable_as_model(net).name == "net"
    assert wrap_callable_as_model(lambda p: []).name == "lambda"
