"""Whether scores tell one person's pairs from two people's, beyond chance and the right way."""

from __future__ import annotations

import numpy as np

from isolux.stats.roc import auc
from isolux.tasks.face_verification.table import PairList
from isolux.vocabulary.notes import Caution

__all__ = ["agreement_of_pairs"]

_LEAST = 30  # pairs of either kind below which chance may explain anything
_MOST = 200_000  # impostor pairs looked at
_CHANCE = 3.0


def agreement_of_pairs(pairs: PairList, *, turned: bool) -> list[Caution]:
    """Caution where genuine pairs are no more alike than impostor pairs.

    Under chance the area under the curve has mean 1/2 and variance (g + i + 1) / (12 g i) for g
    genuine and i impostor pairs that are independent (Mann and Whitney 1947, "On a test of whether
    one of two random variables is stochastically larger than the other", Annals of Mathematical
    Statistics 18, section 3).
    """
    known = (pairs.genuine >= 0) & ~np.isnan(pairs.similarity)
    similarity, genuine = pairs.similarity[known], pairs.genuine[known] == 1
    impostors = np.flatnonzero(~genuine)
    step = -(-len(impostors) // _MOST) or 1
    kept = np.concatenate([np.flatnonzero(genuine), impostors[::step]])
    similarity, genuine = similarity[kept], genuine[kept]
    g, i = int(genuine.sum()), int((~genuine).sum())
    if min(g, i) < _LEAST:
        return []
    area = float(auc(similarity, genuine, np.ones(len(genuine))))
    z = (area - 0.5) / np.sqrt((g + i + 1) / (12.0 * g * i))
    if z < -_CHANCE:
        ask = (
            "Is larger more alike? Leave --smaller alike out, or is the truth turned round?"
            if turned
            else "Is smaller more alike? --smaller alike (smaller='alike')."
        )
        return [
            Caution(
                f"Two people's pairs are more alike than one person's by the scores of"
                f" {pairs.model!r} (area under the curve {area:.2f}). {ask}"
            )
        ]
    if z < _CHANCE:
        return [
            Caution(
                f"The scores of {pairs.model!r} tell one person's pairs from two people's no better"
                f" than chance (area under the curve {area:.2f}). Are they of these pairs?"
            )
        ]
    return []
