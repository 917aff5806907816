"""Works that several analyses are of."""

from __future__ import annotations

from isolux.vocabulary import works

__all__ = ["FHIBE"]

FHIBE = works.FHIBE.at("Methods: bias discovery in narrow models")
