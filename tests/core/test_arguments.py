"""Arguments that a public function does not take: said with near names, never a bare TypeError."""

from __future__ import annotations

import inspect
import pickle

import polars as pl
import pytest

import isolux
from isolux.core.arguments import explain_argument_errors, normalise_argument
from isolux.core.errors import IsoluxError, SpecError

FUNCTIONS = [n for n in isolux.__all__ if inspect.isfunction(getattr(isolux, n))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_public_function_answers_with_a_bare_type_error(name):
    function = getattr(isolux, name)
    for call in (
        lambda: function(nonsense=1),
        lambda: function(*range(20)),
        function,
    ):
        with pytest.raises(IsoluxError) as caught:
            call()
        assert "expected:" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "given", "near"),
    [
        ("describe", {"bye": ["race"]}, "'by'"),
        ("compare", {"id_form": "stem"}, "'id_from'"),
        ("sample", {"balnce": ["race"]}, "'balance'"),
        ("metric_frame", {"sensitive_feature": [1]}, "'sensitive_features'"),
        ("synthesize", {"sede": 1}, "'seed'"),
        ("monitor", {"metrics": "accuracy"}, "'metric'"),
    ],
)
def test_near_names_are_told(name, given, near):
    with pytest.raises(SpecError, match=f"(?s){name} does not take.*did you mean {near}"):
        getattr(isolux, name)("table:people.csv", **given)


def test_what_is_lacking_is_named():
    with pytest.raises(SpecError, match="load needs path"):
        isolux.load("table")
    with pytest.raises(SpecError, match=r"(?s)metric_frame takes its settings by name.*3 by place"):
        isolux.metric_frame("accuracy", [1, 0], [1, 0])


@pytest.fixture
def people(tmp_path):
    file = tmp_path / "people.csv"
    pl.DataFrame({"id": ["a", "b"], "race": ["x", "y"]}).write_csv(file)
    return f"table:{file}"


def test_none_means_not_given(people):
    assert isolux.describe(people, by=None).tables.keys() == isolux.describe(people).tables.keys()
    frame = pl.DataFrame({"unit_id": ["a", "b"], "race": ["x", "y"], "value": [1.0, 0.0]})
    assert isolux.audit(frame, by=None).group_metrics.equals(isolux.audit(frame).group_metrics)


@pytest.mark.parametrize("wrong", [3, {"race": 1}, [3], [None]])
def test_other_things_than_names_are_refused(people, wrong):
    with pytest.raises(SpecError, match=r"(?s)describe cannot take this for 'by'.*list of texts"):
        isolux.describe(people, by=wrong)
    with pytest.raises(SpecError, match="audit cannot take this for 'by'"):
        isolux.audit(people, by=wrong)


def _several(name):
    return [
        p for p in inspect.signature(getattr(isolux, name)).parameters.values()
        if str(p.annotation) in ("Sequence[str]", "Sequence[str] | None")
    ]  # fmt: skip


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if _several(n)])
def test_a_text_is_one_name_where_several_are_taken(name):
    for parameter in _several(name):
        assert normalise_argument(name, parameter, "light") == ("light",), parameter.name
        assert normalise_argument(name, parameter, ["light"]) == ["light"]


def test_a_text_is_itself_where_one_is_taken():
    by, place = (inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, annotation=a)
                 for a in ("str | Sequence[str]", "str | None"))  # fmt: skip
    assert (
        normalise_argument("look", by, "light")
        == normalise_argument("look", place, "light")
        == "light"
    )
    runs = by.replace(annotation="Sequence[Run | str | Path]")
    assert normalise_argument("look", runs, "run1") == ("run1",)


def test_nothing_else_of_a_function_changes():
    def look(data, *, by=(), **more):
        """Look at data."""
        return data, by, more

    told = explain_argument_errors(look)
    assert told("x", by=["y"], z=3) == ("x", ["y"], {"z": 3})
    assert inspect.signature(told) == inspect.signature(look)
    assert told.__doc__ == "Look at data."
    with pytest.raises(TypeError, match="from within"):
        explain_argument_errors(lambda: (_ for _ in ()).throw(TypeError("from within")))()
    assert pickle.loads(pickle.dumps(isolux.describe)) is isolux.describe  # noqa: S301
