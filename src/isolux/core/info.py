"""What every plugin says of itself: reference, licence, unit, range, direction, assumptions.

A plugin is one file with an ``INFO`` from here and one function. ``isolux list``, the report's
references and the contract tests read nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from isolux.stats.statistic import Statistic

Direction = Literal["higher", "lower", "none"]
"""Which way is better. ``"none"``: neither (a selection rate should be alike, not high)."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A publication: what to cite, and where in it the method stands.

    ``key`` is short and stable (``"fairface"``); ``location`` is a section, equation or table.
    """

    key: str
    citation: str
    location: str = ""
    url: str = ""

    def with_location(self, location: str = "", *, url: str | None = None) -> Reference:
        """Cite a place in the work, or another address of it."""
        return replace(self, location=location, url=self.url if url is None else url)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """What every plugin declares.

    ``title`` is a few words, ``summary`` one sentence, ``licence`` the licence of the data or
    method (``"Apache-2.0"`` for what is our own), ``assumptions`` what must hold for the numbers
    to mean what they seem to.
    """

    title: str
    summary: str
    references: tuple[Reference, ...]
    licence: str = "Apache-2.0"
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo(PluginInfo):
    """A dataset: whether it may train a model, whether people can withdraw, who judged.

    ``training_allowed`` is None where the licence does not say; ``training_terms`` are its words,
    or those of the publication, on training. ``terms_file`` is the file of a release that holds
    them, where they are its own.
    ``label_source`` is ``"self-reported"``, ``"perceived"`` (by annotators), ``"inferred"`` (by a
    model) or ``"declared by the user"``. ``terms`` maps an attribute to the words to print for it
    (``{"gender": "perceived gender presentation"}``), ``units`` one of numbers to its unit.
    ``noun`` is what its rows are, in the plural ("photos"). ``sibling_image_globs`` are patterns of
    file names: pictures of the same release that another way of loading it names (FHIBE's aligned
    faces lie beside its photos), so that no check takes them for leftovers.
    ``task`` is the one task that judges what it holds, of a dataset that is not people and their
    pictures (pairs, counts).
    """

    licence: str = ""  # a dataset states its own: the contract refuses one that does not
    training_allowed: bool | None = None
    training_terms: str = ""
    terms_file: str = ""
    withdrawal: str = ""
    label_source: str = "declared by the user"
    terms: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, str], ...] = ()
    noun: str = "people"
    sibling_image_globs: tuple[str, ...] = ()
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedInfo(PluginInfo):
    """A family of attributes that are computed: each one's name, and from what, as a sentence."""

    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatInfo(PluginInfo):
    """A format of model output: how a file of it may be called.

    ``suffixes`` are the ends of its files' names, in lower case (``".json"``). ``folders``: it may
    be a folder or a tar archive. ``columns``: it may be a table (CSV, TSV, Parquet, JSON lines,
    Arrow) with columns of its own. What the name allows is then looked at: the plugin's
    ``mismatch`` takes a ``Seen`` and says why it is none of this format, or None.
    ``is_keyed_by_image``: its labels are about images, whoever they show.
    """

    suffixes: tuple[str, ...] = ()
    folders: bool = False
    columns: bool = False
    is_keyed_by_image: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a task measures.

    Parameters
    ----------
    name : str
        The value of the ``metric`` column.
    title, definition : str
        A few words for a heading; one sentence that defines it.
    direction : {"higher", "lower", "none"}
        Which way is better.
    low, high : float or None
        The range of a group's value; None where unbounded.
    unit : str
        ``"fraction"`` is printed as points of a hundred.
    evidence : str or None
        Name of the evidence table for metrics that are not the mean of a unit's scores.
    statistic : Statistic or None
        The function of evidence and weights; None: the weighted mean of ``scores.value``.
    threshold_phrase : str
        The words between the title and a threshold: "Recall at an overlap" *of* 0.5.
    has_overall_among_groups : bool
        Whether the value of everyone lies among the groups', as a mean's does. Where it does not
        (two groups that are off in opposite directions cancel in the mixture), groups are compared
        with one another and never with everyone.
    undefined : str
        Why a group whose people have scores may have no value.
    opposite : str
        Of two kinds of error that a threshold trades, the metric of the other kind; else empty.
    meaning : str
        What such an error is in words, after "more" or "fewer"; ``{label}`` is the row's class.
    in_people : str
        Of a share of people, what it says of them: "Of {people} the model is right for {n}";
        ``{label}`` is the class. Empty: it is no share of people.
    in_times : str
        What a higher rate means: "strangers are accepted {times} as often".
    """

    name: str
    title: str
    definition: str
    direction: Direction
    low: float | None = 0.0
    high: float | None = 1.0
    unit: str = "fraction"
    evidence: str | None = None
    statistic: Statistic | None = None
    reference: Reference | None = None
    threshold_phrase: str = "at"
    has_overall_among_groups: bool = True
    undefined: str = "the formula divides by nothing here"
    opposite: str = ""
    meaning: str = ""
    in_people: str = ""
    in_times: str = ""

    @property
    def has_noise_bias(self) -> bool:
        """Whether chance makes it larger, as of what is never below 0: most in small groups."""
        return getattr(self.statistic, "estimate_noise_bias", None) is not None

    def format_title(self, threshold: float | None) -> str:
        """Call it by its title and threshold: ``Recall at an overlap of 0.5``."""
        return (
            self.title
            if threshold is None
            else f"{self.title} {self.threshold_phrase} {threshold:g}"
        )


SERVED_WORSE = "the model works worse for {0} than for {1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo(PluginInfo):
    """A task and its metrics.

    ``defaults`` are the metrics of an audit that names none; ``predictions`` is the kind of output
    that it judges: ``"labels"`` of people, or ``"outputs"`` of any other kind (boxes, masks,
    keypoints, embeddings), which name images or units as their format does, or ``"numbers"``, one
    of each unit. ``uses_unscored_people``: people who are not judged still take part, as a
    detection may have found them. ``has_independent_scores``: a unit's score depends on its own
    prediction alone, and on no other unit's. ``has_questions``: labels may be answers to several
    questions, which a column ``question`` of the predictions tells apart. ``judges_images``:
    outputs may be pictures that the model made.
    """

    metrics: tuple[Metric, ...]
    defaults: tuple[str, ...] = ()
    predictions: Literal["labels", "outputs", "numbers"] = "labels"
    uses_unscored_people: bool = False
    has_independent_scores: bool = True
    has_questions: bool = False
    judges_images: bool = False
    worse_phrase: str = SERVED_WORSE

    def metric(self, name: str) -> Metric:
        """Return the metric of that name, or raise UnknownNameError."""
        from isolux.core.errors import UnknownNameError

        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise UnknownNameError("metric", name, [m.name for m in self.metrics])


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureInfo(PluginInfo):
    """A measure of how far groups lie apart: everything that an audit and a report say of it.

    ``title`` stands at its number, ``summary`` says the formula in words.

    Parameters
    ----------
    direction : {"higher", "lower", "none"}
        Which way groups are more alike; ``"none"``: it has a sign and is about ``parity_value``.
    parity_value : float
        Its value where all groups are alike.
    low, high : float or None
        Its range; None where unbounded.
    unit : str
        ``"metric"``: that of the metric that it is taken of; ``""``: none.
    interval : {"percentile", "largest difference", "largest log ratio"}
        The percentiles of the bootstrap's replicates, which cannot hold ``parity_value`` where the
        measure cannot pass it; or the bounds, over all pairs at once, of the largest difference
        between two groups or of their largest natural log ratio, as the plugin's ``bounds`` turns
        them.
    nonnegative : bool
        Whether it is for metrics that are never negative alone, as ratios are.
    metrics : tuple of str
        The metrics that it is for; empty: all of them.
    """

    direction: Direction = "lower"
    parity_value: float = 0.0
    low: float | None = 0.0
    high: float | None = None
    unit: Literal["metric", ""] = "metric"
    interval: Literal["percentile", "largest difference", "largest log ratio"] = "percentile"
    nonnegative: bool = False
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo(PluginInfo):
    """A family of models in ``models/``: what its models answer and what they need.

    Parameters
    ----------
    predicts : str
        A table of predictions; ``"several"``: each model says which (its ``predicts``);
        ``"distances"``: of two pictures, how unlike they are (LPIPS), which no task judges by
        itself; ``"imported"``: answers that are in a file, and no picture is looked at.
    needs : str
        What a user must have, in a few words: an extra of isolux, weights.
    packages : tuple of str
        Distributions whose version can move an answer: they are written into the record, and
        another version finds no earlier answer.
    """

    predicts: Literal[
        "labels",
        "numbers",
        "boxes",
        "masks",
        "keypoints",
        "embeddings",
        "images",
        "distances",
        "several",
        "imported",
    ]
    needs: str = ""
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisInfo(PluginInfo):
    """An analysis in ``analyses/``: from a run's tables to findings.

    ``makes_claims``: whether it makes claims that may be false by chance. Those that were not
    planned with the audit are labelled exploratory. ``supports_survey_weights``: whether it reads
    the table ``sample`` of a run whose people stand for a population; without it, such a run is
    refused.
    """

    makes_claims: bool = True
    supports_survey_weights: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInfo(PluginInfo):
    """A check in ``checks/``: from a dataset to its problems.

    ``needs`` says what it reads: ``"tables"`` alone, the ``"files"`` that images name, or what was
    seen in their ``"pixels"``.
    """

    needs: Literal["tables", "files", "pixels"] = "tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlausibilityInfo:
    """A check in ``plausibility/``: whether what an audit has read can be right.

    Parameters
    ----------
    title, summary : str
        A few words, and one sentence: what is computed.
    rule : str
        When it warns or refuses, with its thresholds.
    tasks : tuple of str
        The tasks that it is for; empty: all.
    needs_predictions : bool
        Whether it reads the predictions themselves, which scores in memory lack.
    """

    title: str
    summary: str
    rule: str
    tasks: tuple[str, ...] = ()
    needs_predictions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInfo(PluginInfo):
    """A rule of intake: which photos are refused, in words for who sent them.

    ``step`` is the part of the funnel that it belongs to, ``order`` its place there: a photo is
    counted at the first rule that refuses it. ``needs`` are the facts that it reads: a rule is
    asked where the project knows at least one of them. ``is_joint``: it judges the photos that all
    other rules let pass, beside one another.
    """

    step: Literal["specifications", "people", "consent", "series"]
    order: int
    needs: tuple[str, ...]
    is_joint: bool = False


@dataclass(frozen=True, slots=True)
class FactField:
    """A fact that no audit can know: a key of the file of facts, and what it holds.

    ``question`` is a short phrase without a verb ("who developed the model").
    """

    key: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardInfo(PluginInfo):
    """A kind of card in ``cards/``: what it follows, and what it needs besides the run.

    Parameters
    ----------
    facts : tuple of FactField
        Facts that the user may give; without one, the card names the blank.
    tasks : tuple of str
        The tasks whose runs it can be filled from; empty: any.
    statement : str
        What the card is not: read before its numbers.
    """

    facts: tuple[FactField, ...] = ()
    tasks: tuple[str, ...] = ()
    statement: str
