"""Worlds in which it is known who is served worst, and whether a first sentence keeps its promise.

Written by somebody who did not know the rule of who leads: numpy and polars alone. 3,000 to 8,000
people, two classes; a share of them are a minority (the first group of the first attribute).
Planted is one of

- small: the minority is served worse; large: a group of about 40 % is, by a few points; both: in
  one attribute or in two, and either may be the worse one;
- intersection: the minority's people in one group of the second attribute are served worse;
- cancelled: the same, and the rest of the minority so much better that as a whole it is not worse;
- none.

Each world draws what may break the sentence (``World.traps``): a tiny group that is served best
(tiny_best), one that looks worse by chance (tiny_judged), one of fewer than 50 people (too_small),
people of unknown value who are served 25 points worse (unknown), a group of another attribute to
which half of the planted one belongs (proxy), one large group that is served better than all others
(one_better), and a class that is harder, with shares that differ by group (hard_class). Words of
groups are made up, so that a sentence can be searched for them. Random numbers are drawn in the
order in which the counts on commit 760b3a57 were made: a change makes these counts void.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

ATTRIBUTES = ("origin", "hue", "band")
WORDS = {
    "origin": ("Zorvan", "Mirelt", "Quessa", "Ubarri", "Tolneth", "Yskan", "Plovdar"),
    "hue": ("Drennic", "Kaspel", "Wolmert", "Ivandra"),
    "band": ("Ferrun", "Jaggot", "Oxlim"),
}
SMALL, LARGE, REST, BEST, TINY, FEW, FOURTH = WORDS["origin"]
PLANTED = ("small", "large", "both", "intersection", "cancelled", "none")
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
UNKNOWN = "unknown"
JUDGED = 50

Generator = np.random.Generator
Labels = np.ndarray


@dataclass(frozen=True)
class Cell:
    """What is planted, among how many attributes, with a minority of which share."""

    share: float
    n_attributes: int
    injected: str
    with_intersections: bool


@dataclass
class Group:
    """People of one value or cell: how many, and how many in truth are answered rightly."""

    words: tuple[str, ...]
    n: int
    right: float


@dataclass
class Plant:
    """A group or cell of which the model is right less often, by ``gap``."""

    attribute: str
    words: tuple[str, ...]
    members: Labels
    gap: float
    people: Group = field(default_factory=lambda: Group((), 0, 1.0))

    @property
    def is_judged(self) -> bool:
        return self.people.n >= JUDGED


@dataclass
class World:
    """One draw: people, and what was planted among them, the truly worst first."""

    frame: pl.DataFrame
    by: tuple[str, ...]
    plants: list[Plant]
    traps: set[str]


def cells() -> Iterator[Cell]:
    """Yield the combinations that make sense."""
    for share, k, injected, crossed in itertools.product(SHARES, (1, 2, 3), PLANTED, (False, True)):
        is_crossed = crossed or injected in ("intersection", "cancelled")
        if (k > 1 or not is_crossed) and (injected != "cancelled" or crossed):
            yield Cell(share, k, injected, crossed)


def draw_world(seed: int, cell: Cell) -> World:
    """Draw a world; the same seed and cell give the same one."""
    place = PLANTED.index(cell.injected)
    rng = np.random.default_rng(
        [seed, int(cell.share * 1000), cell.n_attributes, place, int(cell.with_intersections)]
    )
    n, base = int(rng.integers(3000, 8001)), float(rng.uniform(0.78, 0.95))
    traps: set[str] = set()
    right = np.full(n, base)
    frame = {"origin": _draw_origin(rng, n, cell.share, traps)}
    for name in ATTRIBUTES[1 : cell.n_attributes]:
        k = int(rng.integers(2, len(WORDS[name]) + 1))
        shares = rng.dirichlet(np.full(k, 6.0))
        frame[name] = np.array(WORDS[name][:k], dtype=object)[_split(rng, n, shares)]
    _entwine(rng, frame, cell, traps)
    plants = _plant(rng, frame, right, base, cell, traps)
    for plant in plants:
        right[plant.members] -= plant.gap
    origin = frame["origin"]
    if "tiny_best" in traps:
        right[origin == BEST] += min(float(rng.uniform(0.02, 0.03)), (1 - base) * 0.8)
    if cell.injected in ("small", "none") and rng.random() < 0.25:
        traps.add("one_better")
        right[origin == REST] += min(0.03, (1 - base) * 0.6)
    right = np.clip(right, 0.02, 0.995)
    table, chance = _answer(rng, frame, right, traps)
    by = list(ATTRIBUTES[: cell.n_attributes])
    if cell.with_intersections:
        pairs = ["*".join(p) for p in itertools.combinations(by, 2)]
        by += pairs[: (1 if cell.n_attributes == 2 else 2)]
    return World(table, tuple(by), _truly(plants, table, chance), traps)


def _split(rng: Generator, n: int, shares: Sequence[float] | Labels) -> Labels:
    """Draw n labels, sizes as exact as whole people allow, in random order."""
    sizes = np.floor(np.asarray(shares) * n).astype(int)
    sizes[int(np.argmax(sizes))] += n - sizes.sum()
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rng.shuffle(labels)
    return labels


def _draw_origin(rng: Generator, n: int, share: float, traps: set[str]) -> Labels:
    """Draw the first attribute: a minority, a large group, a rest, and perhaps tiny groups."""
    extra: list[tuple[str, int]] = []
    tiny = (("tiny_best", BEST, 60, 111), ("tiny_judged", TINY, 52, 81), ("too_small", FEW, 12, 46))
    for trap, word, low, high in tiny:
        if rng.random() < 0.5:
            traps.add(trap)
            extra.append((word, int(rng.integers(low, high))))
    left = 1 - share - sum(k for _, k in extra) / n
    parts = [(SMALL, share), (LARGE, left * 0.45), (REST, left * 0.55)]
    parts += [(word, k / n) for word, k in extra]
    if rng.random() < 0.5 and left > 0.5:
        parts[2] = (REST, left * 0.35)
        parts.append((FOURTH, left * 0.2))
    words = np.array([word for word, _ in parts], dtype=object)
    return words[_split(rng, n, [size for _, size in parts])]


def _entwine(rng: Generator, frame: dict[str, Labels], cell: Cell, traps: set[str]) -> None:
    """Move half of the planted group to one group of the second attribute, in some worlds."""
    if cell.n_attributes > 1 and cell.injected in ("small", "large") and rng.random() < 0.4:
        traps.add("proxy")
        moved = frame["origin"] == (SMALL if cell.injected == "small" else LARGE)
        frame["hue"][moved & (rng.random(len(moved)) < 0.35)] = WORDS["hue"][1]


def _plant(
    rng: Generator, frame: dict[str, Labels], right: Labels, base: float, cell: Cell,
    traps: set[str],
) -> list[Plant]:  # fmt: skip
    """Draw who has no known value, then what is planted; strengths straddle what can be shown."""
    n = len(right)
    _hide(rng, frame, right, cell, traps)
    origin = frame["origin"]
    is_small, is_large = origin == SMALL, origin == LARGE

    def strength(size: int, low: float, high: float) -> float:
        error = np.sqrt(base * (1 - base) * (1 / max(size, 1) + 1 / (n / 3)))
        return float(np.clip(rng.choice([3.0, 4.5, 7.0]) * error, low, high))

    plants = []
    if cell.injected in ("small", "both"):
        gap = strength(is_small.sum(), 0.04, 0.45)
        plants.append(Plant("origin", (SMALL,), is_small, gap))
    if cell.injected in ("large", "both"):
        gap = strength(is_large.sum(), 0.03, 0.12)
        large = Plant("origin", (LARGE,), is_large, gap)
        if cell.injected == "both":
            if cell.n_attributes > 1 and rng.random() < 0.5:
                hue = frame["hue"]
                values, counts = np.unique(hue[hue != UNKNOWN].astype(str), return_counts=True)
                word = str(values[np.argmax(counts)])
                large = Plant("hue", (word,), hue == word, gap)
            if rng.random() < 0.5:  # near one another, one time in two
                near = gap * rng.choice([0.6, 0.9, 1.3, 1.8])
                plants[0].gap = float(np.clip(near, 0.03, 0.45))
        plants.append(large)
    if cell.injected in ("intersection", "cancelled"):
        hue = frame["hue"]
        word = str(rng.choice([x for x in np.unique(hue.astype(str)) if x != UNKNOWN]))
        members = is_small & (hue == word)
        gap = strength(members.sum(), 0.06, 0.5)
        if cell.injected == "cancelled":
            others = is_small & ~members
            up = min(gap * members.sum() / max(others.sum(), 1), (1 - base) * 0.9)
            gap = up * others.sum() / max(members.sum(), 1)
            right[others] += up
        plants.append(Plant("origin*hue", (SMALL, word), members, float(gap)))
    return plants


def _hide(
    rng: Generator, frame: dict[str, Labels], right: Labels, cell: Cell, traps: set[str]
) -> None:
    """Make 4 % of one attribute unknown, in some worlds, and serve them worse."""
    if rng.random() < 0.3:
        traps.add("unknown")
        name = ATTRIBUTES[int(rng.integers(cell.n_attributes))]
        hidden = rng.random(len(right)) < 0.04
        if cell.injected in ("small", "both") or name == "origin":
            hidden &= frame["origin"] != SMALL
        frame[name] = frame[name].copy()
        frame[name][hidden] = UNKNOWN
        right[hidden] -= 0.25


def _answer(
    rng: Generator, frame: dict[str, Labels], right: Labels, traps: set[str]
) -> tuple[pl.DataFrame, Labels]:
    """Draw truths and answers; return everyone's chance of a right one, too."""
    n, origin = len(right), frame["origin"]
    yes = rng.random(n) < np.where(origin == SMALL, rng.uniform(0.2, 0.8), 0.5)
    chance = right.copy()
    if rng.random() < 0.4:
        traps.add("hard_class")
        for word in np.unique(origin.astype(str)):
            of = origin == word
            least, most = right[of].min() * 0.5, (1 - right[of].max()) * 0.8
            d, share = float(min(0.06, most, least)), yes[of].mean()
            chance[of] = right[of] + np.where(yes[of], -d * (1 - share), d * share)
    is_right = rng.random(n) < chance
    truth = np.where(yes, "yes", "no")
    answer = np.where(is_right, truth, np.where(yes, "no", "yes"))
    columns = {"id": np.arange(n), "truth": truth, "answer": answer}
    table = pl.DataFrame(columns | {name: words.astype(str) for name, words in frame.items()})
    return table, chance


def _truly(plants: list[Plant], table: pl.DataFrame, chance: Labels) -> list[Plant]:
    """Give each plant its people and their true mean; leave out those without people."""
    for plant in plants:
        names = plant.attribute.split("*")
        of = np.ones(table.height, dtype=bool)
        for name, word in zip(names, plant.words, strict=True):
            of &= (table[name] == word).to_numpy()
        plant.people = Group(
            plant.words, int(of.sum()), float(chance[of].mean() if of.any() else 1)
        )
    return sorted((p for p in plants if p.people.n), key=lambda p: p.people.right)


def has_words(text: str, words: Sequence[str]) -> bool:
    """Tell whether a text names a group by all of its words."""
    return all(re.search(rf"\b{re.escape(word)}\b", text) for word in words)


def who_is_worse(first: str) -> str:
    """Cut from a first sentence the part that says who is served worse, and not the reference."""
    lead, *after = re.split(r"\bthan\b|against|compared", first)
    more = re.findall(r"; ((?:lowest|highest) for [^:]*:|perhaps as (?:badly|low): .*)", first)
    return " ".join([*([] if "better for" in lead and after else [lead]), *more])


def judge_sentences(first: str, further: str, world: World) -> bool | None:
    """Tell whether a first sentence, and what follows it, keep the promise of who leads.

    Ask only where something is established among known groups. None: of what was planted nothing
    can be judged (too few people, or nothing planted); or a group that holds the planted cell is
    named and the cell is not, which is right where the cell itself is not established.
    """
    worse = who_is_worse(first)
    others = [word for words in WORDS.values() for word in words]
    if has_words(worse, [UNKNOWN]) and not any(has_words(worse, [word]) for word in others):
        return False
    judged = [plant for plant in world.plants if plant.is_judged]
    is_cell = any("*" in plant.attribute for plant in world.plants)
    if not judged and not is_cell:
        return None
    worst, *later = judged or world.plants
    tied = [p for p in later if abs(p.people.right - worst.people.right) < 1e-9]
    if any(has_words(worse, plant.words) for plant in (worst, *tied)):
        return True
    if is_cell:
        is_holder = any(has_words(worse, [word]) for word in worst.words)
        is_named = has_words(further, worst.words) or worst.attribute not in world.by
        return is_named or None if is_holder else False
    both = len(judged) > 1 and any(has_words(worse, plant.words) for plant in judged)
    return both and all(has_words(f"{first} {further}", plant.words) for plant in judged)
