"""Watch a model over time: is there a gap, since when, and did it change; asked at every look.

    runs → looks (in order, alike, people once) → differences of clusters → bets → what they say

Each gap is that of one group and everybody else of its attribute, in means of clusters (a subject
of fifty photos counts as one of two does). The statements hold at every look at once, for all gaps
together: e-Bonferroni, so an alarm needs an e-value of (number of gaps) / (1 − level). How it works
and what it costs: ``docs/methods/monitoring.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.stats.sequences import Watched, watched
from isolux.verbs._in_memory import HasRun
from isolux.verbs.monitor.gaps import Gap, e_text, gaps_of, mixture, sentence
from isolux.verbs.monitor.looks import Look, Repeated, kept_by_weight, looks_of, people_once
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError

MARK = "monitor.json"
_ANY = 1.9
"""Width from which an interval of −1 to 1 says nothing."""
_TYPES: dict[str, type[pl.DataType]] = {
    "label": pl.String,
    "threshold": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
_OF_A_GAP: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(
        ("alarm_at", "since", "delay", "began_from", "began_to", "changed_at"), pl.Int64
    ),
    **dict.fromkeys(("share", "constant_low", "constant_high"), pl.Float64),
}
"""What a column of nulls alone would not tell."""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """What was seen over time.

    Parameters
    ----------
    table : polars.DataFrame
        A row a gap and look: ``metric, label, threshold, attribute, group, look`` (from 1), ``at,
        run, n_clusters, n_others, gap`` (of that look, null: a side without people), ``low, high``
        (confidence sequence of a constant gap), ``e_value, alarm`` (whether it was reached so far).
        Gaps are in the metric's unit, the group less the others.
    summary : polars.DataFrame
        A row a gap: ``e_value, p_adjusted`` (1 over the largest e-value, times the gaps; at most
        1), ``alarm_at`` (look; null: none), ``since`` (look), ``share`` of the evidence,
        ``delay`` (looks from ``since`` to the alarm); if there was no gap and then one of one size:
        ``began_from, began_to`` (looks between which it began; null: there was no such gap),
        ``low, high`` (its size since; null: not known yet); ``constant_low, constant_high`` (of a
        gap that is the same at all looks), ``changed_at`` (look from which there is none such).
    findings : list of str
        Sentences, alarms first.
    notes : tuple of str
        What cannot be told.
    record : dict
        Settings, runs and references: ``monitor.json``.
    """

    table: pl.DataFrame
    summary: pl.DataFrame
    findings: list[str]
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)

    def shown(self) -> pl.DataFrame:
        """Return the summary as it is printed: a row a gap, numbers rounded."""
        two = pl.col("low", "high", "constant_low", "constant_high").round(4)
        measure = [c for c in ("metric", "label", "threshold") if self.summary[c].n_unique() > 1]
        return self.summary.with_columns(
            two,
            pl.col("e_value").map_elements(e_text, pl.String),
            pl.col("p_adjusted").round_sig_figs(2),
        ).select(
            *measure,
            "attribute",
            "group",
            "e_value",
            pl.col("p_adjusted").alias("adjusted p"),
            pl.col("alarm_at").alias("alarm at look"),
            pl.col("since").alias("since look"),
            pl.col("delay").alias("looks until the alarm"),
            pl.col("began_from").alias("began from look"),
            pl.col("began_to").alias("to look"),
            pl.col("low").alias("from"),
            pl.col("high").alias("to"),
            pl.col("constant_low").alias("if constant, from"),
            pl.col("constant_high").alias("if constant, to"),
            pl.col("changed_at").alias("changed by look"),
        )

    def brief(self) -> pl.DataFrame:
        """Return what fits on a screen of 80 columns: the whole is on the page."""
        shown = self.shown()
        measure = shown.columns[: shown.columns.index("attribute")]
        ends = pl.format("{} to {}", "from", "to")  # null where either is
        return shown.select(
            *measure,
            "attribute",
            "group",
            "e_value",
            "adjusted p",
            pl.col("alarm at look").alias("alarm at"),
            pl.col("since look").alias("since"),
            ends.alias("gap since then"),
            pl.col("changed by look").alias("changed by"),
        )

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``monitor.parquet``, ``monitor.json`` and ``monitor.html``; return the page's path.

        Raises
        ------
        OutputError
            When the directory exists and ``overwrite`` is not set, or cannot be written.
        """
        import json

        from isolux.io.atomic import staged_directory, write_parquet, write_text
        from isolux.report.monitoring import render_monitoring

        with staged_directory(out, overwrite=overwrite, marks=(MARK,), what="monitoring") as stage:
            write_parquet(stage / "monitor.parquet", self.table)
            told = self.record | {
                "findings": self.findings,
                "notes": list(self.notes),
                "gaps": self.summary.to_dicts(),
            }
            write_text(stage / MARK, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
            page = render_monitoring(
                self.table, self.shown(), self.findings, self.notes, self.record
            )
            write_text(stage / "monitor.html", page)
        return Path(out) / "monitor.html"


def monitor(
    runs: Sequence[Run | HasRun | str | Path],
    *,
    metric: str | None = None,
    at: Sequence[str] = (),
    level: float = 0.95,
    repeated: Repeated = "refuse",
    heaviest: float | None = None,
    seed: int = 0,
) -> Monitoring:
    """Say of every group, after every run, whether its gap to the others is more than chance.

    Parameters
    ----------
    runs : sequence of Audit, Run, str or Path
        Audits of one model by one set of rules, in order of time; each adds a look.
    metric : str, optional
        A metric that is a mean of people's scores with a range; default: the first such metric of
        the first run.
    at : sequence of str
        When each run was looked at, in ISO 8601, with an offset from UTC in each or in none;
        default: when it was made.
    level : float
        1 minus the probability of any false alarm, over all gaps and all looks, however many.
    repeated : {"refuse", "first", "different"}
        How to treat people (clusters) who are in several runs.
    heaviest : float, optional
        The largest weight that the sampling design of weighted runs allows; default: the largest in
        the first run.
    seed : int
        Seed for pairing clusters within a look, and for choosing those kept by their weights.

    Returns
    -------
    Monitoring

    Raises
    ------
    SpecError, UnknownNameError
        Runs that cannot stand in one row, people in two runs, no such metric.

    Examples
    --------
    >>> import numpy as np, isolux
    >>> rng, runs = np.random.default_rng(0), []
    >>> for day in range(6):
    ...     ids = [f"{day}-{i}" for i in range(200)]
    ...     tone = np.array(["a", "b"] * 100)
    ...     right = rng.random(200) < np.where((tone == "b") & (day > 2), 0.5, 0.9)
    ...     scores = pl.DataFrame({"unit_id": ids, "value": right.astype(float)})
    ...     people = pl.DataFrame({"unit_id": ids, "tone": tone})
    ...     runs.append(isolux.audit(scores, people, by="tone", replicates=100))
    >>> seen = isolux.monitor(runs)
    >>> seen.summary.select("group", "alarm_at", "since").rows()
    [('a', 5, 4)]
    """
    if not 0.5 <= level < 1.0:
        raise SpecError(
            "the level cannot be used", expected="0.5 to below 1, as 0.95", found=str(level)
        )
    _check_heaviest(heaviest)
    looks, notes = people_once(looks_of(runs, at), repeated)
    looks, said = kept_by_weight(looks, heaviest, seed)
    gaps, more = gaps_of(looks, metric, seed)
    threshold = len(gaps) / (1.0 - level)
    rows, summaries, told = [], [], []
    for gap in gaps:
        found = watched(gap.difference, gap.look, len(looks), threshold)
        own = _rows(gap, found, looks, threshold)
        rows += own
        summaries.append(_summary(gap, found, own, threshold, len(gaps)))
        said_of_gap = sentence(gap, summaries[-1], looks, level, threshold) + mixture(gap)
        told.append((summaries[-1], said_of_gap))
    told.sort(key=lambda pair: (pair[0]["alarm_at"] is None, -pair[0]["e_value"]))
    return Monitoring(
        pl.DataFrame(rows, infer_schema_length=None).cast(dict(_TYPES.items())),
        pl.DataFrame(summaries, infer_schema_length=None).cast(dict((_TYPES | _OF_A_GAP).items())),
        [text for _, text in told],
        (*said, *notes, *more),
        _record(looks, level, threshold, repeated, seed, len(gaps)) | _sampled(looks, heaviest),
    )


def _check_heaviest(heaviest: float | None) -> None:
    if heaviest is not None and not 0.0 < heaviest < float("inf"):
        raise SpecError(
            "the weight cannot be used",
            expected="a finite number above 0",
            found=f"{heaviest:g}",
            where="--heaviest",
        )


def _sampled(looks: Sequence[Look], heaviest: float | None) -> dict[str, Any]:
    """Write down by which weights clusters were kept."""
    drawn = looks[0].run.record.get("sample") or {}
    told = {name: drawn[name] for name in ("weight", "population", "strata") if drawn.get(name)}
    return {"sample": {**told, "heaviest": heaviest}} if told else {}


def _rows(
    gap: Gap, found: Watched, looks: Sequence[Look], threshold: float
) -> list[dict[str, Any]]:
    alarmed, rows = False, []
    # Once it is known that the gap has changed, none that is always the same is left.
    changed = np.maximum.accumulate(found.change) >= threshold
    for t, look in enumerate(looks):
        alarmed = alarmed or bool(found.e_value[t] >= threshold)
        low, high = (np.nan, np.nan) if changed[t] else (found.low[t], found.high[t])
        rows.append(
            {
                **gap.named,
                "look": t + 1,
                "at": look.at,
                "run": look.name,
                "n_clusters": gap.sizes[t][0],
                "n_others": gap.sizes[t][1],
                "gap": _number(gap.of_look(t) * gap.scale),
                "low": _number(float(low) * gap.scale),
                "high": _number(float(high) * gap.scale),
                "e_value": float(found.e_value[t]),
                "alarm": alarmed,
            }
        )
    return rows


def _summary(
    gap: Gap, found: Watched, rows: Sequence[dict[str, Any]], threshold: float, family: int
) -> dict[str, Any]:
    alarm = next((row["look"] for row in rows if row["alarm"]), None)
    changed = next((t + 1 for t, e in enumerate(found.change) if e >= threshold), None)
    once = alarm is not None and found.began[0] >= 0
    known = once and found.since[1] - found.since[0] < _ANY
    low, high = (_number(x * gap.scale) if known else None for x in found.since)
    since = None if alarm is None else found.start + 1
    largest = float(found.e_value.max())
    return {
        **gap.named,
        "e_value": largest,
        "p_adjusted": min(1.0, family / largest),
        "alarm_at": alarm,
        "since": since,
        "share": None if alarm is None else round(found.share, 4),
        "delay": None if alarm is None or since is None else max(alarm - since, 0),
        "began_from": found.began[0] + 1 if once else None,
        "began_to": found.began[1] + 1 if once else None,
        "low": low,
        "high": high,
        "constant_low": rows[-1]["low"],
        "constant_high": rows[-1]["high"],
        "changed_at": changed,
    }


def _number(x: float) -> float | None:
    return None if x != x else round(x, 6)  # noqa: PLR0124 - NaN


def _record(
    looks: Sequence[Look], level: float, threshold: float, repeated: str, seed: int, n_gaps: int
) -> dict[str, Any]:
    first = looks[0].run.record
    return {
        "isolux": first.get("isolux"),
        "model": first.get("model"),
        "task": first.get("task"),
        "level": level,
        "gaps_watched": n_gaps,
        "alarm_from": round(threshold, 9),
        "repeated": repeated,
        "seed": seed,
        "runs": [{"run": look.name, "at": look.at} for look in looks],
    }
