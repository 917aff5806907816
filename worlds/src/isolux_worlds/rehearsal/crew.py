"""Simulated annotators: how often each slips in which stage, and about whom they err one way."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CREW", "Annotator", "Slips"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slips:
    """How often an annotator is wrong: chances from 0 to 1."""

    count: float = 0.02
    loose: float = 0.08
    wrong_class: float = 0.03
    missed: float = 0.01
    tone: float = 0.15
    one_tone: float = 0.03
    unnoticed: float = 0.15
    false_alarm: float = 0.01
    attribute: float = 0.04
    outline: float = 0.05
    shake: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """One annotator."""

    name: str
    region: str
    slips: Slips = Slips()
    lighter: float = 0.0
    younger: float = 0.0


_CARELESS = Slips(
    count=0.4, loose=0.7, wrong_class=0.4, missed=0.1, tone=0.6, one_tone=0.4, unnoticed=0.9,
    false_alarm=0.3, attribute=0.4, outline=0.5, shake=0.1,
)  # fmt: skip

CREW: tuple[Annotator, ...] = (
    Annotator(name="ada", region="north", lighter=0.3),
    Annotator(name="ben", region="north", lighter=0.3),
    Annotator(name="cora", region="south"),
    Annotator(name="dev", region="south"),
    Annotator(name="eli", region="east", younger=0.25),
    Annotator(name="fay", region="east", younger=0.25),
    Annotator(name="gil", region="west"),
    Annotator(name="hana", region="west"),
    Annotator(name="ivo", region="west", slips=_CARELESS),
)
"""Eight who slip now and then, two of them with one bias, two with another, and one who is careless
and does not pass a training."""
