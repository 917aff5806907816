"""Every choice that moves a number, as a named field that the report echoes.

``AuditSpec`` is what ``isolux audit`` takes, as flags or as a YAML file: every flag has a field
and every field a flag (a test holds them together). ``Grouping`` and ``Bootstrap`` are its parts
in the form that the rooms ``groups`` and ``stats`` take.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from isolux.vocabulary.errors import SpecError

__all__ = [
    "UNKNOWN_VALUES",
    "Absent",
    "AuditSpec",
    "Bootstrap",
    "Grouping",
    "IntervalMethod",
    "Unknown",
    "parse_merges",
    "parse_spec",
]

Unknown = Literal["keep", "drop", "both"]
Absent = Literal["refuse", "note"]
IntervalMethod = Literal["score", "logit-t", "percentile", "bca", "wilson", "clopper-pearson"]
Correction = Literal["max-t", "holm", "bonferroni", "bh", "none"]

UNKNOWN_VALUES = (
    "",
    "unknown",
    "not sure",
    "unsure",
    "n/a",
    "na",
    "nan",
    "null",
    "prefer not to say",
)
"""Words that mean "nobody knows", compared without case; null always does."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Grouping(_Frozen):
    """How one attribute's values become groups.

    ``merge`` maps a new group to the values it unites; ``rest`` says what becomes of values that
    no merge names. ``bins`` is ``"quantile:4"`` or ``"edges:0,18,30"``. ``nested`` maps a broad
    value to its subregions: the broad value counts in each of them where no subregion is given
    beside it. ``votes`` is ``any``, ``any+unknown`` (unknown counts as a value beside others, as in
    FACET), ``majority``, ``top`` (highest; ties to the lower value), ``top-or-none`` (ties to
    none) or ``at-least:K``.
    """

    attribute: str
    votes: str = "any"
    unknown: Unknown = "keep"
    unknown_values: tuple[str, ...] = UNKNOWN_VALUES
    merge: dict[str, tuple[str, ...]] = {}
    rest: Literal["keep", "drop"] = "keep"
    absent: Absent = "refuse"
    bins: str | None = None
    nested: dict[str, tuple[str, ...]] = {}


class Bootstrap(_Frozen):
    """How clusters are resampled: the weights' law, how many replicates, which seed."""

    replicates: Annotated[int, Field(ge=100)] = 2000
    seed: int = 0
    weights: Literal["poisson", "multinomial"] = "multinomial"
    interval: IntervalMethod = "score"
    level: Annotated[float, Field(gt=0.5, lt=1.0)] = 0.95


class AuditSpec(_Frozen):
    """An audit, whole. Field names are the flags' names with ``_`` for ``-``."""

    data: str = Field(description="what to audit, as NAME:PATH (table:people.csv)")
    protocol: str | None = Field(
        None, description="a paper's settings, under those given: one of `isolux list papers`"
    )
    task: str = Field("classification", description="the task, one of `isolux list tasks`")
    target: str | None = Field(None, description="column or attribute that holds the truth")
    predictions: str | None = Field(None, description="file with the model's answers")
    format: str | None = Field(
        None, description="format of --predictions, one of `isolux list formats`; none: told"
    )
    prediction_column: str | None = Field(None, description="its column with the answer")
    score_column: str | None = Field(
        None, description="its column with the confidence (with --positive: of that class)"
    )
    score_of: Literal["answer", "positive"] | None = Field(
        None, description="whose confidence it is; none: told from the scores, or not used"
    )
    score_scale: float = Field(1.0, gt=0, description="confidences run from 0 to this number")
    id: str | None = Field(None, description="the column that identifies a row")
    prediction_id: str | None = Field(
        None, description="the column of --predictions that identifies a row; none: found"
    )
    id_from: Literal["column", "basename", "stem"] = Field(
        "column", description="join on the whole id, its last path part, or that without suffix"
    )
    model_name: str | None = Field(None, description="what to call the model")
    detected_column: str | None = Field(
        None, description="column that is 0, false or empty where no face was found"
    )
    undetected: Literal["mistake", "leave-out", "both"] = Field(
        "mistake", description="what an undetected person counts as"
    )
    label_map: tuple[str, ...] = Field(
        (), description='merge classes, of truth and answers alike: "Asian=East Asian,Asian"'
    )
    prediction_map: str | None = Field(
        None, description="file (YAML, JSON or CSV) from the model's labels to the classes"
    )
    by: tuple[str, ...] = Field((), description='attribute or intersection: race, "race*gender"')
    cluster: str | None = Field(
        None, description="what was sampled independently (subject); none: rows"
    )
    metric: tuple[str, ...] = Field((), description="metrics to measure; none: the task's own")
    positive: str | None = Field(None, description="the class that rates like TPR are about")
    person_label: str | None = Field(
        None, description="the predictions' label of people, where a detector finds more than them"
    )
    person_class: str | None = Field(
        None, description="the class of the instances that are judged; none: all of them"
    )
    matching: Literal["one-to-one", "best-overlap", "per-group"] = Field(
        "one-to-one",
        description="how detections are given to people: each to one; best-overlap as FHIBE's "
        "tool; per-group: to one group's people at a time",
    )
    score_threshold: float | None = Field(
        None, description="detections below this score do not count as found"
    )
    max_detections: int | None = Field(
        None, ge=1, description="detections counted an image, the surest first; none: all"
    )
    top_k: tuple[int, ...] = Field((), description="also: is the truth in the first K answers?")
    option: tuple[str, ...] = Field(
        (), description="a setting of the task's own, NAME=VALUE: `isolux list tasks` names them"
    )
    data_option: tuple[str, ...] = Field(
        (), description="a setting of the dataset's own, NAME=VALUE (votes=top)"
    )
    prediction_option: tuple[str, ...] = Field(
        (), description="a setting of the format's own, NAME=VALUE (kind=masks)"
    )
    only: tuple[str, ...] = Field(
        (), description='who is judged: "age>=20", "race=Black,White", "people_in_image=1"'
    )
    images: str | None = Field(
        None, description="the folder of the dataset's pictures, where they do not lie by the data"
    )
    withdrawn: str | None = Field(
        None, description="file with the ids of people who withdrew: they and their photos go"
    )
    separator: str | None = Field(None, description="parts several values in one cell")
    unknown: Unknown = Field("keep", description="what becomes of unknown values")
    unknown_values: tuple[str, ...] = Field(
        UNKNOWN_VALUES, description="words that mean unknown, compared without case"
    )
    group: tuple[str, ...] = Field(
        (), description='a named merge: "lighter=1,2,3" or "tone:lighter=1,2,3"'
    )
    group_rest: Literal["keep", "drop"] = Field(
        "keep", description="what becomes of values that no --group of their attribute names"
    )
    absent_values: Absent = Field(
        "refuse", description="what a --group or --nested does that names a value nobody has"
    )
    bins: tuple[str, ...] = Field((), description='"income=quantile:4" or "age=edges:18,30,45,70"')
    votes: str = Field(
        "any", description="any, any+unknown, majority, top, top-or-none, at-least:K"
    )
    nested: tuple[str, ...] = Field(
        (), description='a broad value counts in each part: "ancestry:Africa=Kenya,Ghana"'
    )
    min_units: int = Field(50, ge=1, description="smallest group that is judged, in units")
    min_clusters: int = Field(10, ge=1, description="smallest group that is judged, in clusters")
    interval: IntervalMethod = Field("score", description="how intervals are made")
    level: float = Field(0.95, gt=0.5, lt=1.0, description="the intervals' level")
    replicates: int = Field(2000, ge=100, description="bootstrap and null replicates")
    weights: Literal["poisson", "multinomial"] = Field(
        "multinomial", description="the bootstrap's weights"
    )
    seed: int = Field(0, ge=0, description="seed of every random number")
    correction: Correction = Field("max-t", description="how the family of tests is corrected")
    reference: tuple[str, ...] = Field(
        (), description='compare with one group only: "race=White"; none: all pairs'
    )
    derive: tuple[str, ...] = Field(
        (), description="attributes to compute beside those of --by: `isolux list attributes`"
    )
    explain: tuple[str, ...] = Field(
        (), description="analyses to run with the audit: `isolux list analyses`"
    )
    analysis_option: tuple[str, ...] = Field(
        (), description="a setting of an analysis, ANALYSIS.NAME=VALUE"
    )
    ddof: Literal[0, 1] = Field(1, description="degrees of freedom of standard deviations")
    log_base: float = Field(10.0, gt=1, description="base of log ratios")
    repair_ages: bool = Field(
        default=False, description="turn spreadsheet-damaged ages (9-Mar) back into ranges"
    )
    planted: str | None = Field(
        None, description="planted.json of a made-up world, shown beside what is found"
    )
    keep_pairs: bool = Field(
        default=True, description="write every pair of a verification; only new tests need them"
    )
    out: str | None = Field(None, description="the run directory to write")
    overwrite: bool = Field(default=False, description="replace that directory if it exists")

    @field_validator(
        "by",
        "metric",
        "top_k",
        "label_map",
        "group",
        "bins",
        "nested",
        "reference",
        "unknown_values",
        "option",
        "data_option",
        "prediction_option",
        "only",
        "derive",
        "explain",
        "analysis_option",
        mode="before",
    )
    @classmethod
    def _listed(cls, value: object) -> object:
        """Take a single item in a YAML file as a list of one."""
        return (value,) if isinstance(value, str | int) else value

    def bootstrap(self) -> Bootstrap:
        """Return the resampling part."""
        return Bootstrap(
            replicates=self.replicates,
            seed=self.seed,
            weights=self.weights,
            interval=self.interval,
            level=self.level,
        )


def parse_spec(values: dict[str, object], *, where: str | None = None) -> AuditSpec:
    """Make an AuditSpec of loose values, or say which of them is wrong.

    Raises
    ------
    SpecError
        Naming the field, what it takes and what it was given.

    Examples
    --------
    >>> parse_spec({"data": "table:people.csv", "by": "race"}).by
    ('race',)
    """
    try:
        return AuditSpec.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "spec"
        if first["type"] == "extra_forbidden":
            import difflib

            near = difflib.get_close_matches(name, AuditSpec.model_fields, n=1, cutoff=0.5)
            raise SpecError(
                f"there is no setting {name!r}",
                where=where,
                hint=f"did you mean {near[0]!r}?" if near else "see `isolux audit --help`",
            ) from error
        raise SpecError(
            f"the setting {name!r} cannot be used",
            expected=str(first["msg"]),
            found=repr(first.get("input")),
            where=where,
        ) from error


def parse_merges(texts: tuple[str, ...], setting: str) -> dict[str, tuple[str, ...]]:
    """Read ``"Asian=East Asian,Southeast Asian"``: a new name and the values that it unites.

    Examples
    --------
    >>> parse_merges(("Asian=East Asian,Asian",), "label_map")
    {'Asian': ('East Asian', 'Asian')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        parts = tuple(v.strip() for v in values.split(",") if v.strip())
        if not equals or not name.strip() or not parts:
            raise SpecError(
                f"the setting {setting!r} cannot be read",
                expected="NEW=OLD,OLD, such as Asian=East Asian,Southeast Asian",
                found=repr(text),
            )
        found[name.strip()] = parts
    return found
