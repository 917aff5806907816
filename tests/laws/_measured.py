"""What an audit measures and compares, without its findings: the tables that a law asks.

Sentences take as long as all the rest of an audit of a small world, and no law of the tables reads
them, nor the estimates of small intersections. The same functions measure here in the same order;
``test_pipeline`` holds the tables to an audit's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

from isolux.api._tables_from_memory import to_dataset
from isolux.api.audit.survey_sample import add_survey_sample
from isolux.core.containers import Run, Scores
from isolux.core.spec import parse_spec
from isolux.core.tables import ATTRIBUTES, FINDINGS, check
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings
from isolux.tasks import score
from isolux_worlds import Detector, Scene, SceneWorld, simulate_scene


def boxes_of(scene: Scene, detector: Detector, seed: int) -> SceneWorld:
    """Draw a world of boxes without its truth: that is the scene's, whatever the seed."""
    with mock.patch("isolux_worlds.scenes.scene_world.injected_recall", return_value=None):
        return simulate_scene(scene, detector, seed)


def scored(world: Any, metrics: Sequence[str]) -> Scores:
    """Score a world of boxes at half of their union, as ``isolux.score`` does.

    It asks first whether boxes were read the right way and pictures have the right size, which
    takes more than the scoring of so few; worlds are what they are.
    """
    with mock.patch("isolux.tasks._boxes.scoring.check_predictions", return_value=[]):
        return score("detection", world.dataset, world.predictions, metrics=metrics,
                     iou_thresholds=(0.5,))  # fmt: skip


def measured(scores: Scores, people: object, by: Sequence[str], **settings: Any) -> Run:
    """Measure groups and compare them, as ``isolux.audit`` does with these settings."""
    dataset = to_dataset(people)
    task = scores.units["task"][0] if scores.units.height else scores.task
    said = {"data": dataset.name, "by": by, "task": task, **settings}
    spec = parse_spec(said)
    dataset, scores = add_survey_sample(spec, dataset, scores)
    attributes = check(dataset.instance_attributes(), ATTRIBUTES)
    members = build_membership(attributes, spec.groups.by, read_groupings(spec.groups, attributes),
                         units=scores.evaluated_units())  # fmt: skip
    estimates = measure_groups(scores, members, spec.statistics)
    compared = measure_disparities(estimates, spec.comparing)
    record = {"spec": {**said, "by": list(by)}, "task": task}
    return Run(record, scores.units, attributes, estimates.to_table(), compared.table,
               FINDINGS.empty(), scores.evidence)  # fmt: skip
