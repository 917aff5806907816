"""ICON²'s protocol and tables, from a made world through the analysis."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest

import isolux
from isolux.api.audit.pipeline import move_bins_to_confounders
from isolux.api.explain import run_analyses
from isolux.core.containers import Run
from isolux.core.errors import UnknownNameError
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES
from isolux.papers.icon2 import DISAGREEMENTS, INFO, PROTOCOLS, tables
from isolux.tasks import score
from isolux_worlds import confounded_scene, simulate_scene
from tests.papers._protocol import audit_of

protocol = partial(audit_of, "icon2")

OPTIONS = [
    "explanatory=size,occluded", "false_alarms=class and value", "count=mean of peers",
    "min_cell=10", "replicates=100",
]  # fmt: skip


@pytest.fixture(scope="module")
def run() -> Run:
    scene, detector = confounded_scene("both", clusters=80, images=2, people=(2, 5))
    world = simulate_scene(scene, detector, 4)
    scores = score(
        "detection", world.dataset, world.predictions,
        metrics=("normalised_average_precision",), by_class=True,
    )  # fmt: skip
    audited = isolux.audit(scores, world.dataset, by=("tone",), replicates=100).run
    return run_analyses(audited, ["confounders"], OPTIONS)


def test_the_protocol_is_an_audit():
    spec = protocol("detection", "bdd100k:labels", by=("tone",))
    assert spec.groups.by == ("tone",)
    assert spec.protocol == "icon2:detection"
    assert (spec.disparity.ddof, spec.task.get("max_detections")) == (1, 100)
    assert spec.explain.analyses == ("confounders",)
    assert "confounders.false_alarms=class and value" in spec.explain.analysis_option
    assert set(DISAGREEMENTS) == set(PROTOCOLS)
    assert INFO.references[0].key == "icon2"


def test_a_protocols_analyses_can_be_left_out():
    assert protocol("detection", "bdd100k:labels").explain.analyses == ("confounders",)
    assert protocol("detection", "bdd100k:labels", explain=("none",)).explain.analyses == ()


def test_bins_of_an_explanatory_attribute_stand_beside_the_protocols_own():
    spec = protocol("detection", "bdd100k:labels", bins=("box_height=quantile:4",))
    assert spec.groups.bins == ("income=quantile:3:images", "box_height=quantile:4")
    moved = move_bins_to_confounders(spec)
    assert moved.groups.bins == ("income=quantile:3:images",)
    assert moved.explain.analysis_option[-1] == 'confounders.bins={"box_height": "quantile:4"}'
    own = protocol("detection", "bdd100k:labels", bins=("income=edges:9,90",))
    assert move_bins_to_confounders(own) == own
    assert own.groups.bins == ("income=edges:9,90",)


def test_there_is_no_other_protocol():
    with pytest.raises(UnknownNameError, match=r"(?s)protocol named 'faces'.*where: icon2"):
        protocol("faces", "bdd100k:labels")
    empty = (t.empty() for t in (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS))
    with pytest.raises(UnknownNameError, match="'faces'"):
        tables("faces", Run({}, *empty))


def test_tables_are_the_analysis_in_points(run):
    found = tables("detection", run)
    assert [caption.split(":")[0] for caption in found] == [
        "Table 1", "Tables 2 and 3", "Figures 2 and 3", "Figures 4 and 5", "Figure 6"
    ]  # fmt: skip
    one, ranks, values, within, counts = found.values()
    # Every attribute that was asked about, not only the one that ranks first.
    for table in (values, within):
        assert set(table["explanatory"]) == {"size", "occluded"}
    shares = values.group_by("explanatory", "class").agg(pl.col("a", "b").sum())
    assert shares["a"].to_list() == pytest.approx([100.0] * shares.height, abs=0.01)
    assert values["AP"].is_between(0, 100).all()
    assert one.columns == ["class", "attribute", "a", "b", "dispersion"]
    assert one["class"].to_list() == ["person"]
    a, b, sigma = one.row(0)[2:]
    assert sigma == pytest.approx(abs(a - b) / 2**0.5, abs=1e-3)
    assert 1 < sigma < 50
    assert ranks.columns[-3:] == ["σ(ProxyAP)", "μ(σ(AP))", "Δ"]
    assert ranks["explanatory"].to_list()[0] == "size"
    for row in ranks.iter_rows(named=True):
        usable = within.filter(explanatory=row["explanatory"]).drop_nulls(["a", "b"])
        every = within.filter(explanatory=row["explanatory"])["at"].n_unique()
        assert row["values"] == f"{usable.height} of {every}"
        assert row["Δ"] == pytest.approx(sigma - row["μ(σ(AP))"], abs=1e-3)
    assert within.columns[-2:] == ["a", "b"]
    assert set(within.filter(explanatory="size")["at"]) == {"small", "medium", "large"}
    whole = run.attributes.filter(attribute="tone")["value"].value_counts()
    assert {"a": counts["a"].item(), "b": counts["b"].item()} == dict(whole.iter_rows())


def test_a_run_without_the_analysis_has_no_tables(run):
    bare = Run(
        {k: v for k, v in run.record.items() if k != "explained"}, run.scores, run.attributes,
        run.group_metrics, run.disparities, run.findings,
    )  # fmt: skip
    assert tables("detection", bare) == {}


def test_everyone_of_all_classes_is_the_mean_of_the_classes_that_groups_average(run):
    # Nobody in b rides: its mean is of pedestrians alone, so the row of all classes is too.
    values = [("pedestrian", "a", 0.7), ("pedestrian", "b", 0.6), ("rider", "a", 0.5),
              ("rider", "b", None), (None, "a", 0.7), (None, "b", 0.6)]  # fmt: skip
    counts = [("pedestrian", "a", 80), ("pedestrian", "b", 90), ("rider", "a", 60),
              ("rider", "b", 0)]  # fmt: skip
    drawn = {
        "Values by group, and their dispersion": {
            "columns": ["label", "attribute", "group", "value", "dispersion"],
            "rows": [[label, "income", group, value, 0.1] for label, group, value in values],
        },
        "People by class and group": {
            "columns": ["label", "attribute", "group", "n"],
            "rows": [[label, "income", group, n] for label, group, n in counts],
        },
    }
    overall = GROUP_METRICS.conform(pl.DataFrame({
        "model": "m", "metric": "average_precision", "label": ["pedestrian", "rider"],
        "value": [0.65, 0.4],
    }))  # fmt: skip
    made = Run({"explained": {"confounders": drawn}}, run.scores, run.attributes, overall,
               run.disparities, run.findings)  # fmt: skip
    table = next(iter(tables("detection", made).values()))
    assert table.select("class", "overall").rows() == [
        ("pedestrian", 65.0), ("rider", 40.0), (None, 65.0)
    ]  # fmt: skip


def test_several_models_have_a_column(run):
    drawn = {"Values by group, and their dispersion": {
        "columns": ["model", "metric", "label", "attribute", "group", "value", "dispersion"],
        "rows": [["m", "ap", None, "tone", "a", 0.5, 0.1],
                 ["n", "ap", None, "tone", "a", None, None]],
    }}  # fmt: skip
    made = Run({"explained": {"confounders": drawn}}, run.scores, run.attributes,
               run.group_metrics, run.disparities, run.findings)  # fmt: skip
    (table,) = tables("detection", made).values()
    assert table.select("model", "a", "dispersion").rows() == [("m", 50.0, 10.0), ("n", None, None)]
    assert isinstance(table, pl.DataFrame)
