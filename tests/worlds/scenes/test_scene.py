"""What a scene and a detector may be, and what they are told when they may not."""

from __future__ import annotations

import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds import (
    Detector,
    Effect,
    Scene,
    SceneAttribute,
    confounded_scene,
    injected_recall,
    simulate_scene,
)

TONE = SceneAttribute(name="tone", shares={"a": 0.5, "b": 0.5})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"clusters": 0}, "a scene needs clusters"),
        ({"images": 0}, r"a scene needs images(?s:.*)1 or more"),
        ({"people": (3, 2)}, r"a scene needs people(?s:.*)\(3, 2\)"),
        ({"side_px": 4.0}, r"side_px is out of range(?s:.*)8 to 512 pixels(?s:.*)4.0"),
        ({"side_spread": 0.0}, "side_spread is out of range"),
        ({"occluded": 0.0}, "occluded is out of range"),
        ({"correlation": 1.0}, "correlation is out of range"),
        ({"attributes": (TONE, TONE)}, r"unique names(?s:.*)tone"),
        ({"attributes": (SceneAttribute(name="size", shares={"a": 1.0}),)},
         r"none of size, occluded, crowding"),
        ({"size_effects": (Effect({}, 1.0),)}, "an effect names no group"),
    ],
)  # fmt: skip
def test_scenes_that_cannot_be(changes, text):
    with pytest.raises(SpecError, match=text):
        Scene(**({"clusters": 5, "attributes": (TONE,)} | changes))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"size_effects": (Effect({"size": "small"}, 1.0),)}, "size"),
        ({"occlusion_effects": (Effect({"tone": "c"}, 1.0),)}, "c"),
        ({"by": ("tone*colour",)}, "colour"),
    ],
)
def test_names_that_a_scene_has_not(changes, name):
    with pytest.raises(UnknownNameError, match=repr(name)):
        Scene(**({"clusters": 5, "attributes": (TONE,)} | changes))


def test_attributes_that_cannot_be():
    with pytest.raises(SpecError, match=r"the shares of 'x' are not a distribution(?s:.*)sum 0.9"):
        SceneAttribute(name="x", shares={"a": 0.5, "b": 0.4})
    with pytest.raises(SpecError, match=r"'x' cannot vary so(?s:.*)'subject'"):
        SceneAttribute(name="x", shares={"a": 1.0}, varies="subject")


@pytest.mark.parametrize(
    "changes",
    [
        {"base_rate": 1.0},
        {"overlap": 0.0},
        {"concentration": 0.0},
        {"false_alarms": -1.0},
        {"per_doubling": float("nan")},
    ],
)
def test_detectors_that_cannot_be(changes):
    with pytest.raises(SpecError, match=f"{next(iter(changes))} of 'm' is out of range"):
        Detector(name="m", **changes)


def test_false_alarms_are_of_images_and_have_no_tone():
    scene = Scene(clusters=5, attributes=(TONE,))
    detector = Detector(name="m", false_alarm_effects=(Effect({"tone": "b"}, 1.0),))
    with pytest.raises(UnknownNameError, match="'tone'"):
        simulate_scene(scene, detector)


def test_detectors_have_names_of_their_own():
    with pytest.raises(SpecError, match="each with a unique name"):
        simulate_scene(Scene(clusters=5), (Detector(name="m"), Detector(name="m")))
    with pytest.raises(SpecError, match=r"(?s)one or more.*none"):
        simulate_scene(Scene(clusters=5), ())


@pytest.mark.parametrize("matters", ["nothing", "size", "attribute", "both"])
def test_confounded_scenes_do_what_they_say(matters):
    truth = injected_recall(*confounded_scene(matters)).filter(metric="recall_at_iou")
    value = {tuple(r["values"]): r["value"] for r in truth.iter_rows(named=True)}
    gap = value["a",] - value["b",]
    at_equal_size = value["a", "medium"] - value["b", "medium"]
    by_size = value["a", "large"] - value["a", "small"]
    assert (abs(gap) < 1e-12) == (matters == "nothing")
    # Within "medium" those of tone b are still smaller, by a little.
    assert (at_equal_size > 0.1) == (matters in ("attribute", "both"))
    assert abs(at_equal_size) < 0.02 or matters in ("attribute", "both")
    assert (by_size > 0.2) == (matters in ("size", "both"))
    assert abs(value["bright",] - value["dim",]) < 1e-12


def test_a_word_that_nobody_injected():
    with pytest.raises(SpecError, match=r"(?s)that cannot be injected.*nothing, size.*'light'"):
        confounded_scene("light")
