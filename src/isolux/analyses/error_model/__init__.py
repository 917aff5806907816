"""What predicts a model's errors: FHIBE's direct error modelling.

FHIBE predicts each image's score from its annotations with a random forest, takes the features of
highest importance by the elbow method ("top six in most experiments"), grows a decision tree on
them to see "whether higher feature values are associated with better or worse model performance",
and bootstraps 5,000 times for the standard errors of subgroup differences. Here the same, with what
it leaves open:

- **Is there anything to explain?** A forest can learn any scores by heart, and its importances add
  up to 1 whether or not anything matters. So first: the R² of forests on people whom they have not
  seen (folds part clusters, never rows), compared with the R² of targets in which whole clusters'
  scores were dealt to others. Not above those: "nothing to explain was found", and no tree is
  grown.
- **Two importances.** Impurity importance (the published one) is measured on the data that grew the
  trees and favours attributes with many different values, where there are more splits to choose
  from (Strobl et al. 2007). Permutation importance out of cluster has neither fault: what an
  attribute adds for people not seen, around 0 where it adds nothing. The elbow goes by the latter;
  ``importance=impurity`` by the former. Attributes that say the same share their importance.
- **Errors by cluster.** Ten photos of a subject are drawn together or not at all; p-values are
  corrected over every value of every attribute, not only over those that were chosen for mattering.
- **A tree that is read on others.** It grows on one half of the clusters; its leaves' means are of
  the other half.

The paper fits scikit-learn 1.5.1 and names no settings; trees there are unpruned by default. Leaves
of √n units, which learn less of each subject by heart, and a third of the columns a split are ours.
It neither says how the elbow is found nor over what subjects or images its bootstrap goes: the
distance from the chord, and clusters, are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np

from isolux.analyses._features import Features, Kinds, columns_of, items_of, kinds_of, without
from isolux.analyses._judged import (
    Judged,
    OneModel,
    ScoreSettings,
    judged_of,
    nothing_to_judge,
    together,
    words_for,
)
from isolux.analyses._regrouping import at_least, check_settings, settings_of
from isolux.analyses.error_model import words as say
from isolux.analyses.error_model.forest import (
    Checked,
    Forest,
    check_target,
    elbow,
    folds_of,
    impurity_importance,
    permutation_importance,
)
from isolux.analyses.error_model.groups import Scale, grow_tree, r2_interval, subgroups_of
from isolux.statements.words import Words
from isolux.stats.design import IntArray
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    title="What predicts errors",
    summary=(
        "Whether attributes predict the scores of unseen people, which ones do, and in which "
        "direction."
    ),
    references=(
        works.FHIBE.at("Methods: direct error modelling"),
        Reference(
            "breiman-2001",
            "Breiman, L. (2001). Random forests. Machine Learning 45, 5-32.",
            "section 10: permutation importance",
        ),
        Reference(
            "strobl-2007",
            "Strobl, C., Boulesteix, A.-L., Zeileis, A. & Hothorn, T. (2007). Bias in random "
            "forest variable importance measures. BMC Bioinformatics 8, 25.",
            "why impurity importance misleads",
        ),
        Reference(
            "satopaa-2011",
            "Satopää, V., Albrecht, J., Irwin, D. & Raghavan, B. (2011). Finding a kneedle in a "
            "haystack. ICDCS Workshops.",
            "the elbow as the point farthest from the chord",
        ),
    ),
    assumptions=(
        "Clusters are independent of one another and, where nothing matters, exchangeable.",
        (
            "What predicts errors need not cause them: an attribute also carries whatever is "
            "associated with it."
        ),
        "Attributes with nearly the same information share importance; either may be left out.",
    ),
)
_LARGEST = 20
_DEPTH = 3  # of the shallow tree
_BINS = 3  # quantiles in which subgroups of attributes that are numbers are compared
_MAX_FEATURES = 6
"""Attributes that the elbow chooses at the most: the paper's "top six in most experiments"."""


def explain(
    run: Run,
    *,
    importance: Literal["permutation", "impurity"] = "permutation",
    check_trees: int = 30,
    permutations: int | None = None,
    bootstrap: int = 5000,
    seed: int | None = None,
    **scores: Unpack[ScoreSettings],
) -> Explained:
    """Say whether attributes predict scores, which do, and how subgroups differ.

    Parameters
    ----------
    run : Run
        Its ``scores``, ``attributes`` and settings are read.
    importance : {"permutation", "impurity"}
        The importance used for the elbow; ``impurity`` as published.
    check_trees : int
        Number of trees in each forest that is checked on unseen people.
    permutations : int, optional
        Of the check; default: the fewest that suffice at the audit's level, 19 for one model and
        intervals of 95 %.
    bootstrap : int
        How many replicates the bootstrap draws.
    seed : int, optional
        Default: the audit's own.
    **scores
        Which scores are used, and by which attributes: ``metric``, ``worse`` and
        ``attributes``, described in ``ScoreSettings``.

    Returns
    -------
    Explained
        First whether there is anything to explain: ``effect`` is R² out of cluster (at most 1;
        0: no better than the mean), ``n`` units. Then a finding for each attribute chosen:
        ``effect``, ``low``, ``high``: the subgroup's mean score less that of others whose value
        of the attribute is known, in the metric's unit. Tables: importances,
        differences between subgroups, leaves of the tree.

    Raises
    ------
    SpecError
        Settings out of range, a metric without a direction, no attribute that differs.
    UnknownNameError
        No such metric or attribute.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, words = settings_of(run, replicates=bootstrap, seed=seed), words_for(run)
    several = judged_of(run, spec.task, words, "error_model", scores)
    alpha = (1.0 - words.level) / max(len(several), 1)
    fewest = int(np.ceil(1 / alpha - 1e-9)) - 1
    permutations = fewest if permutations is None else permutations
    check_settings(
        "error_model",
        check_trees=at_least(1, check_trees),
        permutations=at_least(fewest, permutations),
    )
    plan = say.Plan(
        Forest(check_trees, seed=spec.statistics.seed),
        Forest(seed=spec.statistics.seed),
        importance,
        permutations,
        alpha,
    )
    parts = [
        _one_model(run, one, spec, words, plan, scores.get("attributes", ())) for one in several
    ]
    return together(several, parts)


def _one_model(
    run: Run,
    judged: Judged,
    spec: AuditSpec,
    words: Words,
    plan: say.Plan,
    attributes: Sequence[str],
) -> OneModel:
    told = say.Told(judged, words, plan)
    y = judged.value
    if not len(y) or y.min() == y.max():
        return OneModel(notes=(told.constant(),))
    too_few = told.too_few(spec.statistics)
    if too_few is not None:
        return OneModel(rows=[too_few])
    scale = Scale.of(y)
    y = scale.taken(y)
    kinds = kinds_of(run, spec, judged.units, attributes, analysis="error_model")
    features = without(columns_of(run, spec, judged.units, kinds), y)
    if not features.attribute:
        return OneModel(notes=features.notes)
    x = features.matrix.astype(np.float64)
    fold = folds_of(judged.cluster, say.FOLDS, spec.statistics.seed)
    checked = check_target(
        x, y, judged.cluster, fold, plan.check, permutations=plan.permutations, alpha=plan.alpha
    )
    ends = r2_interval(y, checked.predicted, checked.plain, judged.cluster, spec.statistics)
    if not checked.above:
        return OneModel([told.nothing(checked, ends)], {}, features.notes)
    return _explained(run, told, spec, kinds, features, fold, checked, ends, scale)


def _explained(
    run: Run,
    told: say.Told,
    spec: AuditSpec,
    kinds: Kinds,
    features: Features,
    fold: IntArray,
    checked: Checked,
    ends: tuple[float, float],
    scale: Scale,
) -> OneModel:
    """Say what predicts, now that something does: importances, subgroups and the tree."""
    judged, plan, words = told.judged, told.plan, told.words
    x, y = features.matrix.astype(np.float64), scale.taken(judged.value)
    names = features.attributes
    of_column = np.asarray([names.index(name) for name in features.attribute])
    impurity = impurity_importance(plan.whole.fit(x, y), of_column, len(names))
    asked = np.argsort(-impurity, kind="stable")[:_LARGEST]
    lost = np.full(len(names), np.nan)
    seed = spec.statistics.seed
    lost[asked] = permutation_importance(x, y, fold, checked, of_column, asked, seed)
    by = np.nan_to_num(lost) if plan.importance == "permutation" else impurity
    chosen = elbow(by, _MAX_FEATURES)
    items = items_of(run, spec, judged.units, kinds, bins=_BINS)
    differences = subgroups_of(
        items,
        y,
        judged.cluster,
        judged.n_clusters,
        spec.statistics,
        min_units=spec.statistics.min_units,
        min_clusters=spec.statistics.min_clusters,
        scale=scale,
    )
    columns = np.flatnonzero(np.isin(of_column, chosen))
    tree = grow_tree(
        features,
        columns,
        y,
        judged.cluster,
        words,
        spec.statistics,
        depth=_DEPTH,
        min_leaf=max(spec.statistics.min_units, len(y) // 50),
        scale=scale,
    )
    rows = [told.found(checked, ends, [names[j] for j in chosen])]
    rows += [told.of_attribute(names[j], features, items, differences, tree) for j in chosen]
    tables = {
        "What predicts scores of people not seen": told.importances(names, impurity, lost, chosen),
        "Differences between subgroups of the attributes chosen": told.differences(
            [names[j] for j in chosen], items, differences
        ),
        "A shallow tree on them, read on people who did not grow it": tree.leaves,
    }
    return OneModel(rows, tables, features.notes)
