"""The publications behind the statistics that every audit uses."""

from __future__ import annotations

from isolux.core import citations
from isolux.core.info import Reference

_MOVER = Reference(
    "zou-donner-2008",
    "Zou, G. Y., & Donner, A. (2008). Construction of confidence limits about effect measures: a "
    "general approach. Statistics in Medicine, 27(10), 1693–1702.",
    "sections 2 and 3",
)
_MEE = Reference(
    "mee-1984",
    "Mee, R. W. (1984). Confidence bounds for the difference between two probabilities. "
    "Biometrics, 40(4), 1175–1176.",
    "variance at shares that the gap in question gives",
)
_PAULE_MANDEL = Reference(
    "paule-mandel-1982",
    "Paule, R. C., & Mandel, J. (1982). Consensus values and weighting factors. Journal of "
    "Research of the National Bureau of Standards, 87(5), 377–385.",
)
_Q_PROFILE = Reference(
    "viechtbauer-2007",
    "Viechtbauer, W. (2007). Confidence intervals for the amount of heterogeneity in "
    "meta-analysis. Statistics in Medicine, 26(1), 37–52.",
    "Q-profile",
)
_BELL_MCCAFFREY = Reference(
    "bell-mccaffrey-2002",
    "Bell, R. M., & McCaffrey, D. F. (2002). Bias reduction in standard errors for linear "
    "regression with multi-stage samples. Survey Methodology, 28(2), 169–181.",
    "CR2 and its degrees of freedom",
)
_DESIGN_EFFECT = Reference(
    "korn-graubard-1998",
    "Korn, E. L., & Graubard, B. I. (1998). Confidence intervals for proportions with small "
    "expected number of positive counts estimated from survey data. Survey Methodology, "
    "24(2), 193–201.",
    "effective size by the design effect and Student's t",
)
_BOOTSTRAP = Reference(
    "efron-tibshirani-1993",
    "Efron, B., & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall.",
)
_JOHNSON = Reference(
    "johnson-1978",
    "Johnson, N. J. (1978). Modified t tests and confidence intervals for asymmetrical "
    "populations. Journal of the American Statistical Association, 73(363), 536–544.",
    "skewness, of means of scores that are not 0 or 1",
)
_INTERVALS = {
    "bca": _BOOTSTRAP.with_location("section 14.3"),
    "percentile": _BOOTSTRAP.with_location("section 13.3"),
    "wilson": Reference(
        "wilson-1927",
        "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical "
        "inference. Journal of the American Statistical Association, 22(158), 209–212.",
    ),
    "clopper-pearson": _DESIGN_EFFECT.with_location(),
}
_CORRECTIONS = {
    "max-t": citations.WESTFALL_YOUNG.with_location("single-step max-T"),
    "holm": citations.HOLM,
    "bh": Reference(
        "benjamini-hochberg-1995",
        "Benjamini, Y., & Hochberg, Y. (1995). Controlling the false discovery rate. Journal of "
        "the Royal Statistical Society B, 57(1), 289–300.",
    ),
}


_SAMPLE = (
    Reference(
        "binder-1983",
        "Binder, D. A. (1983). On the variances of asymptotically normal estimators from complex "
        "surveys. International Statistical Review, 51(3), 279–292.",
        "linearised variance within strata",
    ),
    Reference(
        "rao-wu-1988",
        "Rao, J. N. K., & Wu, C. F. J. (1988). Resampling inference with complex survey data. "
        "Journal of the American Statistical Association, 83(401), 231–241.",
        "rescaled bootstrap",
    ),
    Reference("kish-1965", "Kish, L. (1965). Survey Sampling. Wiley.", "sections 8.2 and 11.7"),
)


def list_method_references(
    interval: str, correction: str, *, is_survey_sample: bool = False
) -> tuple[Reference, ...]:
    """List the references of one audit's statistics; a survey sample has references of its own.

    Examples
    --------
    >>> [r.key for r in list_method_references("score", "holm")][-1]
    'holm-1979'
    """
    references = [_MEE, _MOVER, _PAULE_MANDEL, _Q_PROFILE, _BELL_MCCAFFREY]
    # Clopper and Pearson's interval has this reference already, from _INTERVALS.
    references += [] if interval == "clopper-pearson" else [_DESIGN_EFFECT]
    references += [_INTERVALS[interval]] if interval in _INTERVALS else [_INTERVALS["wilson"]]
    # Only the default interval corrects means of numbers for skewness.
    references += [_JOHNSON] if interval == "score" else []
    references += [_CORRECTIONS[correction]] if correction in _CORRECTIONS else []
    references += _SAMPLE if is_survey_sample else ()
    return tuple(references)
