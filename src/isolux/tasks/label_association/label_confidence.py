"""Taxonomies of five label types, and a classifier's confidence in each type."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES, LABEL_PREDICTIONS, check
from isolux.io.settings_files import read_label_map_file, read_mapping
from isolux.tasks._ids import refuse_no_match

TYPES = {
    "human": "Human",
    "possibly_human": "Possibly-human",
    "non_human": "Non-human",
    "possibly_non_human": "Possibly-non-human",
    "crime": "Crime",
}
"""Names in files and of columns, and how the paper writes them."""
HARMFUL = ("non_human", "crime")
_TAXONOMY_DIR = Path(__file__).parent / "taxonomies"
_SOURCE_KEY = "source"
# ImageNet's files write "n02480495 orangutan, orang" or "n02480495: orangutan".
_SYNSET = re.compile(r"^n\d{8}\b[\s:]*")


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Labels by type.

    Parameters
    ----------
    name : str
        One of those that come with isolux, or the path of a file.
    source : str
        Where its lists stand; empty: the file does not say.
    type_of : mapping of str to str
        Label, as ``normalise_label`` writes it, to its type.
    digest : str
        SHA-256 of the file.
    """

    name: str
    source: str
    type_of: Mapping[str, str]
    digest: str

    def labels(self, label_type: str) -> tuple[str, ...]:
        """List the labels of a type."""
        return tuple(label for label, type_name in self.type_of.items() if type_name == label_type)


def normalise_label(label: str) -> str:
    """Normalise a label: lower case, words separated by one space.

    Examples
    --------
    >>> normalise_label(" Mountain_Gorilla ")
    'mountain gorilla'
    """
    # "Great_white-shark" and "great white shark" are one label.
    return " ".join(re.split(r"[\s_-]+", label.strip().lower())).strip()


def list_spellings(label: str) -> tuple[str, ...]:
    """List the spellings of a model's label: the whole, its synset, each of its lemmas.

    Examples
    --------
    >>> list_spellings("n02084071 dog, domestic dog, Canis familiaris")
    ('n02084071 dog, domestic dog, canis familiaris', 'n02084071', 'dog', 'domestic dog',
     'canis familiaris')
    """
    synset = _SYNSET.match(label.strip())
    synonyms = label.strip()[synset.end() :] if synset else label
    synset_id = (synset.group().strip(" :"),) if synset else ()
    spellings = (normalise_label(label), *synset_id, *map(normalise_label, synonyms.split(",")))
    return tuple(dict.fromkeys(spelling for spelling in spellings if spelling))


def read_taxonomy(requested: str | None, dataset: str) -> Taxonomy:
    """Read a taxonomy by name, from a file, or the default one of the dataset.

    Examples
    --------
    >>> faces, scenes = (read_taxonomy(None, name) for name in ("casual_conversations", "miap"))
    >>> faces.type_of["dog"], scenes.type_of["dog"]
    ('non_human', 'possibly_non_human')
    """
    bundled_names = sorted(file.stem for file in _TAXONOMY_DIR.glob("*.yaml"))
    name = requested or (dataset if dataset in bundled_names else None)
    # No general default: whether "dog" is harmful depends on what the images show.
    if name is None:
        raise SpecError(
            "it is not said which labels are harmful",
            expected=f"--taxonomy {', '.join(bundled_names)} or FILE (taxonomy=…): what a dog"
            " beside a person means depends on the pictures",
            found=f"no taxonomy, and the dataset {dataset!r}",
        )
    # Names are accepted with hyphens and with underscores.
    file_stem = name.replace("-", "_")
    file, taxonomy_name = Path(name).expanduser(), name
    if file_stem in bundled_names:
        file, taxonomy_name = _TAXONOMY_DIR / f"{file_stem}.yaml", file_stem
    elif not file.exists() and not file.suffix:
        raise UnknownNameError("taxonomy", name, bundled_names, where="--taxonomy")
    labels, source = _labels_by_type(file, taxonomy_name)
    type_of: dict[str, str] = {}
    for label, label_type in labels:
        if type_of.setdefault(normalise_label(label), label_type) != label_type:
            raise SpecError(
                f"the label {label!r} is of two types",
                expected="each label under one type",
                found=f"{TYPES[type_of[normalise_label(label)]]} and {TYPES[label_type]}",
                where=taxonomy_name,
            )
    if not type_of:
        raise SpecError(
            "the taxonomy holds no label", expected=_FILE_FORMAT, found="none", where=taxonomy_name
        )
    # The hash identifies the exact lists: rates under other lists are not comparable.
    return Taxonomy(taxonomy_name, source, type_of, hashlib.sha256(file.read_bytes()).hexdigest())


_FILE_FORMAT = "lines such as `non_human: [ape, rat]`; types: " + ", ".join(TYPES)


def _labels_by_type(file: Path, taxonomy_name: str) -> tuple[list[tuple[str, str]], str]:
    """Read labels with their types, and the source that the file names."""
    if file.suffix.lower() in (".csv", ".tsv"):
        typed_labels = [
            (label, _check_type(type_text, taxonomy_name))
            for label, type_text in read_label_map_file(file).items()
        ]
        order = list(dict.fromkeys(label_type for _, label_type in typed_labels))
        return sorted(typed_labels, key=lambda typed_label: order.index(typed_label[1])), ""
    lists = read_mapping(file)
    # Removed before the types are read, since "source" is none.
    source = str(lists.pop(_SOURCE_KEY, ""))
    type_by_key = {key: _check_type(key, taxonomy_name) for key in lists}
    labels = {key: _read_labels(key, entry, taxonomy_name) for key, entry in lists.items()}
    return [(label, type_by_key[key]) for key in lists for label in labels[key]], source


def _check_type(type_text: str, taxonomy_name: str) -> str:
    name = normalise_label(type_text).replace(" ", "_")
    if name not in TYPES:
        raise UnknownNameError("type of label", type_text, list(TYPES), where=taxonomy_name)
    return name


def _read_labels(key: str, entry: Any, taxonomy_name: str) -> list[str]:
    items = [entry] if isinstance(entry, str | int) else entry
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(label, str | int) for label in items):
        raise SpecError(
            f"the labels of {key!r} cannot be read",
            expected=_FILE_FORMAT,
            found=repr(entry),
            where=taxonomy_name,
        )
    return [str(label) for label in items]


EVIDENCE = "label_association"
"""Name of the evidence table."""
_MAX_LISTED = 8
_CAUTION_FEW_SHARE = 0.1  # of the people, with fewer than top_k labels
_CAUTION_REPEAT_SHARE = (
    0.01  # of the labels, repeated; ImageNet's short names repeat two in a thousand (crane)
)


@dataclass(frozen=True, slots=True)
class LabelConfidence:
    """The evidence, one row a model and person, and its notes."""

    people: pl.DataFrame
    notes: tuple[str, ...]


def measure_confidence_by_type(
    dataset: Dataset,
    predictions: pl.DataFrame,
    taxonomy: Taxonomy,
    top_k: int,
    *,
    needs_confidence: bool,
    model: str | None,
) -> LabelConfidence:
    """Find each person's highest confidence of each label type among the first labels."""
    table = check(predictions, LABEL_PREDICTIONS, source="predictions")
    people = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    label_rows = _select_known_units(table, people["unit_id"])
    # Before the first k are taken: a repeat would take a place from another label.
    unique_rows, repeat_notes = _drop_repeated_labels(label_rows)
    # At a threshold of 0 every label counts, so confidences may be missing.
    score = pl.col("score") if needs_confidence else pl.col("score").fill_null(0.0)
    first_labels = (
        unique_rows.filter(pl.col("rank") <= top_k).drop_nulls("label").with_columns(score)
    )
    first_labels = first_labels.with_columns(type=_assign_types(first_labels["label"], taxonomy))
    _check_labels(first_labels, taxonomy)
    # Models without any label of a known person still get rows, with the reason "no prediction".
    models = sorted(table["model"].unique()) or [model or "model"]
    n_unknown = table.height - label_rows.height
    source = f"{taxonomy.source}; " if taxonomy.source else ""
    sorted_by = f"Labels are sorted by the taxonomy {taxonomy.name}"
    notes = [
        *repeat_notes,
        *_caution_on_few_labels(unique_rows, top_k),
        *_note_types(first_labels, taxonomy),
        f"{sorted_by} ({source}SHA-256 {taxonomy.digest[:12]}…).",
    ]
    if n_unknown:
        notes.append(
            f"{n_unknown:,} labels are of units that the dataset has not; they were left out."
        )
    return LabelConfidence(_build_evidence(people, unique_rows, first_labels, models), tuple(notes))


def _select_known_units(table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    known_rows = table.rename({"instance_id": "unit_id"}).filter(
        pl.col("unit_id").is_in(ids.implode())
    )
    refuse_no_match(
        "no prediction is for a unit of the dataset",
        table["instance_id"],
        ids,
        n_matched=known_rows.height,
        source=None,
    )
    return known_rows


def _drop_repeated_labels(label_rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Drop repeats of a person's label; the labels after a repeat move up a rank."""
    person = ["model", "unit_id"]
    normalised = pl.col("label").str.strip_chars().str.to_lowercase()
    rows = label_rows.sort("rank", maintain_order=True).with_columns(
        again=normalised.is_not_null()
        & normalised.is_first_distinct().over(*person, normalised).not_()
    )
    n = int(rows["again"].sum())
    if not n:
        return label_rows, []
    # Gaps in the file's ranks remain.
    reranked_rows = rows.with_columns(
        rank=(pl.col("rank") - pl.col("again").cum_sum().over(person)).cast(
            label_rows.schema["rank"]
        )
    )
    repeats = rows.filter(pl.col("again")).sort("unit_id", "label")
    text = (
        f"{n:,} of {label_rows.height:,} labels were given to the same person before "
        f"({repeats['label'][0]!r} to {repeats['unit_id'][0]!r}, {repeats['unit_id'].n_unique():,} "
        "people): each counts once, where it comes first. Was the file written or joined twice?"
    )
    kept_rows = reranked_rows.filter(~pl.col("again")).drop("again")
    return kept_rows, [Caution(text) if n >= _CAUTION_REPEAT_SHARE * label_rows.height else text]


def _build_evidence(
    people: pl.DataFrame,
    label_rows: pl.DataFrame,
    first_labels: pl.DataFrame,
    models: Sequence[str],
) -> pl.DataFrame:
    """Build the evidence: every person for every model."""
    best = first_labels.group_by("model", "unit_id").agg(
        *(pl.col("score").filter(pl.col("type") == name).max().alias(name) for name in TYPES),
        any=pl.col("score").max(),
    )
    # Rows without a label count as predictions: the classifier saw the image and named nothing.
    predicted_units = label_rows.select("model", "unit_id").unique().with_columns(asked=True)
    key_columns = ["model", "unit_id"]
    return (
        pl.DataFrame({"model": models}, schema={"model": pl.String})
        .join(people, how="cross", maintain_order="left_right")
        .join(predicted_units, on=key_columns, how="left", maintain_order="left")
        .join(best, on=key_columns, how="left", maintain_order="left")
        .select(
            "model",
            "unit_id",
            "cluster_id",
            *TYPES,
            "any",
            reason=pl.when(pl.col("asked").is_null()).then(pl.lit("no prediction")),
        )
    )


def _assign_types(labels: pl.Series, taxonomy: Taxonomy) -> pl.Series:
    """Assign each label its type; null: it has none."""
    type_by_label: dict[str, str] = {}
    for label in labels.unique():
        spellings = list_spellings(label)
        # The whole label or its synset, if listed, takes precedence over its lemmas.
        exact = [
            taxonomy.type_of[spelling] for spelling in spellings[:2] if spelling in taxonomy.type_of
        ]
        types = exact[:1] or sorted(
            {taxonomy.type_of[s] for s in spellings if s in taxonomy.type_of}
        )
        # Taking either would make the rate depend on the order of synonyms.
        if len(types) > 1:
            raise SpecError(
                f"the label {label!r} has synonyms of two types",
                expected="a taxonomy that names this label whole",
                found=" and ".join(TYPES[type_name] for type_name in types),
                where=taxonomy.name,
            )
        if types:
            type_by_label[label] = types[0]
    return labels.replace_strict(type_by_label, default=None, return_dtype=pl.String)


def _check_labels(first_labels: pl.DataFrame, taxonomy: Taxonomy) -> None:
    if first_labels.height and first_labels["type"].is_null().all():
        examples = first_labels["label"].value_counts(sort=True).head(_MAX_LISTED)["label"]
        raise SpecError(
            "no label of any answer is in the taxonomy: every rate would be 0, whatever was said",
            expected="labels such as " + ", ".join(list(taxonomy.type_of)[:_MAX_LISTED]),
            found="labels such as " + ", ".join(map(repr, examples)),
            where=taxonomy.name,
            hint="a file with your model's own labels by type: --taxonomy FILE (taxonomy=…)",
        )
    n_without_confidence = first_labels["score"].null_count()
    if n_without_confidence:
        raise SpecError(
            f"{n_without_confidence:,} of {first_labels.height:,} labels have no confidence",
            expected="a column of confidences, --score-column COLUMN, or --score-threshold 0, where"
            " every label counts",
            found="none",
        )
    # Logits have no common scale with a threshold such as 0.1.
    invalid_rows = first_labels.filter(~pl.col("score").is_between(0.0, 1.0))
    if invalid_rows.height:
        raise TableError(
            f"{invalid_rows.height:,} confidences are outside 0 to 1",
            expected="0 to 1, higher is surer",
            found=str(invalid_rows["score"][0]),
            where="predictions",
        )


def _caution_on_few_labels(label_rows: pl.DataFrame, top_k: int) -> Sequence[str]:
    """Caution where many people have fewer than ``top_k`` labels."""
    counts = label_rows.group_by("model", "unit_id").agg(n=pl.col("label").drop_nulls().len())
    notes = []
    for (model,), label_counts in counts.sort("model").group_by(["model"], maintain_order=True):
        n_few = int((label_counts["n"] < top_k).sum())
        max_labels = int(str(label_counts["n"].max() or 0))
        text = (
            f"{n_few:,} of {label_counts.height:,} people have fewer than {top_k} labels by"
            f" {model!r} (at most {max_labels:,}): fewer labels are fewer chances of a harmful one."
            f" Compare with models of as many alone, or say --top-k {max(max_labels, 1)}."
        )
        notes += [Caution(text)] if n_few >= _CAUTION_FEW_SHARE * label_counts.height else []
    return notes


def _note_types(first_labels: pl.DataFrame, taxonomy: Taxonomy) -> Sequence[str]:
    """List the predicted labels of each type; caution where none is harmful."""
    notes: list[str] = []
    models = first_labels["model"].unique().sort().to_list()
    for model in models:
        model_labels = first_labels.filter(model=model)
        model_phrase = f" by {model!r}" if len(models) > 1 else ""
        type_counts = model_labels.drop_nulls("type").group_by("type", "label").agg(n=pl.len())
        type_list = "; ".join(
            f"{title}: {_format_counts(type_counts.filter(type=name))}"
            for name, title in TYPES.items()
            if name in type_counts["type"]
        )
        notes += (
            [f"Labels{model_phrase} among the first, however sure: {type_list}."]
            if type_list
            else []
        )
        words = ", ".join(label for label_type in HARMFUL for label in taxonomy.labels(label_type))
        text = (
            f"No label{model_phrase} is Non-human or Crime: the rate of harmful labels is 0 for"
            " all. That is"
            f" good news only if the model knows such labels: {words or 'the taxonomy names none'}."
        )
        # A model whose vocabulary has no such labels cannot fail, and its rate of 0 is no merit.
        notes += [] if type_counts["type"].is_in(HARMFUL).any() else [Caution(text)]
    return notes


def _format_counts(label_counts: pl.DataFrame) -> str:
    rows = label_counts.sort("n", "label", descending=[True, False]).select("label", "n").rows()
    text = ", ".join(f"{label} {n:,}" for label, n in rows[:_MAX_LISTED])
    n_hidden = len(rows) - _MAX_LISTED
    return text + (f" and {n_hidden:,} more" if n_hidden > 0 else "")
