"""How far the groups' error rates lie apart, summed up as NIST does, with the errors beside.

A summary of ratios is best where a model fails everyone alike. Of 126 published algorithms the
three that such summaries rank first have mean false non-match rates of .67, 1.00 and .86. So no
row stands here without both errors of everyone, and a policy of a summary alone is refused.

References
----------
.. [1] Grother, P. (2022). Face recognition vendor test (FRVT) part 8: Summarizing demographic
   differentials. NIST Interagency Report 8429. https://doi.org/10.6028/NIST.IR.8429.ipd
.. [2] Howard, J. J., Laird, E. J., Rubin, R. E., Sirotin, Y. B., Tipton, J. L. and Vemury, A. R.
   (2022). Evaluating proposed fairness models for face recognition algorithms. arXiv:2203.05051.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from isolux.disparity.biometrics.performance import ERRORS, RATES, is_biometric
from isolux.stats.both_error_rates import gini
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.schema import Status

_UNKNOWN = "unknown"


def differentials(run: Run) -> pl.DataFrame:
    """Sum up how far the groups' two error rates lie apart, beside the errors of everyone.

    Examples
    --------
    Rates of .01, .02 and .04: geometric mean .02, largest over it 2, largest over smallest 4.

    >>> from isolux.vocabulary.tables import (ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS,
    ...     SCORES)
    >>> fmr, fnmr = [0.02, 0.01, 0.02, 0.04], [0.3, 0.3, 0.3, 0.3]
    >>> held = GROUP_METRICS.conform(pl.DataFrame({"model": "m", "task": "face_verification",
    ...     "metric": ["false_match_rate"] * 4 + ["false_non_match_rate"] * 4, "threshold": 0.4,
    ...     "attribute": [None, "tone", "tone", "tone"] * 2, "group": ["everyone", *"abc"] * 2,
    ...     "values": [[], ["a"], ["b"], ["c"]] * 2, "n_units": 900, "n_clusters": 60,
    ...     "value": [*fmr, *fnmr], "low": 0.0, "high": 0.5, "status": "ok"}))
    >>> run = Run({"task": "face_verification"}, SCORES.empty(), ATTRIBUTES.empty(), held,
    ...           DISPARITIES.empty(), FINDINGS.empty())
    >>> row = differentials(run).row(0, named=True)
    >>> [round(row[c], 4) for c in ("max_over_geometric_mean", "max_over_min", "gini")]
    [2.0, 4.0, 0.4286]
    >>> row["everyone"], row["other_everyone"]
    (0.02, 0.3)
    """
    names = _both(run)
    cells = run.group_metrics.filter(pl.col("metric").is_in(names))
    rows = []
    for (model,), own in cells.group_by(["model"], maintain_order=True):
        whole = {r["metric"]: r for r in own.filter(pl.col("attribute").is_null()).to_dicts()}
        of_groups = own.filter(pl.col("attribute").is_not_null())
        for (attribute,), part in of_groups.group_by(["attribute"], maintain_order=True):
            for name, other in zip(names, reversed(names), strict=True):
                row = _row(part.filter(metric=name), whole.get(name, {}), whole.get(other, {}))
                rows.append({"model": model, "attribute": attribute, "rate": name,
                             "other_rate": other, **row})  # fmt: skip
    return pl.DataFrame(rows, schema=_SCHEMA) if rows else pl.DataFrame(schema=_SCHEMA)


_JUDGED = (Status.OK.value, Status.BOUNDARY.value)
"""A group of too few clusters has a value, and is compared with no other."""
_F, _S = pl.Float64(), pl.String()
_SCHEMA = {
    "model": _S, "attribute": _S, "rate": _S, "everyone": _F, "everyone_low": _F,
    "everyone_high": _F, "other_rate": _S, "other_everyone": _F, "groups": pl.Int64(),
    "lowest": _F, "lowest_group": _S, "highest": _F, "highest_group": _S, "geometric_mean": _F,
    "max_over_geometric_mean": _F, "max_over_min": _F, "gini": _F, "said": _S,
}  # fmt: skip


def _both(run: Run) -> tuple[str, str]:
    task = str(run.record.get("task"))
    names = tuple(RATES[task][short] for short in ERRORS.get(task, ()))
    there = set(run.group_metrics["metric"])
    if not is_biometric(run) or not set(names) <= there:
        raise SpecError(
            "a summary of differences between groups needs both errors at one threshold",
            expected=" and ".join(names) or "a run of " + " or ".join(RATES),
            found=", ".join(sorted(there & set(names))) or f"a run of {task} without them",
            hint="audit again with --threshold, or with the metrics of both",
        )
    return names[0], names[1]


def _row(
    groups: pl.DataFrame, everyone: dict[str, object], other: dict[str, object]
) -> dict[str, object]:
    known = groups.filter(pl.col("group") != _UNKNOWN)
    is_judged = pl.col("value").is_not_null() & pl.col("status").is_in(_JUDGED)
    judged = known.filter(is_judged)
    said = []
    left = known.filter(~is_judged)["group"].to_list()
    if left:
        said.append(f"without {', '.join(left)}, too few to judge")
    found: dict[str, object] = {
        "everyone": everyone.get("value"), "everyone_low": everyone.get("low"),
        "everyone_high": everyone.get("high"), "other_everyone": other.get("value"),
        "groups": judged.height,
    }  # fmt: skip
    if judged.height < 2:
        return {**found, "said": "; ".join(["fewer than two groups are judged", *said])}
    rates, names = judged["value"].to_numpy(), judged["group"].to_list()
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    if rates[low] == 0.0:
        said.insert(0, f"no ratio: the rate of {names[low]} is 0 in these data")
    mean = 0.0 if rates[low] == 0.0 else float(np.exp(np.log(rates).mean()))
    ratio = [float(rates[high]) / x if x > 0 else None for x in (mean, float(rates[low]))]
    coefficient = float(gini(rates))
    return found | {
        "lowest": float(rates[low]), "lowest_group": names[low], "highest": float(rates[high]),
        "highest_group": names[high], "geometric_mean": mean, "max_over_geometric_mean": ratio[0],
        "max_over_min": ratio[1], "gini": None if math.isnan(coefficient) else coefficient,
        "said": "; ".join(said) or None,
    }  # fmt: skip
