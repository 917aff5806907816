"""The joint distribution of a world's attributes: a Bayesian network, and draws from it.

``build_attribute_network`` makes nodes of the settings: the world's attributes in their order, then
whatever else the painter draws, with its usual shares. ``draw_attribute_codes`` draws each
attribute once for all who have it (a home, a photo, a subject, a person in a photo). Given the
attributes before it, a value hangs on nothing else, so that people's rows have exactly the
network's distribution: how many photos, subjects and people there are is drawn without looking at
anyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux_worlds._random_streams import FloatArray, IntArray, build_named_rng
from isolux_worlds.photo_world.locations import PLACE_VALUES
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES, BuiltInAttribute, Level
from isolux_worlds.populations.population import matches_conditions

if TYPE_CHECKING:
    from isolux_worlds.photo_world.settings import WorldSettings

__all__ = [
    "AttributeNode",
    "CodeArray",
    "HouseholdTree",
    "build_attribute_network",
    "draw_attribute_codes",
    "find_first_matching_rules",
    "list_with_ancestors",
]

CodeArray = npt.NDArray[np.int16]
"""Places of values in an attribute's list."""

ConditionMap = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class ShareRule:
    """Shares that replace an attribute's own where its conditions hold."""

    where: ConditionMap
    shares: FloatArray


@dataclass(frozen=True, slots=True)
class AttributeNode:
    """An attribute: its level, values, shares, and the rules that replace the shares."""

    name: str
    level: Level
    values: tuple[str, ...]
    shares: FloatArray
    rules: tuple[ShareRule, ...] = ()

    @property
    def parents(self) -> tuple[str, ...]:
        """The attributes that its rules condition on."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.where))


@dataclass(frozen=True, slots=True)
class HouseholdTree:
    """Who belongs to whom, as row numbers: people, their photos and subjects, and the homes.

    ``household_of_image``, ``household_of_subject``: [images], [subjects] int; ``image_of_person``,
    ``subject_of_person``: [people] int.
    """

    households: int
    household_of_image: IntArray
    household_of_subject: IntArray
    image_of_person: IntArray
    subject_of_person: IntArray

    def count_owners(self, level: Level) -> int:
        """How many there are at a level."""
        return {
            "household": self.households,
            "image": len(self.household_of_image),
            "subject": len(self.household_of_subject),
            "person": len(self.image_of_person),
        }[level]

    def broadcast_to_level(self, codes: CodeArray, owner: Level, level: Level) -> CodeArray:
        """Repeat the values of a higher level for each member of a lower one."""
        if owner == level:
            return codes
        rows = {
            ("household", "image"): self.household_of_image,
            ("household", "subject"): self.household_of_subject,
            ("household", "person"): self.household_of_image[self.image_of_person],
            ("image", "person"): self.image_of_person,
            ("subject", "person"): self.subject_of_person,
        }
        handed_down: CodeArray = codes[rows[owner, level]]
        return handed_down


def build_attribute_network(settings: WorldSettings) -> tuple[AttributeNode, ...]:
    """List a world's attributes: its own in their order, then what else the painter draws."""
    usual = dict(BUILT_IN_ATTRIBUTES)
    for name, location_values in PLACE_VALUES.items():
        usual[name] = BuiltInAttribute("household", dict.fromkeys(location_values, 1.0))
    nodes = []
    for name, attribute in settings.attributes.items():
        shares = attribute.shares or usual[name].shares
        values = tuple(shares)
        rules = tuple(
            ShareRule(rule.where, _build_normalised_shares(values, rule.shares))
            for rule in attribute.given
        )
        level = attribute.level or usual[name].level
        nodes.append(
            AttributeNode(name, level, values, _build_normalised_shares(values, shares), rules)
        )
    for name, built_in in BUILT_IN_ATTRIBUTES.items():
        if name not in settings.attributes:
            values = tuple(built_in.shares)
            nodes.append(
                AttributeNode(
                    name, built_in.level, values, _build_normalised_shares(values, built_in.shares)
                )
            )
    return tuple(nodes)


def find_first_matching_rules(
    node: AttributeNode,
    values: Mapping[str, tuple[str, ...]],
    codes: Mapping[str, npt.NDArray[np.integer]],
    shape: tuple[int, ...],
) -> npt.NDArray[np.int64]:
    """Index of the first rule that holds for each row; -1 where none does."""
    rule_index = np.full(shape, -1, dtype=np.int64)
    for number in range(len(node.rules) - 1, -1, -1):
        is_match = np.broadcast_to(
            matches_conditions(node.rules[number].where, values, codes), shape
        )
        rule_index[is_match] = number
    return rule_index


def list_with_ancestors(
    nodes: Sequence[AttributeNode], names: Iterable[str]
) -> list[AttributeNode]:
    """List these attributes and all their ancestors, in the network's order."""
    ancestor_names = set(names)
    for node in reversed(nodes):  # what something hangs on comes before it
        if node.name in ancestor_names:
            ancestor_names |= set(node.parents)
    return [node for node in nodes if node.name in ancestor_names]


def draw_attribute_codes(
    nodes: Sequence[AttributeNode], tree: HouseholdTree, seed: int
) -> dict[str, CodeArray]:
    """Draw every attribute for all who have it; each has a random stream of its own name."""
    codes_by_name: dict[str, CodeArray] = {}
    level = {node.name: node.level for node in nodes}
    values = {node.name: node.values for node in nodes}
    for node in nodes:
        n = tree.count_owners(node.level)
        uniform = build_named_rng(seed, "attribute", node.name).random(n)
        codes = _draw_codes_by_inversion(node.shares, uniform)
        if node.rules:
            parent_codes = {
                p: tree.broadcast_to_level(codes_by_name[p], level[p], node.level)
                for p in node.parents
            }
            rule_index = find_first_matching_rules(node, values, parent_codes, (n,))
            for number, rule in enumerate(node.rules):
                concerned = rule_index == number
                codes[concerned] = _draw_codes_by_inversion(rule.shares, uniform[concerned])
        codes_by_name[node.name] = codes
    return codes_by_name


def _draw_codes_by_inversion(shares: FloatArray, uniform: FloatArray) -> CodeArray:
    """Invert the distribution function; values of share 0 are never drawn."""
    steps = np.cumsum(shares)
    last = int(np.flatnonzero(shares)[-1])
    codes = np.searchsorted(steps[:last], uniform, side="right")
    return codes.astype(np.int16)


def _build_normalised_shares(values: tuple[str, ...], shares: Mapping[str, float]) -> FloatArray:
    """Shares in the order of the values, of sum 1 exactly but for rounding."""
    row = np.array([shares.get(word, 0.0) for word in values], dtype=np.float64)
    return np.asarray(row / row.sum())
