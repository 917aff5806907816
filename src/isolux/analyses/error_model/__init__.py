"""Which attributes predict a model's errors: FHIBE's direct error modelling.

FHIBE predicts each image's score from its annotations with a random forest, takes the features of
highest importance by the elbow method ("top six in most experiments"), grows a decision tree on
them to see "whether higher feature values are associated with better or worse model performance",
and bootstraps 5,000 times for the standard errors of subgroup differences. Here the same, with
choices where the paper leaves them open:

- **Is there anything to explain?** A forest can overfit any scores, and its importances add up to 1
  even if no attribute matters. So first: the R² of forests on held-out people (folds split
  clusters, never rows), compared with the R² of targets in which whole clusters' scores were
  permuted. If it is not above those: "nothing to explain was found", and no tree is grown.
- **Two importances.** Impurity importance (the published one) is measured on the training data and
  favours attributes with many different values, where there are more splits to choose from (Strobl
  et al. 2007). Permutation importance out of cluster has neither fault: the contribution of an
  attribute for held-out people, around 0 where it contributes nothing. The elbow uses the latter;
  with ``importance=impurity`` the former. Attributes with the same information share importance.
- **Errors by cluster.** Ten photos of a subject are resampled together; p-values are corrected over
  every value of every attribute, not only over those that were selected by importance.
- **A tree that is evaluated on others.** It grows on one half of the clusters; its leaves' means
  are of the other half.

The paper fits scikit-learn 1.5.1 and names no settings; trees there are unpruned by default. Leaves
of √n units, which overfit single subjects less, and a third of the columns a split are ours. The
paper does not say how the elbow is found, nor whether its bootstrap resamples subjects or images:
the distance from the chord, and clusters, are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np

from isolux.analyses._features import (
    AttributeTypes,
    Features,
    build_boolean_items,
    build_model_columns,
    classify_attributes,
    drop_attributes_determining_outcome,
)
from isolux.analyses._regrouping import (
    build_minimum_check,
    check_analysis_settings,
    read_run_settings,
)
from isolux.analyses._unit_scores import (
    ModelFindings,
    ScoreSettings,
    UnitScores,
    combine_model_findings,
    compares_models_or_has_no_scores,
    load_unit_scores_by_model,
    read_run_terms,
)
from isolux.analyses.error_model import sentences as say
from isolux.analyses.error_model.forest import (
    Forest,
    PredictabilityTest,
    assign_clusters_to_folds,
    impurity_importance_by_attribute,
    permutation_r2_loss_by_attribute,
    run_predictability_permutation_test,
    select_features_above_elbow,
)
from isolux.analyses.error_model.groups import (
    ScoreScale,
    bootstrap_r2_percentile_bounds,
    compare_subgroups_with_others,
    grow_and_measure_tree,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.spec import AuditSpec
from isolux.core.tables import FINDINGS
from isolux.statements.run_terms import RunTerms
from isolux.stats.cluster_sums import IntArray

INFO = AnalysisInfo(
    title="What predicts errors",
    summary=(
        "Whether attributes predict the scores of unseen people, which ones do, and in which "
        "direction."
    ),
    references=(
        citations.FHIBE.with_location("Methods: direct error modelling"),
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
_MAX_PERMUTED = 20
_TREE_DEPTH = 3  # of the shallow tree
_BINS = 3  # quantiles in which subgroups of attributes that are numbers are compared
_MAX_FEATURES = 6
"""Most attributes that the elbow selects: the paper's "top six in most experiments"."""


def explain(
    run: Run,
    *,
    importance: Literal["permutation", "impurity"] = "permutation",
    check_trees: int = 30,
    bootstrap: int = 5000,
    seed: int | None = None,
    **scores: Unpack[ScoreSettings],
) -> AnalysisResult:
    """Say whether attributes predict scores, which do, and how subgroups differ.

    Parameters
    ----------
    run : Run
        Its ``scores``, ``attributes`` and settings are read.
    importance : {"permutation", "impurity"}
        The importance used for the elbow; ``impurity`` as published.
    check_trees : int
        Number of trees in each forest that is checked on unseen people.
    bootstrap : int
        How many replicates the bootstrap draws.
    seed : int, optional
        Default: the audit's own.
    **scores
        Which scores are used, and by which attributes: ``metric``, ``worse`` and
        ``attributes``, described in ``ScoreSettings``.

    Returns
    -------
    AnalysisResult
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
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if compares_models_or_has_no_scores(run):
        return AnalysisResult(FINDINGS.empty())
    spec, terms = read_run_settings(run, replicates=bootstrap, seed=seed), read_run_terms(run)
    scores_by_model = load_unit_scores_by_model(run, spec.task, terms, "error_model", scores)
    alpha = (1.0 - terms.level) / max(len(scores_by_model), 1)
    check_analysis_settings(
        "error_model",
        check_trees=build_minimum_check(1, check_trees),
    )
    settings = say.ErrorModelSettings(
        Forest(check_trees, seed=spec.statistics.seed),
        Forest(seed=spec.statistics.seed),
        importance,
        int(np.ceil(1 / alpha - 1e-9)) - 1,  # the fewest permutations that suffice at this level
        alpha,
    )
    findings_by_model = [
        _analyse_errors_of_model(
            run, model_scores, spec, terms, settings, scores.get("attributes", ())
        )
        for model_scores in scores_by_model
    ]
    return combine_model_findings(scores_by_model, findings_by_model)


def _analyse_errors_of_model(
    run: Run,
    scores: UnitScores,
    spec: AuditSpec,
    terms: RunTerms,
    settings: say.ErrorModelSettings,
    attributes: Sequence[str],
) -> ModelFindings:
    context = say.ErrorModelContext(scores, terms, settings)
    targets = scores.value
    if not len(targets) or targets.min() == targets.max():
        return ModelFindings(notes=(context.describe_constant(),))
    too_few = context.describe_too_few(spec.statistics)
    if too_few is not None:
        return ModelFindings(rows=[too_few])
    scale = ScoreScale.from_scores(targets)
    targets = scale.transform(targets)
    types = classify_attributes(run, spec, scores.units, attributes, analysis="error_model")
    features = drop_attributes_determining_outcome(
        build_model_columns(run, spec, scores.units, types), targets
    )
    if not features.attribute:
        return ModelFindings(notes=features.notes)
    design_matrix = features.matrix.astype(np.float64)
    fold = assign_clusters_to_folds(scores.cluster, say.N_FOLDS, spec.statistics.seed)
    predictability = run_predictability_permutation_test(
        design_matrix,
        targets,
        scores.cluster,
        fold,
        settings.check_forest,
        n_permutations=settings.n_permutations,
        alpha=settings.alpha,
    )
    r2_bounds = bootstrap_r2_percentile_bounds(
        targets,
        predictability.predicted,
        predictability.fold_means,
        scores.cluster,
        spec.statistics,
    )
    if not predictability.is_above_permuted:
        return ModelFindings(
            [context.describe_unpredictable(predictability, r2_bounds)], {}, features.notes
        )
    return _build_findings_if_predictable(
        run, context, spec, types, features, fold, predictability, r2_bounds, scale
    )


def _build_findings_if_predictable(
    run: Run,
    context: say.ErrorModelContext,
    spec: AuditSpec,
    types: AttributeTypes,
    features: Features,
    fold: IntArray,
    predictability: PredictabilityTest,
    r2_bounds: tuple[float, float],
    scale: ScoreScale,
) -> ModelFindings:
    """Build findings and tables if attributes predict: importances, subgroups and the tree."""
    scores, settings, terms = context.scores, context.settings, context.terms
    design_matrix, targets = features.matrix.astype(np.float64), scale.transform(scores.value)
    names = features.attributes
    attribute_index = np.asarray([names.index(name) for name in features.attribute])
    impurity = impurity_importance_by_attribute(
        settings.full_forest.fit(design_matrix, targets), attribute_index, len(names)
    )
    permuted_attributes = np.argsort(-impurity, kind="stable")[:_MAX_PERMUTED]
    r2_loss = np.full(len(names), np.nan)
    seed = spec.statistics.seed
    r2_loss[permuted_attributes] = permutation_r2_loss_by_attribute(
        design_matrix, targets, fold, predictability, attribute_index, permuted_attributes, seed
    )
    importance = np.nan_to_num(r2_loss) if settings.importance == "permutation" else impurity
    selected = select_features_above_elbow(importance, _MAX_FEATURES)
    items = build_boolean_items(run, spec, scores.units, types, bins=_BINS)
    differences = compare_subgroups_with_others(
        items,
        targets,
        scores.cluster,
        scores.n_clusters,
        spec.statistics,
        min_units=spec.statistics.min_units,
        min_clusters=spec.statistics.min_clusters,
        scale=scale,
    )
    columns = np.flatnonzero(np.isin(attribute_index, selected))
    tree = grow_and_measure_tree(
        features,
        columns,
        targets,
        scores.cluster,
        terms,
        spec.statistics,
        depth=_TREE_DEPTH,
        min_leaf=max(spec.statistics.min_units, len(targets) // 50),
        scale=scale,
    )
    rows = [context.describe_predictable(predictability, r2_bounds, [names[j] for j in selected])]
    rows += [
        context.describe_attribute(names[j], features, items, differences, tree) for j in selected
    ]
    tables = {
        "What predicts scores of people not seen": context.tabulate_importances(
            names, impurity, r2_loss, selected
        ),
        "Differences between subgroups of the attributes chosen": context.tabulate_differences(
            [names[j] for j in selected], items, differences
        ),
        "A shallow tree on them, read on people who did not grow it": tree.leaves,
    }
    return ModelFindings(rows, tables, features.notes)
