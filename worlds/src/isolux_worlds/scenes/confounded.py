"""Scenes for the question why: an attribute matters, or its size, or both, or nothing."""

from __future__ import annotations

from typing import Literal

from isolux.vocabulary.errors import SpecError
from isolux_worlds.populations.population import Effect
from isolux_worlds.scenes.detector import Detector
from isolux_worlds.scenes.scene import Level, Scene, SceneAttribute

__all__ = ["confounded_scene"]

_KINDS = ("nothing", "size", "attribute", "both")


def confounded_scene(
    matters: Literal["nothing", "size", "attribute", "both"],
    *,
    clusters: int = 500,
    images: int | tuple[int, int] = 2,
    people: int | tuple[int, int] = (1, 5),
    varies: Level = "person",
    correlation: float = 0.2,
) -> tuple[Scene, Detector]:
    """Return people of tones a and b, and a detector for which one thing, both or nothing matters.

    Whatever matters, people of tone b are smaller (a median side of 45 pixels, of tone a 64), more
    often occluded, and as often in dim light as those of tone a. Where size matters the detector
    gains with every doubling of it; where the attribute matters it loses with tone b.

    Parameters
    ----------
    matters : {"nothing", "size", "attribute", "both"}
        ``size``: the tones differ in recall, but not at equal size. ``attribute``: they differ at
        equal size, and size alone changes nothing. ``nothing``: recall is .7 for everyone.
    clusters, images, people, correlation
        As in ``Scene``.
    varies : {"person", "image", "cluster"}
        Who has a tone: each person, or all people of an image or cluster one.

    Returns
    -------
    (Scene, Detector)
        For ``simulate_scene``, ``planted_detection`` and ``planted_detection_record``.

    Raises
    ------
    SpecError
        Another word.

    Examples
    --------
    >>> from isolux_worlds import planted_detection
    >>> for matters in ("nothing", "size", "attribute", "both"):
    ...     truth = planted_detection(*confounded_scene(matters)).filter(metric="recall_at_iou")
    ...     print(matters, truth.filter(attribute="tone")["value"].round(2).to_list())
    nothing [0.7, 0.7]
    size [0.69, 0.62]
    attribute [0.7, 0.56]
    both [0.69, 0.49]
    """
    if matters not in _KINDS:
        raise SpecError("that cannot be planted", expected=", ".join(_KINDS), found=repr(matters))
    smaller = {"tone": "b"}
    scene = Scene(
        clusters=clusters,
        images=images,
        people=people,
        attributes=(
            SceneAttribute(name="tone", shares={"a": 0.6, "b": 0.4}, varies=varies),
            SceneAttribute(name="light", shares={"bright": 0.7, "dim": 0.3}, varies="image"),
        ),
        size_effects=(Effect(smaller, -0.5),),
        occlusion_effects=(Effect(smaller, 0.4),),
        correlation=correlation,
        by=("tone", "size", "occluded", "light", "tone*size"),
    )
    detector = Detector(
        name=f"matters_{matters}",
        base_rate=0.7,
        per_doubling=0.6 if matters in ("size", "both") else 0.0,
        effects=(Effect(smaller, -0.6),) if matters in ("attribute", "both") else (),
    )
    return scene, detector
