"""What stands between two attributes: proxies, control, and groups brought to one common mix.

Arrays in, arrays out; leading axes are replicates. ``a`` numbers the groups of a sensitive
attribute, ``e`` the values of an explanatory one.

ICON² asks how far the groups *would* lie apart if nothing but the explanatory attribute mattered
(``proxies``: each group's mix of its values, times what everyone gets at each value), and how far
they still lie apart within its values (``controlled``). Direct standardisation answers the second
question in the metric's own unit, pair by pair: ``standardised`` gives every group the same mix.

References
----------
.. [1] Sudhakar, S., Prabhu, V., Russakovsky, O., & Hoffman, J. (2023). ICON²: Reliably benchmarking
   predictive inequity in object detection by identifying and controlling for confounders
   (equations 4 to 6, algorithm 1, section 3.2.2).
.. [2] Keiding, N. & Clayton, D. (2014). Standardization and control for confounding in
   observational studies: a historical perspective. Statistical Science 29(4), 529-558.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray

Spread = Literal["standard deviation", "variance"]
"""What dispersion is: the paper prints the first with ddof 1; its equation 5 is the second, 0."""

BoolArray = npt.NDArray[np.bool_]


def spread(values: FloatArray, kind: Spread = "standard deviation", ddof: int = 1) -> FloatArray:
    """Disperse values along the last axis.

    Shapes: ``values`` [..., a]; returns [...].

    Examples
    --------
    The car class of ICON²'s Table 1, which prints 2.38, and its equation 5:

    >>> car = np.array([48.7, 49.6, 53.2])
    >>> spread(car).round(2).item(), spread(car, "variance", 0).round(2).item()
    (2.38, 3.78)
    """
    held = np.isfinite(values)
    n = held.sum(axis=-1)
    centre = mean_where(values, held)
    square = np.where(held, (values - centre[..., None]) ** 2, 0.0).sum(axis=-1)
    found: FloatArray = np.divide(
        square, n - ddof, out=np.full(np.shape(square), np.nan), where=n >= 2
    )
    return found if kind == "variance" else np.asarray(np.sqrt(found))


def mean_where(values: FloatArray, held: BoolArray) -> FloatArray:
    """Average the held values of the last axis; NaN where there are none."""
    n = held.sum(axis=-1)
    total = np.where(held, values, 0.0).sum(axis=-1)
    mean: FloatArray = np.divide(total, n, out=np.full(np.shape(total), np.nan), where=n > 0)
    return mean


def shares(counts: FloatArray) -> FloatArray:
    """Turn counts ``[..., a, e]`` into P(e | a): rows sum to 1; NaN where a group is empty."""
    total = counts.sum(axis=-1, keepdims=True)
    own: FloatArray = np.divide(
        counts, total, out=np.full(np.shape(counts), np.nan), where=total > 0
    )
    return own


def proxies(share: FloatArray, value: FloatArray) -> FloatArray:
    """Give what groups would get if nothing but the explanatory attribute mattered (equation 6).

    Shapes: ``share`` [..., a, e], ``value`` [..., e]; returns [..., a].

    Examples
    --------
    Small people are found at .4 and large ones at .8; half of one group is small, a quarter of
    the other.

    >>> proxies(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0.4, 0.8])).round(3).tolist()
    [0.6, 0.7]
    """
    own = np.where(share > 0, share * value[..., None, :], 0.0).sum(axis=-1)
    nobody = ~np.isfinite(share).all(axis=-1)
    found: FloatArray = np.where(nobody, np.nan, own)
    return found


def controlled(
    value: FloatArray, usable: BoolArray, kind: Spread = "standard deviation", ddof: int = 1
) -> FloatArray:
    """Mean over the explanatory values of the groups' dispersion within each (section 3.2.2).

    Shapes: ``value`` [..., a, e], ``usable`` [e]; returns [...].

    Examples
    --------
    >>> within = np.array([[0.4, 0.8], [0.4, 0.9]])
    >>> controlled(within, np.array([True, True]), ddof=0).round(3).item()
    0.025
    """
    found = spread(np.swapaxes(value, -1, -2), kind, ddof)
    return mean_where(found, usable & np.isfinite(found))


def standardised(value: FloatArray, counts: FloatArray, usable: BoolArray) -> FloatArray:
    """Give what each group would get with everyone's mix of the explanatory values.

    Shapes: ``value`` [..., a, e], ``counts`` [..., e], ``usable`` [..., e]; returns [..., a].

    Examples
    --------
    One group loses nothing at equal size; it only has more small people.

    >>> within = np.array([[0.4, 0.8], [0.4, 0.8]])
    >>> standardised(within, np.array([60.0, 40.0]), np.array([True, True])).round(3).tolist()
    [0.56, 0.56]
    """
    weight = np.where(usable, counts, 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    mix = np.divide(weight, total, out=np.full(np.shape(weight), np.nan), where=total > 0)
    mix = mix[..., None, :]
    found: FloatArray = np.where(mix != 0, mix * value, 0.0).sum(axis=-1)
    return found


def own_mix(value: FloatArray, counts: FloatArray, usable: BoolArray) -> FloatArray:
    """Give what each group gets with its own mix of the usable values: the gap as it stands.

    Shapes: ``value, counts`` [..., a, e], ``usable`` [..., e]; returns [..., a].

    Examples
    --------
    >>> within = np.array([[0.4, 0.8, 0.9], [0.4, 0.8, np.nan]])
    >>> people = np.array([[75.0, 25.0, 50.0], [25.0, 75.0, 0.0]])
    >>> own_mix(within, people, np.array([True, True, False])).round(3).tolist()
    [0.5, 0.7]
    """
    mix = shares(np.where(usable[..., None, :], counts, 0.0))
    found: FloatArray = np.where(mix != 0, mix * value, 0.0).sum(axis=-1)
    return found


def ranked_first(strength: FloatArray) -> FloatArray:
    """Share of replicates in which each attribute ranks first.

    Shapes: ``strength`` [r, k]; returns [k].

    Examples
    --------
    >>> ranked_first(np.array([[2.0, 1.0], [3.0, 1.0], [1.0, 1.0], [0.0, 1.0]])).tolist()
    [0.625, 0.375]
    """
    known = np.isfinite(strength).any(axis=1)
    filled = np.where(np.isfinite(strength), strength, -np.inf)[known]
    first = filled == filled.max(axis=1, initial=-np.inf, keepdims=True)
    if not len(first):
        return np.full(strength.shape[1], np.nan)
    found: FloatArray = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    return found
