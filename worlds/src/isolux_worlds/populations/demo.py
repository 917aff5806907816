"""The demonstration: two fictional occupation classifiers, judged on people who never lived.

Injected effects: both models do worse in dim light and for darker skin tones; together the two
cost *aurora* much more than their sum. *aurora* misses many carpenters who present as feminine,
*borealis* loses older people instead. The region changes nothing, for either: an honest null.
"""

from __future__ import annotations

from isolux_worlds.populations.population import Attribute, Effect, Model, Population

__all__ = ["demo_population", "demo_settings"]

_TONE, _AGE = "perceived_skin_tone", "perceived_age_group"
_GENDER, _JOB = "perceived_gender_presentation", "occupation"
_TONES = {"lighter": ("1", "2", "3"), "medium": ("4", "5", "6", "7"), "darker": ("8", "9", "10")}
_DARKER = _TONES["darker"]


def demo_population() -> Population:
    """Return the demonstration's population: 600 subjects with 1 to 10 photos each."""
    tones = (0.06, 0.10, 0.13, 0.13, 0.12, 0.11, 0.10, 0.10, 0.09, 0.06)
    tone = {str(i): share for i, share in enumerate(tones, start=1)}
    age = {"younger": 0.35, "middle": 0.45, "older": 0.20}
    light = {"bright": 0.40, "even": 0.30, "dim": 0.30}
    region = {"coast": 0.3, "hills": 0.3, "plains": 0.25, "islands": 0.15}
    job = {"carpenter": 0.22, "cook": 0.20, "gardener": 0.20, "musician": 0.18, "teacher": 0.20}
    return Population(
        subjects=600,
        photos=(1, 10),
        target=Attribute(name=_JOB, shares=job),
        attributes=(
            Attribute(name=_TONE, shares=tone, adjacent=0.25, unknown=0.03),
            Attribute(name=_AGE, shares=age, unknown=0.04),
            Attribute(name=_GENDER, shares={"feminine": 0.48, "masculine": 0.52}, unknown=0.04),
            Attribute(name="lighting", shares=light, varies="photo"),
            Attribute(name="region", shares=region),
        ),
        models=(_build_model_aurora(), _build_model_borealis()),
        icc=0.1,
        by=(_TONE, _AGE, _GENDER, "lighting", "region", f"{_TONE}*lighting"),
        merge={_TONE: _TONES},
    )


def _build_model_aurora() -> Model:
    effects = (
        Effect({"lighting": "dim"}, -0.06),
        Effect({_TONE: _DARKER}, -0.05),
        Effect({_TONE: _DARKER, "lighting": "dim"}, -0.20),
        Effect({_GENDER: "feminine", _JOB: "carpenter"}, -0.25),
    )
    confusions = {"carpenter": {"gardener": 3.0, "cook": 1.0, "musician": 1.0, "teacher": 1.0}}
    return Model(name="aurora", base_rate=0.92, effects=effects, confusions=confusions)


def _build_model_borealis() -> Model:
    tone, age = Effect({_TONE: _DARKER}, -0.03), Effect({_AGE: "older"}, -0.12)
    effects = (Effect({"lighting": "dim"}, -0.05), tone, age)
    return Model(name="borealis", base_rate=0.90, effects=effects)


def demo_settings(model: str = "aurora") -> dict[str, object]:
    """Return the audit's settings (flat names of ``AuditSpec``, ``data`` left to the caller).

    They fit the table that ``write_csv(world, path)`` writes with all models in it, and name the
    metrics whose true values are known; no effect is injected into the confidences. ``model_name``
    tells analyses which columns hold what models said, so that nothing is explained by them.

    Examples
    --------
    >>> from isolux.core.spec import parse_spec
    >>> parse_spec({"data": "table:people.csv", **demo_settings()}).people.cluster
    'subject'
    """
    population = demo_population()
    return {
        "task": "classification",
        "target": population.target.name,
        "prediction_column": f"prediction_{model}",
        "metric": ("accuracy", "recall"),
        "model_name": model,
        "id": "photo",
        "cluster": "subject",
        "by": population.by,
        "separator": population.separator,
        "group": tuple(f"{_TONE}:{name}={','.join(v)}" for name, v in _TONES.items()),
    }
