"""Tuned numbers that change results: what each one is, and the grid or reason behind it.

Numbers that only cost time, memory or rounding are defined where they are used. Where no reason is
given, none is documented; simulation tests (``tests/laws``) check the results of all of them.
"""

# Requirements of a reliable estimate

MIN_CLUSTERS_FOR_NOMINAL_COVERAGE = 30
"""Clusters from which replicate intervals have their nominal coverage."""
MIN_EVENTS_FOR_NOMINAL_COVERAGE = 5.0
"""Units with the rarer outcome from which replicate intervals have their nominal coverage."""
MIN_EFFECTIVE_CLUSTERS = 15
"""Effective clusters below which no known method reached nominal coverage in every simulation."""
MIN_CLUSTERS_FOR_INTERVAL = 10
"""Clusters below which no method reached nominal coverage in simulation: no interval is given."""
MIN_EXPECTED_IMPOSTORS = 30
"""Expected impostor pairs above the threshold from which an interval is given."""
TIE_WINDOW_SE = 3.0
"""Standard errors of a rank on either side within which ties make a quantile unstable."""
MAX_SKEWNESS = 0.25
"""Skewness of a value beyond which its interval is too short on one side: the skewness of a
proportion of 0.85 among 60 people."""
MAX_INFINITE_MEAN_PROBABILITY = 0.1
"""Probability of a tail index without a finite mean above which a value is flagged."""
MIN_GROUPS_FOR_DISPERSION = 5
"""With fewer groups the noise-corrected SD has no useful upper bound."""
POWER = 0.8
"""Cohen's convention, and that of most clinical trials."""

# Proportions

ASSUMED_INTRACLUSTER_CORRELATION = 0.2
"""Correlation assumed for the weights of clusters when it is estimated: large clusters must not
dominate the estimate."""
RARE_CLUSTER_DOF = 3.0
"""Degrees of freedom for each cluster with the rarer outcome: the most with which intervals keep
their nominal coverage in every cell of the simulation grid (tests/laws)."""
EXACT_END_EVENTS = 7.5
"""Events over z² (29 of a 95 % interval) from which an end of a proportion's interval is Wilson's.
Of n from 20 to 2,000 the smallest coverage is then 93.2 % at 95 %, 86.3 at 90 and 98.7 at 99; with
6 it is 92.9, with 10 it is 93.5 and intervals of 20 rows are 10 % wider than Wilson's."""
PRIOR_UNWEIGHTED_CLUSTERS = 10.0
"""Pseudo-clusters with a weighting effect of 1, added to those with the rarer outcome."""
PRIOR_HEAVY_CLUSTERS = 3.0
"""Pseudo-clusters whose errors have large weights, added to those with the rarer outcome."""
MACRO_SE_RATIO_LIMITS = (0.2, 5.0)
"""Limits of the ratio by which classes that share clusters may change the standard error of a
macro-average."""
MAX_NARROWING_SE = 2.0
"""Standard errors by which a gap may be smaller than observed: of 100 gaps of 0, 5 are observed
larger than this."""

# Differences of two groups

HALF_WEIGHT_DOF = 15.0
"""Equivalent chi-squared degrees of freedom at which a group's own variance gets half of the
weight, and the variance pooled over both groups the other half."""
HALF_WEIGHT_EVENTS = 40.0
"""Rarer outcomes at which a group's own proportion gets half of the weight in its variance."""
OWN_VARIANCE_WEIGHT = 0.6
"""Exponent of the groups' own variance in the lower bound of V (difference of proportions)."""
CONTINUITY_CORRECTION_UNITS = 0.45
"""Continuity correction of a conservative bound, in people of the smaller group: the smallest with
which a rule passes, and fails, in at most 5 % at its margin in all 1,147 configurations that were
enumerated (with 0.4 it passes in up to 5.2 %). Power is 3.5 points lower there on average. For a
ratio r, it is in people of the group that changes a - r b more: of 1,860 configurations none errs
in more than 5 %."""
MAX_LOG_RATIO = 14.0
"""Logarithm of the largest ratio that root finding considers, about a million."""
MAX_Z = 8.0
"""Largest z statistic reported: beyond 8 standard errors (p = 1e-15) more changes nothing."""
Z_STEP = 0.1
"""Grid step of z at which intervals are evaluated to invert a test; between two steps z is
interpolated linearly, as half-widths are nearly linear in z."""
MAX_SUBTRACTED_SHARE = 0.5
"""Share of all units above which the complement of a group is small, and is measured directly."""

# Means of numbers, and roots of mean squares

HALF_WEIGHT_POOLED_DOF = 0.5
"""Equivalent chi-squared degrees of freedom at which half of the slope pooled over a family
counts."""
TAIL_SHARE = 0.05
"""Fraction of the clusters, those with the largest numbers, that are the tail."""
MIN_CLUSTERS_FOR_TAIL = 20
"""Clusters from which a group's tail contains at least one of them."""
PRIOR_TAIL_LOGS = 5.0
"""Pseudo-observations (log excesses over the cut) of a normal distribution's squares, added to all
groups."""
PRIOR_TAIL_INDEX = 3.0
"""Tail index of squares of a normal distribution beyond such a cut."""
POOLED_TAIL_LOGS = 5.0
"""Log excesses of the other groups that count in a group whose tail is estimated by itself."""
HEAVIER_TAIL_P = 0.05
"""P-value of the F test of a heavier tail than the other groups' below which a group's tail is
estimated by itself: at 0.2, intervals of small groups with normal errors were up to 5 % wider on
average."""
MIN_SHARE_OF_OVERALL = 0.9
"""Share of all clusters in an attribute's groups from which their tail index is used overall."""
MIN_TAIL_INDEX = 1.15
"""Smallest tail index used: a tail's mean is then 7.7 times the cut, and grows without bound as
the index falls to 1."""

# Small groups of intersections

NOISE_RIDGE = 1e-3
"""Ridge on the diagonal: cells of the same people have noise with correlation 1, and the covariance
must be invertible."""
MAX_ATTRIBUTES_WITH_ALL_SETS = 4
"""Attributes up to which every set of them has an effect: 15 sets of four."""
INTERCEPT_VARIANCE = 2.25
"""Prior variance of the intercept, in log-odds around the pooled proportion: wide."""
MAX_STEP_LOG_ODDS = 2.0
"""Largest Newton step, in log-odds: with three people of one outcome the first steps overshoot."""
TYPICAL_PROPORTION_SD = (0.2, 0.1, 0.1, 0.1)
"""Scale of the half-Cauchy prior of effects' standard deviations by order, log-odds: 0.2 is
0.8 against 0.83. Groups without differences then get a small dispersion, and large effects are
hardly shrunk."""
TYPICAL_MEAN_SD = (0.2, 0.1, 0.1, 0.1)
"""The same of other means, in standard deviations of one score."""
MIN_EFFECT_SD = 0.02
"""Lower bound of the standard deviations, in the prior's scales."""
MAX_EFFECT_SD = 40.0
"""Their upper bound."""
DESIGN_POINT_RADIUS = 1.1
"""Radius of the design points around the mode, over the root of the dimension: with them and the
mode a normal distribution keeps its mean and covariance (Rue et al. 2009, section 6.5)."""
MAX_LOG_LIKELIHOOD_EXCESS = 1.5
"""Largest log ratio of a design point's posterior to the normal approximation: no point may
dominate the mixture."""
OUTLIER_SHARE = 0.04
"""Prior probability that a cell is an outlier, for the estimate: small, or no cell is shrunk."""
OUTLIER_SD = 1.5
"""Standard deviation of an outlier's deviation, in log-odds, for the estimate."""
INTERVAL_OUTLIER_SHARE = 0.65
"""Prior probability that a cell is an outlier, for the interval. The interval of one cell that lies
2 below the others then covers its value in nine of ten simulated data sets even with a handful of
people; at 0.5 with a standard deviation of 2.5 in 88 of 100 (300 data sets of 24 and 100 of 60
cells), at 0.04 in a third. Intervals are a twentieth wider than at 0.5."""
INTERVAL_OUTLIER_SD = 2.0
"""Standard deviation of an outlier's deviation, in log-odds, for the interval: at 2.5 coverage of
cells with 3 to 20 people is lower, as the wider prior has less density at a deviation of 2."""
OUTLIER_SD_OF_MEANS = 0.4
"""The same in standard deviations of one score: 2.5 in log-odds of .8 are one."""
MAX_CELLS = 600
"""Time grows with the cube of the cells: 600 take about ten seconds a metric."""
MIN_CELLS = 4
"""With three cells main effects and the cells' own effects cannot be distinguished."""

# Other estimates

MAX_COPIED_ERROR_RATIO = 0.2
"""Ratio of two annotators' error rates to the third's below which the two may have copied."""
MIN_COPY_ERROR_RATE = 0.05
"""Error rate of the third annotator from which possible copying is reported."""
MIN_PEOPLE_LABELLED_BY_BOTH = 20
"""People labelled by both annotators from which their agreement is tested."""
MAX_CONDITION = 50.0
"""Condition number above which a confusion matrix is not inverted."""
MIN_STRATUM_SIZE = 10
"""People that each group needs in a stratum."""
MIN_SAMPLED_SUBJECTS = 10
"""Sampled subjects below which a rarefied score is not given."""

# Cautions

HIGH_UNKNOWN_SHARE = 0.2
"""Share of unknown units from which a note becomes a caution."""
MIN_GROUP_SIZE_FOR_LOSSES = 20
"""People of a group from which uneven losses are reported."""
