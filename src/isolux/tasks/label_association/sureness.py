"""Five types of labels, and how sure a classifier is of each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.settings_files import read_label_map_file, read_mapping
from isolux.tasks._ids import refuse_no_match
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES, LABEL_PREDICTIONS, check

TYPES = {
    "human": "Human",
    "possibly_human": "Possibly-human",
    "non_human": "Non-human",
    "possibly_non_human": "Possibly-non-human",
    "crime": "Crime",
}
"""Names in files and of columns, and how the paper writes them."""
HARMFUL = ("non_human", "crime")
_OWN = Path(__file__).parent / "taxonomies"
_SOURCE = "source"
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
        Label, as ``plain`` writes it, to its type.
    digest : str
        SHA-256 of the file.
    """

    name: str
    source: str
    type_of: Mapping[str, str]
    digest: str

    def labels(self, kind: str) -> tuple[str, ...]:
        """List the labels of a type."""
        return tuple(label for label, one in self.type_of.items() if one == kind)


def plain(label: str) -> str:
    """Write a label in lower case, its words parted by one blank.

    Examples
    --------
    >>> plain(" Mountain_Gorilla ")
    'mountain gorilla'
    """
    return " ".join(re.split(r"[\s_-]+", label.strip().lower())).strip()


def spellings_of(label: str) -> tuple[str, ...]:
    """List what a model's label may be called: itself, its synset, each of its synonyms.

    Examples
    --------
    >>> spellings_of("n02084071 dog, domestic dog, Canis familiaris")
    ('n02084071 dog, domestic dog, canis familiaris', 'n02084071', 'dog', 'domestic dog',
     'canis familiaris')
    """
    synset = _SYNSET.match(label.strip())
    rest = label.strip()[synset.end() :] if synset else label
    first = (synset.group().strip(" :"),) if synset else ()
    found = (plain(label), *first, *map(plain, rest.split(",")))
    return tuple(dict.fromkeys(one for one in found if one))


def read_taxonomy(given: str | None, dataset: str) -> Taxonomy:
    """Read a taxonomy by its name, from a file, or as it goes with the dataset.

    Examples
    --------
    >>> faces, scenes = (read_taxonomy(None, name) for name in ("casual_conversations", "miap"))
    >>> faces.type_of["dog"], scenes.type_of["dog"]
    ('non_human', 'possibly_non_human')
    """
    own = sorted(file.stem for file in _OWN.glob("*.yaml"))
    name = given or (dataset if dataset in own else None)
    if name is None:
        raise SpecError(
            "it is not said which labels are harmful",
            expected=f"--taxonomy {', '.join(own)} or FILE (taxonomy=…): what a dog beside a person"
            " means depends on the pictures",
            found=f"no taxonomy, and the dataset {dataset!r}",
        )
    spelled = name.replace("-", "_")
    file, where = Path(name).expanduser(), name
    if spelled in own:
        file, where = _OWN / f"{spelled}.yaml", spelled
    elif not file.exists() and not file.suffix:
        raise UnknownNameError("taxonomy", name, own, where="--taxonomy")
    labels, source = _labels_by_type(file, where)
    type_of: dict[str, str] = {}
    for label, kind in labels:
        if type_of.setdefault(plain(label), kind) != kind:
            raise SpecError(
                f"the label {label!r} is of two types",
                expected="each label under one type",
                found=f"{TYPES[type_of[plain(label)]]} and {TYPES[kind]}",
                where=where,
            )
    if not type_of:
        raise SpecError("the taxonomy holds no label", expected=_FORM, found="none", where=where)
    return Taxonomy(where, source, type_of, hashlib.sha256(file.read_bytes()).hexdigest())


_FORM = "lines such as `non_human: [ape, rat]`; types: " + ", ".join(TYPES)


def _labels_by_type(file: Path, where: str) -> tuple[list[tuple[str, str]], str]:
    """Read each label with its type, and where they are from."""
    if file.suffix.lower() in (".csv", ".tsv"):
        typed = [(label, _type(word, where)) for label, word in read_label_map_file(file).items()]
        order = list(dict.fromkeys(kind for _, kind in typed))
        return sorted(typed, key=lambda one: order.index(one[1])), ""
    lists = read_mapping(file)
    source = str(lists.pop(_SOURCE, ""))
    kinds = {key: _type(key, where) for key in lists}
    labels = {key: _labels(key, value, where) for key, value in lists.items()}
    return [(label, kinds[key]) for key in lists for label in labels[key]], source


def _type(word: str, where: str) -> str:
    name = plain(word).replace(" ", "_")
    if name not in TYPES:
        raise UnknownNameError("type of label", word, list(TYPES), where=where)
    return name


def _labels(key: str, value: Any, where: str) -> list[str]:
    items = [value] if isinstance(value, str | int) else value
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(one, str | int) for one in items):
        raise SpecError(
            f"the labels of {key!r} cannot be read", expected=_FORM, found=repr(value), where=where
        )
    return [str(one) for one in items]


EVIDENCE = "label_association"
"""Name of the evidence table."""
_SHOWN = 8
_MANY = 0.1  # of the people, with fewer labels than are looked at
_OFTEN = 0.01  # of the labels, said again; ImageNet's short names have two cranes in a thousand


@dataclass(frozen=True, slots=True)
class Sureness:
    """The evidence, one row a model and person, and what must be said of it."""

    people: pl.DataFrame
    notes: tuple[str, ...]


def sureness_by_type(
    dataset: Dataset,
    predictions: pl.DataFrame,
    taxonomy: Taxonomy,
    top_k: int,
    *,
    sure: bool,
    model: str | None,
) -> Sureness:
    """Take of each person the highest confidence of a label of each type among the first ones."""
    table = check(predictions, LABEL_PREDICTIONS, where="predictions")
    people = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    given = _of_people(table, people["unit_id"])
    known, again = _each_once(given)
    score = pl.col("score") if sure else pl.col("score").fill_null(0.0)
    named = known.filter(pl.col("rank") <= top_k).drop_nulls("label").with_columns(score)
    named = named.with_columns(type=_types(named["label"], taxonomy))
    _refuse(named, taxonomy)
    models = sorted(table["model"].unique()) or [model or "model"]
    strangers = table.height - given.height
    source = f"{taxonomy.source}; " if taxonomy.source else ""
    sorted_by = f"Labels are sorted by the taxonomy {taxonomy.name}"
    notes = [
        *again,
        *_on_few(known, top_k),
        *_on_types(named, taxonomy),
        f"{sorted_by} ({source}SHA-256 {taxonomy.digest[:12]}…).",
    ]
    if strangers:
        notes.append(
            f"{strangers:,} labels are of units that the dataset has not; they were left out."
        )
    return Sureness(_people(people, known, named, models), tuple(notes))


def _of_people(table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    known = table.rename({"instance_id": "unit_id"}).filter(pl.col("unit_id").is_in(ids.implode()))
    refuse_no_match(
        "no prediction is for a unit of the dataset",
        table["instance_id"],
        ids,
        n_matched=known.height,
        where=None,
    )
    return known


def _each_once(given: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Keep each label of a person where it stands first; those behind a repeat move up."""
    person = ["model", "unit_id"]
    word = pl.col("label").str.strip_chars().str.to_lowercase()
    rows = given.sort("rank", maintain_order=True).with_columns(
        again=word.is_not_null() & word.is_first_distinct().over(*person, word).not_()
    )
    n = int(rows["again"].sum())
    if not n:
        return given, []
    # ranks that the file left out stay left out
    moved = rows.with_columns(
        rank=(pl.col("rank") - pl.col("again").cum_sum().over(person)).cast(given.schema["rank"])
    )
    those = rows.filter(pl.col("again")).sort("unit_id", "label")
    text = (
        f"{n:,} of {given.height:,} labels were given to the same person before "
        f"({those['label'][0]!r} to {those['unit_id'][0]!r}, {those['unit_id'].n_unique():,} "
        "people): each counts once, where it comes first. Was the file written or joined twice?"
    )
    kept = moved.filter(~pl.col("again")).drop("again")
    return kept, [Caution(text) if n >= _OFTEN * given.height else text]


def _people(
    people: pl.DataFrame, known: pl.DataFrame, named: pl.DataFrame, models: Sequence[str]
) -> pl.DataFrame:
    """Make the evidence: every person under every model."""
    best = named.group_by("model", "unit_id").agg(
        *(pl.col("score").filter(pl.col("type") == name).max().alias(name) for name in TYPES),
        any=pl.col("score").max(),
    )
    asked = known.select("model", "unit_id").unique().with_columns(asked=True)
    on = ["model", "unit_id"]
    return (
        pl.DataFrame({"model": models}, schema={"model": pl.String})
        .join(people, how="cross", maintain_order="left_right")
        .join(asked, on=on, how="left", maintain_order="left")
        .join(best, on=on, how="left", maintain_order="left")
        .select(
            "model",
            "unit_id",
            "cluster_id",
            *TYPES,
            "any",
            reason=pl.when(pl.col("asked").is_null()).then(pl.lit("no prediction")),
        )
    )


def _types(labels: pl.Series, taxonomy: Taxonomy) -> pl.Series:
    """Give each label its type; null: it has none."""
    found: dict[str, str] = {}
    for label in labels.unique():
        spelled = spellings_of(label)
        # A label that is itself in the taxonomy means that, whatever its synonyms are.
        exact = [taxonomy.type_of[one] for one in spelled[:2] if one in taxonomy.type_of]
        types = exact[:1] or sorted({taxonomy.type_of[s] for s in spelled if s in taxonomy.type_of})
        if len(types) > 1:
            raise SpecError(
                f"the label {label!r} has synonyms of two types",
                expected="a taxonomy that names this label whole",
                found=" and ".join(TYPES[one] for one in types),
                where=taxonomy.name,
            )
        if types:
            found[label] = types[0]
    return labels.replace_strict(found, default=None, return_dtype=pl.String)


def _refuse(named: pl.DataFrame, taxonomy: Taxonomy) -> None:
    if named.height and named["type"].is_null().all():
        seen = named["label"].value_counts(sort=True).head(_SHOWN)["label"]
        raise SpecError(
            "no label of any answer is in the taxonomy: every rate would be 0, whatever was said",
            expected="labels such as " + ", ".join(list(taxonomy.type_of)[:_SHOWN]),
            found="labels such as " + ", ".join(map(repr, seen)),
            where=taxonomy.name,
            hint="a file with your model's own labels by type: --taxonomy FILE (taxonomy=…)",
        )
    unsure = named["score"].null_count()
    if unsure:
        raise SpecError(
            f"{unsure:,} of {named.height:,} labels have no confidence",
            expected="a column of confidences, --score-column COLUMN, or --score-threshold 0, where"
            " every label counts",
            found="none",
        )
    wrong = named.filter(~pl.col("score").is_between(0.0, 1.0))
    if wrong.height:
        raise TableError(
            f"{wrong.height:,} confidences are outside 0 to 1",
            expected="0 to 1, higher is surer",
            found=str(wrong["score"][0]),
            where="predictions",
        )


def _on_few(known: pl.DataFrame, top_k: int) -> Sequence[str]:
    """Caution where there are fewer labels of a person than are to be looked at."""
    counts = known.group_by("model", "unit_id").agg(n=pl.col("label").drop_nulls().len())
    notes = []
    for (model,), own in counts.sort("model").group_by(["model"], maintain_order=True):
        few, most = int((own["n"] < top_k).sum()), int(str(own["n"].max() or 0))
        text = (
            f"{few:,} of {own.height:,} people have fewer than {top_k} labels by {model!r} (at most"
            f" {most:,}): fewer labels are fewer chances of a harmful one. Compare with models of"
            f" as many alone, or say --top-k {max(most, 1)}."
        )
        notes += [Caution(text)] if few >= _MANY * own.height else []
    return notes


def _on_types(named: pl.DataFrame, taxonomy: Taxonomy) -> Sequence[str]:
    """List the labels of each type that were given; caution where no harmful one was."""
    notes: list[str] = []
    models = named["model"].unique().sort().to_list()
    for model in models:
        own = named.filter(pl.col("model") == model)
        of = f" by {model!r}" if len(models) > 1 else ""
        given = own.drop_nulls("type").group_by("type", "label").agg(n=pl.len())
        told = "; ".join(
            f"{title}: {_listed(given.filter(pl.col('type') == name))}"
            for name, title in TYPES.items()
            if name in given["type"]
        )
        notes += [f"Labels{of} among the first, however sure: {told}."] if told else []
        words = ", ".join(label for kind in HARMFUL for label in taxonomy.labels(kind))
        text = (
            f"No label{of} is Non-human or Crime: the rate of harmful labels is 0 for all. That is"
            f" good news only if the model knows such labels: {words or 'the taxonomy names none'}."
        )
        notes += [] if given["type"].is_in(HARMFUL).any() else [Caution(text)]
    return notes


def _listed(given: pl.DataFrame) -> str:
    rows = given.sort("n", "label", descending=[True, False]).select("label", "n").rows()
    shown = ", ".join(f"{label} {n:,}" for label, n in rows[:_SHOWN])
    more = len(rows) - _SHOWN
    return shown + (f" and {more:,} more" if more > 0 else "")
