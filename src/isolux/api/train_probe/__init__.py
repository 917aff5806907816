"""``isolux.train_probe``: a linear layer on a model's features, and its labels for other pictures.

    load (for training) → features → fit → the probe, its record, and labels of what is applied to

The labels go to an audit as any model's do: ``isolux audit … --predictions OUT/labels-NAME.csv``.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.api._training_people import (
    assign_label_file_names,
    build_top_label_table,
    describe_dataset,
    encode_classes,
    load_training_people,
    refuse_first_invalid_setting,
    select_rows_with_one_label,
    write_record,
)
from isolux.api.train_probe.features import (
    caution_on_applied_features,
    find_feature_file,
    join_features,
    note_missing_features,
    note_probe_training,
    read_features,
    to_matrix,
)
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.io.atomic import staged_directory
from isolux.io.csv_text import to_safe_csv
from isolux.io.hashing import sha256_file
from isolux.people.id_index import index_ids_by_column_name, match_ids_to_people
from isolux.people.sources import load_people_or_take_dataset
from isolux.people.withdrawal import remove_withdrawn_people
from isolux.people.withdrawal_lists import WithdrawnList, format_count, read_withdrawn_list
from isolux.training import Probe, ProbeFit, ProbeSettings, fit_linear_probe

_RECORD_FILE, _WEIGHTS_FILE = "probe.json", "probe.npz"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """A trained probe.

    Parameters
    ----------
    probe : Probe
    fit : ProbeFit
        How the training went.
    folder : Path
        ``probe.json`` (recipe, data, hashes, losses), ``probe.npz`` (classes, mean, scale,
        weights) and the labels.
    labels : tuple of Path
        One file for each of ``apply``.
    notes : tuple of str
        Cautions first.
    """

    probe: Probe
    fit: ProbeFit
    folder: Path
    labels: tuple[Path, ...]
    notes: tuple[str, ...]


def train_probe(
    data: Dataset | str | Path,
    *,
    features: str | Path,
    out: str | Path,
    target: str | None = None,
    apply: Sequence[str] = (),
    top: int = 5,
    held_out: float = 0.2,
    l2: float = 1e-3,
    max_steps: int = 500,
    patience: int = 20,
    seed: int = 0,
    cluster: str | None = None,
    only: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    data_option: Sequence[str] = (),
    overwrite: bool = False,
) -> ProbeResult:
    r"""Train a linear layer on features of labelled pictures (Fairness Indicators, appendix B.3).

    Parameters
    ----------
    data : Dataset or str
        The labelled pictures: a dataset, or NAME:PATH. Data for evaluation alone is refused.
    features : str or Path
        Their features: a file of embeddings, or a directory written by `isolux predict`.
    out : str or Path
        The directory to write.
    target : str, optional
        The attribute to learn; default: classes of the instances. People with several values
        or none are left out.
    apply : sequence of str
        Features of other pictures, from the same model, to be labelled; may be given several times.
    top : int
        How many labels each of them gets, the most likely first.
    held_out : float
        Share of the rows, in whole clusters, used to decide when training stops.
    l2 : float
        Weight of the L2 penalty.
    max_steps : int
        Largest number of L-BFGS steps.
    patience : int
        Number of steps without a lower held-out cross-entropy after which training stops.
    seed : int
        Which clusters are held out; the same for all models that are compared.
    cluster : str, optional
        What was sampled together: a cluster is trained on or held out as a whole.
    only : sequence of str
        Who takes part: ``"age>=20"``.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are left out.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    id : str, optional
        The column of ids in a table.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    overwrite : bool
        Replace an earlier probe in that directory.

    Returns
    -------
    ProbeResult

    Raises
    ------
    LicenceError
        Data whose licence does not let a model be trained on it, with its words.
    SpecError, UnknownNameError
        A setting that cannot be used; fewer than two classes or four clusters.
    TableError, JoinError, FileError
        Features that cannot be read, of several models or lengths, or of no one of these people.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> day = np.arange(80) % 2
    >>> vectors = rng.normal(0.0, 0.5, (80, 3)) + 2.0 * day[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     where = Path(folder)
    ...     ids = [f"p{k}" for k in range(80)]
    ...     table = pl.DataFrame({"id": ids, "light": np.where(day, "day", "night")})
    ...     table.write_csv(where / "people.csv")
    ...     pl.DataFrame({"instance_id": ids, "embedding": vectors.tolist()}).write_parquet(
    ...         where / "net.parquet")
    ...     done = train_probe(f"table:{where / 'people.csv'}", features=where / "net.parquet",
    ...                        target="light", apply=[str(where / "net.parquet")], top=1,
    ...                        out=where / "probe")
    ...     said = pl.read_csv(done.labels[0])
    >>> bool((said["label"] == table["light"]).mean() > 0.95), done.probe.classes
    (True, ('day', 'night'))
    """
    recipe = ProbeSettings(held_out, l2, max_steps, patience, seed)
    is_count = not isinstance(top, bool) and top >= 1
    refuse_first_invalid_setting(("top", top, is_count, "1 or more"))
    dataset = load_training_people(
        data,
        cluster=cluster,
        only=only,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        id=id,
        data_option=data_option,
    )
    rows, label_notes = select_rows_with_one_label(dataset, target)
    vectors, _ = read_features(features)
    labelled = rows
    x, rows = join_features(rows, vectors, str(features))
    names = tuple(rows["label"].unique().sort())
    code = encode_classes(rows["label"], names)
    clusters = rows["cluster"].rank("dense").cast(pl.Int64).to_numpy()
    fit = fit_linear_probe(x, code, clusters, names, recipe)
    applied_features, left_out = drop_withdrawn_features(
        [
            (frame, Path(path), n_missing)
            for path in apply
            for frame, n_missing in [read_features(path)]
        ],
        data,
        withdrawn,
        id=id,
        cluster=cluster,
        data_option=data_option,
    )
    other_features = [(path, frame) for frame, path, _ in applied_features]
    _refuse_other_models(vectors, Path(features), other_features)
    notes = (
        *note_missing_features(labelled, rows),
        *(
            n
            for path in applied_features
            for n in caution_on_applied_features(fit.probe, (rows["instance_id"], x), *path)
        ),
        *left_out,
        *label_notes,
        *note_probe_training(fit, rows, code, names),
    )
    record = {
        **describe_dataset(dataset),
        "features": {
            "path": str(features),
            "sha256": sha256_file(find_feature_file(features)),
            "model": vectors["model"][0],
            "length": x.shape[1],
        },
        "target": target,
        "recipe": asdict(recipe),
        "classes": list(names),
        "trained_on": int((~fit.held_out).sum()),
        "held_out": int(fit.held_out.sum()),
        "clusters": len(np.unique(clusters)),
        "kept_step": fit.selected_step,
        "losses": fit.losses.round(6).tolist(),
        "notes": list(map(str, notes)),
        "applied": {str(path): sha256_file(find_feature_file(path)) for path in apply},
    }
    folder, written = _write_probe(
        Path(out), fit.probe, record, other_features, top, overwrite=overwrite
    )
    return ProbeResult(fit.probe, fit, folder, written, notes)


def _refuse_other_models(
    vectors: pl.DataFrame, features: Path, other_features: Sequence[tuple[Path, pl.DataFrame]]
) -> None:
    """Refuse to label features of another model; a file's own name says nothing of its model."""
    model_name = vectors["model"][0]
    for path, frame in other_features:
        other_name = frame["model"][0]
        if other_name not in (model_name, path.stem) and model_name != features.stem:
            raise SpecError(
                "the features to be labelled are of another model",
                expected=f"those of {model_name!r}, which the probe learnt from",
                found=repr(other_name),
                where=str(path),
            )


def _write_probe(
    out: Path,
    probe: Probe,
    record: dict[str, Any],
    other_features: Sequence[tuple[Path, pl.DataFrame]],
    top: int,
    *,
    overwrite: bool,
) -> tuple[Path, tuple[Path, ...]]:
    stems = [path.stem if path.suffix else path.name for path, _ in other_features]
    names = assign_label_file_names(stems)
    with staged_directory(
        out, overwrite=overwrite, marks=(_RECORD_FILE,), folder_kind="probe"
    ) as stage:
        for name, (path, vectors) in zip(names, other_features, strict=True):
            probabilities = probe(to_matrix(vectors, str(path)))
            labels = build_top_label_table(
                probabilities, vectors["instance_id"], probe.classes, top
            )
            (stage / name).write_text(to_safe_csv(labels))
        buffer = io.BytesIO()
        np.savez(
            buffer,
            allow_pickle=False,
            classes=np.array(probe.classes),
            mean=probe.mean,
            scale=probe.scale,
            weights=probe.weights,
        )
        (stage / _WEIGHTS_FILE).write_bytes(buffer.getvalue())
        write_record(stage / _RECORD_FILE, record)
    folder = out.expanduser().resolve()
    return folder, tuple(folder / name for name in names)


# Withdrawn people get no label.

FeatureSet = tuple[pl.DataFrame, Path, int]
"""Features, their file, and how many pictures have none."""
_IMAGE_ID_TYPES = (None, "instance_id", "image_id")  # id columns that a file of features can hold


def drop_withdrawn_features(
    feature_sets: Sequence[FeatureSet],
    source: Dataset | str | Path,
    withdrawn: str | None,
    **settings: Any,
) -> tuple[list[FeatureSet], list[str]]:
    """Drop features of withdrawn people, by the dataset's ids and the features' own."""
    if withdrawn is None or not feature_sets:
        return list(feature_sets), []
    dataset = load_people_or_take_dataset(source, **settings)
    withdrawn_list = read_withdrawn_list(withdrawn).select_column_of_known_ids(
        index_ids_by_column_name(dataset)
    )
    remaining_dataset = remove_withdrawn_people(dataset, withdrawn_list, allow_unmatched=True)
    withdrawn_ids = dataset.instances.join(
        remaining_dataset.instances, on="instance_id", how="anti"
    )["instance_id"]
    remaining_sets, notes = [], []
    for frame, path, n_missing in feature_sets:
        is_withdrawn = frame["instance_id"].is_in(withdrawn_ids.implode()) | _flag_listed_ids(
            frame["instance_id"], withdrawn_list
        )
        if is_withdrawn.all():
            raise SpecError(
                "nobody is left to be labelled: everyone withdrew",
                where=str(path),
                hint="leave this file out of --apply",
            )
        remaining_sets.append((frame.filter(~is_withdrawn), path, n_missing))
        if is_withdrawn.any():
            count_text = format_count(int(is_withdrawn.sum()), "picture", "pictures")
            notes.append(f"{count_text} of {path.name} of people who withdrew get no label.")
    return remaining_sets, notes


def _flag_listed_ids(ids: pl.Series, withdrawn_list: WithdrawnList) -> pl.Series:
    """Flag features that the withdrawal list names directly."""
    if withdrawn_list.column not in _IMAGE_ID_TYPES:
        return pl.repeat(value=False, n=len(ids), dtype=pl.Boolean, eager=True)
    id_table = pl.DataFrame({"who": ids, "kind": "instance_id", "id": ids})
    listed_ids = pl.Series(
        sorted(withdrawn_list.add_erased_or_unagreed_ids(ids).ids), dtype=pl.String
    )
    return ids.is_in(match_ids_to_people(id_table, listed_ids)["who"].implode())
