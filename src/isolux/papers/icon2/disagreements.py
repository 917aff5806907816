"""Where ICON²'s text, equations and tables disagree, and what is done here.

The report prints these sentences as notes. Each was checked on the printed numbers
(``tests/golden/test_icon2.py``) or by simulation (``docs/methods/confounders.md``).
"""

from __future__ import annotations

_DISPERSION = (
    "Equation 5 is the population variance (σ², divided by the number of groups); the tables "
    "print standard deviations with one degree of freedom less than groups (Table 1: car 2.38, "
    "where equation 5 gives 3.78 and its root 1.94). Here it is what is printed; "
    "confounders.dispersion and confounders.ddof give the other."
)
_REDUCTION = (
    "The text calls Δ a reduction in variance by about 50 % (car, truck) and 10 % (pedestrian). "
    "It is a difference of standard deviations, and of these 50 %, 47 % and 7 %; of variances it "
    "would be 75 %, 71 % and 14 %."
)
_ROUNDING = (
    "Four of the fifteen printed Δ are .01 off σ − μ as printed (car scene and weather, truck size "
    "and scene): they were taken before rounding. In Table 3 the traffic light's ranking is not in "
    "falling order (.060 stands above .068)."
)
_ALL = (
    "The row of all classes is not the mean of the eight printed classes but for the low-income "
    "group (36.2, 37.2 and 35.5 where 36.5, 37.3 and 35.4 printed for everyone, middle and high "
    "income); here it is that mean."
)
_FALSE_ALARMS = (
    "Normalised precision puts one N in the place of each group's count, while the false alarms of "
    "a group's own images still grow with the group: where a model serves all alike, the smaller "
    "group comes out better. In each of the five classes of which Figure 6's caption says that low "
    "and middle income have very few instances, high income has the lowest AP of Table 1. How much "
    "of that is due to this reading cannot be seen from the paper. The "
    "analysis confounders uses all false alarms and one N by default; this "
    "protocol tells it."
)
_READING = (
    "Precisions are 'interpolated and averaged across recall values', which does not say at which; "
    "the overall AP is in line with COCO's, so 101 points and ten overlaps are used here, and the "
    "area under the same curve is given with it."
)
_MINIMUM = (
    "Which counts are too low for 'reliable AP values' is not said; no minimum is known from the "
    "paper, and the audit's own holds here."
)

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "detection": (
        _DISPERSION,
        _REDUCTION,
        _ROUNDING,
        _ALL,
        _FALSE_ALARMS,
        _READING,
        _MINIMUM,
    ),
}
"""Per protocol, in the order of the paper."""
