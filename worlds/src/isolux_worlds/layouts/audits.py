"""How a layout's world is audited: which tasks, where their files are, what attributes are called.

A loader names things as its dataset does: a world's ``perceived_gender_presentation`` is FACET's
``gender_presentation`` and the pronoun of FHIBE. ``Audits`` says so, so that a world's groupings
can be asked for in the words of its files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from isolux.vocabulary.spec import crossed

__all__ = ["AUDITS", "Audits", "Native", "Way"]


@dataclass(frozen=True, slots=True)
class Native:
    """What a world's attribute is called in a layout; ``values`` that have another name there."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Way:
    """One task on a layout: the folder or file below the data, and the audit's options."""

    task: str
    path: str = ""
    options: tuple[str, ...] = ()
    pictures: bool = False
    """Whether the task needs what is only known once pictures are painted."""


@dataclass(frozen=True, slots=True)
class Audits:
    """All ways to audit a layout, the first being the one to begin with."""

    ways: tuple[Way, ...]
    names: Mapping[str, Native]
    options: tuple[str, ...] = ()
    every: bool = False
    """The layout keeps every attribute of a world, its own ones too, as it is."""
    also: tuple[str, ...] = ()
    """Groupings that the layout's own files bring, whatever the world plants."""

    def grouping(self, entry: str) -> str | None:
        """Translate an attribute or intersection; None where the layout does not know it."""
        if self.every:
            return entry
        parts = [self.names.get(name) for name in crossed(entry)]
        return "*".join(part.name for part in parts if part) if all(parts) else None

    def values(self, entry: str, values: Sequence[str]) -> list[str]:
        """Translate a group's values."""
        names = crossed(entry)
        known = {name: self.names[name].values if name in self.names else {} for name in names}
        return [known[name].get(value, value) for name, value in zip(names, values, strict=True)]


_FACET = Audits(
    ways=(
        Way("classification"),
        Way("detection"),
        Way("label_association", options=("--taxonomy", "miap")),
        Way("open_vocabulary"),
        Way("grounding"),
        Way("retrieval"),
        Way("segmentation", pictures=True),
    ),
    names={
        "perceived_gender_presentation": Native(
            "gender_presentation", {"masculine": "masc", "feminine": "fem"}
        ),
        "skin_tone": Native("skin_tone", exact=False),
        "age_group": Native("age_presentation"),
        "hair_color": Native("hair_color", exact=False),
        "hair_type": Native("hairtype"),
        "lighting": Native("lighting"),
        "facial_hair": Native("has_facial_hair"),
        "tattoo": Native("has_tattoo"),
        "eyewear": Native("has_eyeware", {"glasses": "yes", "none": "no"}),
        "mask": Native("has_mask", {"mask": "yes", "none": "no"}),
        "occupation": Native("class"),
    },
    options=("--votes", "top"),
)
_FHIBE = Audits(
    ways=(
        Way("detection"),
        Way("face_detection", options=("--data-option", "box=face")),
        Way("keypoints", options=("--data-option", "keypoint_set=coco")),
        Way("face_verification", options=("--data-option", "release=face"), pictures=True),
        Way(
            "face_parsing",
            options=("--format", "part_masks", "--data-option", "release=face"),
            pictures=True,
        ),
    ),
    names={
        "perceived_gender_presentation": Native(
            "pronoun",
            {
                "masculine": "He/him/his",
                "feminine": "She/her/hers",
                "non_binary": "They/them/their",
            },
        ),
        "skin_tone": Native(
            "natural_skin_color",
            {
                "1": "I", "2": "I", "3": "II", "4": "II", "5": "III", "6": "IV", "7": "V",
                "8": "V", "9": "VI", "10": "VI",
            },
            exact=False,
        ),
        "lighting": Native(
            "lighting",
            {
                "well_lit": "Lighting from in front of the head/face",
                "dimly_lit": "Lighting from behind the head/face",
                "underexposed": "Lighting from below the head/face",
                "overexposed": "Lighting from above the head/face",
            },
        ),
        "weather": Native(
            "weather",
            {
                "clear": "Clear", "overcast": "Cloud", "rainy": "Rain", "snowy": "Snow/hail",
                "foggy": "Fog",
            },
        ),
        "facial_hair": Native("facial_hairstyle", {"yes": "Beard", "no": "None"}),
        "tattoo": Native("facial_marks", {"yes": "Tattoos", "no": "None"}),
        "time_of_day": Native(
            "user_hour_captured",
            {"daytime": "12:00-17:59", "dawn_dusk": "06:00-11:59", "night": "18:00-23:59"},
        ),
        "district": Native("location_region"),
        "country": Native("location_country"),
        "region": Native(
            "ancestry_region", {"af": "Africa", "am": "Americas", "as": "Asia", "eu": "Europe"}
        ),
    },
)  # fmt: skip
_COCO = Audits(
    ways=(
        Way("detection", "annotations/instances_val2017.json"),
        Way("keypoints", "annotations/person_keypoints_val2017.json"),
        Way("segmentation", "annotations/instances_val2017.json", pictures=True),
    ),
    names={},
    every=True,
)
_BDD = Audits(
    ways=(
        Way(
            "detection",
            options=(
                "--data-option", "info={data}/info/100k/val",
                "--data-option", "districts={data}/districts/districts.geojson",
                "--data-option", "incomes={data}/districts/income.csv",
            ),
        ),
    ),
    names={
        "weather": Native("weather"),
        "time_of_day": Native("timeofday", {"dawn_dusk": "dawn/dusk"}),
        "scene": Native("scene", {"city_street": "city street"}, exact=False),
        "occlusion": Native(
            "occluded", {"none": "false", "partial": "true", "heavy": "true"}, exact=False
        ),
    },
    also=("--by", "income", "--bins", "income=quantile:3"),
)  # fmt: skip
_DOLLARSTREET = Audits(
    ways=(Way("classification"), Way("geodiversity")),
    names={
        "income_group": Native("income_bucket", {"middle": "medium"}),
        "region": Native(
            "region", {"af": "Africa", "am": "The Americas", "as": "Asia", "eu": "Europe"}
        ),
        "country": Native("country"),
    },
)

AUDITS: Mapping[str, Audits] = {
    "facet": _FACET,
    "fhibe": _FHIBE,
    "coco": _COCO,
    "bdd100k": _BDD,
    "dollarstreet": _DOLLARSTREET,
}
"""Layout to how its worlds are audited."""
