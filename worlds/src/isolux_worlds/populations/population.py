"""The specification of a population whose disparities are injected, hence known.

``Population`` says who there is (attributes with shares), how many photos of each, and how often
each model is right for whom. ``simulate`` (``populations/world.py``) draws people from it,
``injected_rates`` (``populations/injected_effects.py``) gives the true rate of every group by
enumeration.

Attributes are independent of one another, so a gap along an attribute that no effect names is
zero: an honest null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import split_intersection

__all__ = [
    "Attribute",
    "Effect",
    "Model",
    "Population",
    "check_effect_groups_exist",
    "check_number_of_cells",
    "check_settings_in_range",
    "check_shares",
    "check_values_exist",
    "matches_conditions",
    "to_range",
]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """An attribute, its values and how often each occurs.

    Parameters
    ----------
    name : str
        The column's name.
    shares : mapping of str to float
        Value to share of subjects (of photos, if it varies by photo); they sum to 1. The order
        is the order of the values.
    varies : {"subject", "photo"}
        Whether all photos of one subject share it (ancestry), or each has its own (light).
    adjacent : float, 0 to 1
        Chance that the next value is carried as well, as skin tones 3 and 4 are. The last value
        has no next.
    unknown : float, 0 to 1
        Chance that the value is not recorded. It acts all the same.
    """

    name: str
    shares: Mapping[str, float]
    varies: Literal["subject", "photo"] = "subject"
    adjacent: float = 0.0
    unknown: float = 0.0

    def __post_init__(self) -> None:
        check_shares(self.name, self.shares)
        adjacent, unknown = ((0 <= v <= 1, "0 to 1") for v in (self.adjacent, self.unknown))
        check_settings_in_range(self, self.name, adjacent=adjacent, unknown=unknown)


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of the rate at which a model is right, for some people.

    Parameters
    ----------
    where : mapping of str to str or tuple of str
        Attribute (or the target) to the value or values concerned. It holds where all of them
        hold, so two attributes make an interaction; a photo that carries several values of an
        attribute meets it if any of them does.
    size : float
        What is added to the rate, or to its logit: see ``Model.scale``.
    """

    where: Mapping[str, str | tuple[str, ...]]
    size: float

    def values(self, attribute: str) -> tuple[str, ...]:
        """Return the values of that attribute that are concerned."""
        values = self.where[attribute]
        return (values,) if isinstance(values, str) else tuple(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A fictional classifier: how often it is right, for whom, and what it says when wrong.

    Parameters
    ----------
    name : str
        Ends the names of its columns: ``prediction_NAME``, ``score_NAME``.
    base_rate : float, 0 to 1
        Share of right answers where no effect applies.
    effects : tuple of Effect
        Added up.
    scale : {"accuracy", "logit"}
        What effects are added to. On the accuracy scale a sum outside 0 to 1 is refused.
    confusions : mapping of str to mapping of str to float
        True class to weights of the wrong answers; a class not named errs uniformly.
    """

    name: str
    base_rate: float
    effects: tuple[Effect, ...] = ()
    scale: Literal["accuracy", "logit"] = "accuracy"
    confusions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_settings_in_range(self, self.name, base_rate=(0 <= self.base_rate <= 1, "0 to 1"))
        if self.scale == "logit" and self.base_rate in (0.0, 1.0):
            expected = "more than 0 and less than 1 with scale='logit'"
            problem = f"the base rate of {self.name!r} has no logit"
            raise SpecError(problem, expected=expected, found=repr(self.base_rate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Subjects, their photos and attributes, and the models that judge them.

    Parameters
    ----------
    subjects : int
        How many; they are the independent clusters.
    photos : int or (int, int)
        Photos of each subject: a number, or a range from which each subject's number is drawn
        uniformly, ends included, whatever the subject's attributes are.
    target : Attribute
        The truth to be predicted, one of at least two classes, always recorded.
    attributes : tuple of Attribute
        What people are grouped by.
    models : tuple of Model
        They judge the same photos. A subject who is hard for one is hard for all, as far as
        their effects allow: subjects' rates share one uniform number.
    icc : float, 0 to below 1
        Intra-class correlation of being right, between photos of one subject.
    by : tuple of str
        Attributes and intersections (``"tone*light"``) whose true rates are wanted. Empty: each
        attribute, and each set of them that an effect names together.
    merge : mapping of str to mapping of str to tuple of str
        Attribute to named unions of its values, as ``--group`` takes them. Values that no union
        names stay groups of their own.
    separator : str
        Parts several values in one cell.
    """

    subjects: int
    photos: int | tuple[int, int]
    target: Attribute
    attributes: tuple[Attribute, ...]
    models: tuple[Model, ...]
    icc: float = 0.0
    by: tuple[str, ...] = ()
    merge: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    separator: str = ";"

    def __post_init__(self) -> None:
        check_settings_in_range(self, icc=(0 <= self.icc < 1, "0 or more and less than 1"))
        _check_population_counts(self)
        _check_target(self)
        _check_names_are_unique(self)
        values_by_attribute = {a.name: tuple(a.shares) for a in (*self.attributes, self.target)}
        for model in self.models:
            for effect in model.effects:
                check_effect_groups_exist(effect, values_by_attribute)
            _check_confusions(self, model)
        for name, unions in self.merge.items():
            for values in unions.values():
                check_values_exist(name, values, tuple(self.attribute(name).shares))
        names = [a.name for a in self.attributes]
        for name in (n for entry in self.by for n in split_intersection(entry)):
            if name not in names:
                raise UnknownNameError("attribute", name, names)

    @property
    def classes(self) -> tuple[str, ...]:
        """The target's classes."""
        return tuple(self.target.shares)

    def attribute(self, name: str) -> Attribute:
        """Return the attribute or target of that name, or raise UnknownNameError."""
        for attribute in (*self.attributes, self.target):
            if attribute.name == name:
                return attribute
        raise UnknownNameError("attribute", name, [a.name for a in self.attributes])

    def groupings(self) -> tuple[str, ...]:
        """Return ``by``, or what it stands for when it is empty."""
        if self.by:
            return tuple("*".join(split_intersection(entry)) for entry in self.by)
        singles = [a.name for a in self.attributes]
        names = [
            "*".join(n for n in singles if n in effect.where)
            for model in self.models
            for effect in model.effects
        ]
        return tuple(dict.fromkeys([*singles, *(entry for entry in names if entry)]))


def to_range(number: int | tuple[int, int]) -> tuple[int, int]:
    """Give the fewest and the most."""
    return (number, number) if isinstance(number, int) else number


def matches_conditions(
    conditions: Mapping[str, Sequence[str]],
    values: Mapping[str, tuple[str, ...]],
    codes: Mapping[str, npt.NDArray[np.integer]],
) -> npt.NDArray[np.bool_]:
    """Tell for whom (or for which cells) a condition holds; ``codes`` are places in ``values``.

    ``codes``: int arrays that broadcast together.
    """
    is_match = np.ones((), dtype=np.bool_)
    for name, allowed_values in conditions.items():
        is_match = np.asarray(is_match & np.isin(values[name], allowed_values)[codes[name]])
    return is_match


def check_settings_in_range(
    settings: object, owner: str | None = None, **tests: tuple[bool, str]
) -> None:
    """Refuse settings that are out of range: each is in it or not, and what is expected."""
    for name, (is_in_range, expected) in tests.items():
        if not is_in_range:
            description = name if owner is None else f"{name} of {owner!r}"
            shown_value = repr(getattr(settings, name))
            raise SpecError(f"{description} is out of range", expected=expected, found=shown_value)


def check_shares(name: str, shares: Mapping[str, float]) -> None:
    """Refuse shares that are no distribution."""
    total = sum(shares.values())
    if not shares or min(shares.values()) <= 0 or abs(total - 1) > _TOLERANCE:
        problem, found = (
            f"the shares of {name!r} are not a distribution",
            f"{dict(shares)}, sum {total:.6g}",
        )
        expected = "at least one value, positive shares, a sum of 1"
        raise SpecError(problem, expected=expected, found=found)


def check_values_exist(name: str, values: Iterable[str], valid_values: Sequence[str]) -> None:
    """Refuse values that an attribute has not."""
    for value in values:
        if value not in valid_values:
            raise UnknownNameError("value", value, valid_values, where=name)


def check_number_of_cells(
    names: Sequence[str], lengths: Sequence[int], max_cells: int, hint: str
) -> None:
    """Refuse attributes with more combinations of values than can be listed."""
    n_cells = math.prod(lengths)
    if n_cells > max_cells:
        problem = "there are too many combinations of values to list"
        description = f"{n_cells:,} of {', '.join(names)}"
        raise SpecError(problem, expected=f"at most {max_cells:,}", found=description, hint=hint)


def check_effect_groups_exist(
    effect: Effect, values_by_attribute: Mapping[str, tuple[str, ...]]
) -> None:
    """Refuse an effect that names no group, or one that is not there."""
    if not effect.where:
        raise SpecError("an effect names no group", hint="change the base_rate instead")
    for name in effect.where:
        if name not in values_by_attribute:
            raise UnknownNameError("attribute", name, values_by_attribute)
        check_values_exist(name, effect.values(name), values_by_attribute[name])


def _check_population_counts(population: Population) -> None:
    low, high = to_range(population.photos)
    if population.subjects < 1 or low < 1 or high < low:
        expected = "1 subject or more, 1 photo or more, the range's lower end first"
        description = f"{population.subjects} subjects, {population.photos} photos"
        problem = "a population needs subjects, and photos of each"
        raise SpecError(problem, expected=expected, found=description)


def _check_target(population: Population) -> None:
    target = population.target
    if len(target.shares) < 2 or target.adjacent or target.unknown:
        raise SpecError(
            f"{target.name!r} cannot be a target",
            expected="two classes or more, one for each photo, all known",
            found=f"{len(target.shares)} class(es), adjacent {target.adjacent}, "
            f"unknown {target.unknown}",
        )


def _check_names_are_unique(population: Population) -> None:
    names = ["photo", "subject", population.target.name]
    names += [a.name for a in population.attributes]
    names += [f"{prefix}_{m.name}" for m in population.models for prefix in ("prediction", "score")]
    duplicates = sorted({n for n in names if names.count(n) > 1})
    if duplicates or not population.models:
        problem = "the columns of a population need unique names, and a model to judge it"
        description = (
            f"{', '.join(duplicates) or 'no name'} twice, {len(population.models)} model(s)"
        )
        raise SpecError(
            problem, expected="every name once, and one model or more", found=description
        )


def _check_confusions(population: Population, model: Model) -> None:
    for truth, weights in model.confusions.items():
        check_values_exist(population.target.name, (truth, *weights), population.classes)
        if truth in weights or min(weights.values(), default=0) < 0 or not sum(weights.values()):
            raise SpecError(
                f"the confusions of {truth!r} by {model.name!r} cannot be drawn from",
                expected="weights of other classes, none negative, one of them positive",
                found=repr(dict(weights)),
            )
