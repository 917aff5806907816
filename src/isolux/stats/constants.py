"""The numbers that were tuned and move a result: what each is, and the grid or reason behind it.

What is only a matter of time, memory or rounding stands where it is used. Where no reason is given,
none is documented; the laws (``tests/laws``) hold the results that all of them give together.
"""

# How sure a cell must be

KEPT_CLUSTERS = 30
"""Clusters from which intervals of replicates keep their promise."""
KEPT_RARER = 5.0
"""People of the rarer answer from which they do."""
KEPT_EFFECTIVE = 15
"""Clusters of one size below which no method known to us keeps its promise in every world."""
NO_INTERVAL_BELOW = 10
"""Clusters below which no method's interval was honest in simulation, whatever is asked for."""
IMPOSTORS_OF_INTERVAL = 30
"""Impostor pairs above the threshold, on average, from which an interval is given."""
TIE_WINDOW = 3.0
"""Standard errors of a rank, either way, that a quantile may come from."""
MAX_SKEWNESS = 0.25
"""Skewness of a value beyond which its interval is too short on one side: that of a share of .85
of 60 people."""
TAIL_DOUBT = 0.1
"""Probability of an index that no mean can be told of from which on a value is marked."""
MIN_GROUPS_OF_SPREAD = 5
"""Of fewer groups the noise-corrected SD has no upper end to speak of: it tells nothing."""
POWER = 0.8
"""Cohen's convention, and that of most trials: one miss in five."""

# Shares

GUESSED_CORRELATION = 0.2
"""Correlation assumed when clusters are weighed to estimate it: one big cluster must not decide."""
RARE_CLUSTER_DOF = 3.0
"""Degrees of freedom that each cluster with the rarer answer is worth: as many as intervals can
have and still keep their promise in every cell of the grid (tests/laws)."""
PLAIN_CLUSTERS = 10.0
"""Clusters without an effect of weights, put beside those with the rarer answer."""
HEAVY_CLUSTERS = 3.0
"""Clusters of heavy errors, put beside those with the rarer answer."""
CLASS_RATIOS = (0.2, 5.0)
"""Between which classes may shorten or lengthen what they say apart."""
NARROWER_ERRORS = 2.0
"""Standard errors that a gap may be narrower than it is seen: 5 of 100 that are 0 are wider."""

# Differences of two groups

HALF_OWN_SQUARES = 15.0
"""Squares of a normal law at which a group's own variance counts as much as both groups'."""
HALF_OWN_ANSWERS = 40.0
"""Rarer answers from which a group speaks for its own variance, by half."""
OWN_VARIANCE_POWER = 0.6
"""Weight of the own variance's logarithm in the least that V may be."""
CAREFUL_PEOPLE = 0.45
"""People of the smaller group by whom a careful end lies farther out: the least with which a rule
passes at most 5 % at its margin in all 1,147 shapes that were counted, and fails so in all but one
(5.5). It finds 3.6 points less there on average. More exact ones find at most 1 point more of that
(skewness, lattice and n / (n - 1) apart), an exact test over all shares half of it, and that one
knows no clusters; a reach of 1.8 in place of 1.645 does not hold at all. Of a ratio r, people of
the group whose people move a - r b more: of 1,860 shapes the worst passes in 5.02, one fails in
5.5."""
WIDEST_LOG_RATIO = 14.0
"""Logarithm of the largest ratio that is looked for, about a million."""
FURTHEST = 8.0
"""Beyond 8 standard errors (p = 1e-15) it makes no difference how far."""
DEVIATE_STEP = 0.1
"""Step of the deviate, between which a gap is placed by interpolation: reaches bend little."""
MAX_SHARE_SUBTRACTED = 0.5
"""Groups that are more than this share of everyone: the others are few, and are measured."""

# Means of numbers, and roots of mean squares

HALF_LENT_SQUARES = 0.5
"""Squares of a normal law at which half of what others lend counts."""
TAIL_SHARE = 0.05
"""Of clusters: those with the largest numbers are the tail."""
LENDING_CLUSTERS = 20
"""Clusters from which on a group's tail holds one."""
PRIOR_LOGS = 5.0
"""Logarithms of a normal law's squares that are put to all."""
PRIOR_INDEX = 3.0
"""Their index beyond such a cut."""
OTHERS_LOGS = 5.0
"""Logarithms of others that count beside its own for a group that is judged by its own tail."""
FLATTER_P = 0.05
"""Probability of a tail as flat among groups of one law below which a group is judged by its own:
at a fifth, intervals of small groups with normal errors were up to 5 % wider on average."""
WHOLE_SHARE = 0.9
"""Share of everyone in an attribute's groups from which on their tails are everyone's."""
FLATTEST_INDEX = 1.15
"""The least index that is believed: a tail's mean is then 7.7 cuts, and soon beyond any number."""

# Small groups of intersections

NOISE_RIDGE = 1e-3
"""Cells of the very same people have noise of correlation 1; this much keeps it invertible."""
MAX_ATTRIBUTES_OF_ALL_SETS = 4
"""Attributes up to which all their sets have effects: 15 sets of four."""
CENTRE_VARIANCE = 2.25
"""Of everyone's log-odds around their pooled share: wide, and of little weight."""
LONGEST_STEP = 2.0
"""Of a step, in log-odds: with three people of one answer the first steps overshoot."""
TYPICAL_SHARE_SD = (0.2, 0.1, 0.1, 0.1)
"""Scale of the half-Cauchy prior of effects' standard deviations by order, log-odds: .2 is .8
against .83. Groups that do not differ are then hardly spread, and large effects hardly shrunk."""
TYPICAL_MEAN_SD = (0.2, 0.1, 0.1, 0.1)
"""The same of other means, in standard deviations of one score."""
SMALLEST_SD = 0.02
"""Lower bound of the standard deviations, in the prior's scales."""
LARGEST_SD = 40.0
"""Their upper bound."""
POINTS_OUT = 1.1
"""Points around the likeliest lie this far out, times the root of their dimensions: with them and
the middle the normal law there has its mean and covariance (Rue et al. 2009, section 6.5)."""
MAX_SURPRISE = 1.5
"""Of a point's likelihood over the normal law's, in logs: one point shall not decide alone."""
ODD_SHARE = 0.04
"""Share of cells that are unlike their kin, for the estimate: few, or every cell is left raw."""
ODD_SD = 1.5
"""Standard deviation of how unlike, in log-odds, for the estimate."""
MAYBE_ODD_SHARE = 0.65
"""The share of unlike cells for the interval. One cell of many that lies 2 below its kin is then
held in nine worlds of ten even if a handful of people are in it; at .5 with a law 2.5 wide in 88
(300 worlds of 24 and 100 of 60 cells), at .04 in a third. Intervals are a twentieth wider for it
than at .5."""
MAYBE_ODD_SD = 2.0
"""Standard deviation of how unlike, in log-odds: at 2.5 more of those with 3 to 20 people are lost,
because the wider law gives what lies 2 away less."""
ODD_SD_OF_MEANS = 0.4
"""The same in standard deviations of one score: 2.5 in log-odds of .8 are one."""
MAX_CELLS = 600
"""Time grows with the cube of the cells: 600 take about ten seconds a metric."""
MIN_CELLS = 4
"""With three cells nothing tells what attributes do from what the cells do."""

# Other estimates

MAX_GAPS_LEARNT_FROM = 300
"""Gaps from which the mixture is learned, spread evenly over all by size: more change it little."""
FINEST_LAW = 0.1
"""The narrowest law of the mixture, in the smallest standard error; 0 itself is one more."""
COPIED_ERRORS = 0.2
"""Errors of two annotators, as a share of the third's, below which they may have copied."""
MIN_ERRORS_OF_COPY = 0.05
"""Share of wrong answers of the third from which that is worth a word."""
MIN_PEOPLE_LABELLED_TWICE = 20
"""People whom two annotators have both labelled, for their agreement to be asked."""
MAX_CONDITION = 50.0
"""Condition number above which a matrix tells groups too little apart to be undone."""
MIN_STRATUM_SIZE = 10
"""People that each group needs in a stratum."""
MIN_SUBJECTS_DRAWN = 10
"""Subjects below which a drawn score says nothing."""

# Cautions

MANY_UNKNOWN = 0.2
"""The share of unknown units from which a note is a caution."""
MIN_GROUP_OF_LOSSES = 20
"""People of a group from which uneven losses are listed."""
