"""``isolux.train_finetune``: an extractor with a new head, trained by one recipe for all compared.

    load (for training) → open the model → look at the pictures → epochs, each kept → labels

Labels of other pictures go to an audit as any model's do: ``--predictions OUT/labels-NAME.csv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from isolux.api._training_people import (
    build_epoch_notes,
    caution_on_rare_classes,
    caution_on_unknown_labels,
    caution_or_refuse_unreadable,
    check_or_resume_training_dir,
    describe_dataset,
    describe_training,
    encode_classes,
    hash_rows,
    load_training_people,
    refuse_first_invalid_setting,
    refuse_one_class,
    remove_files,
    report_epoch_loss_and_accuracy,
    select_one_image_per_person,
    select_rows_with_one_label,
    split_rows,
    write_record,
)
from isolux.api.train_finetune.label_prediction import (
    LabelPredictionSettings,
    load_other_datasets,
    predict_labels,
    read_labelled_files,
    remove_label_files,
)
from isolux.core.containers import Dataset
from isolux.models import open_model
from isolux.models.finetuned import RECORD
from isolux.training import (
    CHECKPOINT,
    FINETUNED,
    Epoch,
    Schedule,
    add_classification_head,
    check_images_unchanged,
    finetune_with_checkpoints,
    read_matching_checkpoint_or_none,
)

_RECORD_FILE = RECORD
_NO_PERFORMANCE_NOTE = (
    "Those held out chose the epoch, so nothing here says how good the model is: audit its labels"
    " of other pictures."
)


@dataclass(frozen=True, slots=True)
class FineTuningResult:
    """A fine-tuned model.

    Parameters
    ----------
    folder : Path
        ``finetuned.safetensors`` (extractor and head), ``finetune.json`` (recipe, data, hashes,
        epochs), ``checkpoint.safetensors`` and the labels.
    classes : tuple of str
    history : tuple of Epoch
    selected_epoch : int
        The epoch whose weights these are.
    labels : tuple of Path
        One file for each of ``apply``.
    notes : tuple of str
        Cautions first.
    """

    folder: Path
    classes: tuple[str, ...]
    history: tuple[Epoch, ...]
    selected_epoch: int
    labels: tuple[Path, ...]
    notes: tuple[str, ...]


def train_finetune(
    data: Dataset | str | Path,
    *,
    model: str,
    out: str | Path,
    model_option: Sequence[str] = (),
    target: str | None = None,
    apply: Sequence[str] = (),
    top: int = 5,
    held_out: float = 0.1,
    epochs: int = 20,
    patience: int = 3,
    batch: int = 64,
    learning_rate: float = 1e-4,
    seed: int = 0,
    device: str = "cpu",
    threads: int = 0,
    input_unit: Literal["image", "person"] = "image",
    images: str | None = None,
    cluster: str | None = None,
    only: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    data_option: Sequence[str] = (),
    overwrite: bool = False,
) -> FineTuningResult:
    r"""Fine-tune an extractor on labelled pictures (Fairness Indicators, appendix B.3).

    Parameters
    ----------
    data : Dataset or str
        The labelled pictures: NAME:PATH, or a dataset. Data for evaluation alone is refused.
    model : str
        FAMILY:WHAT of a model whose features can be trained: timm:…, hf:…, open_clip:…,
        fairface:…, python:….
    out : str or Path
        The directory to write, or to resume.
    model_option : sequence of str
        A setting specific to the family, NAME=VALUE.
    target : str, optional
        The attribute to learn; default: classes of the instances.
    apply : sequence of str
        NAME:PATH of other pictures, to be labelled, with their table or below ``images``; may be
        given several times.
    top : int
        How many labels each of them gets, the most likely first.
    held_out : float
        Share of the rows, in whole clusters, used to choose the epoch.
    epochs : int
        The most epochs.
    patience : int
        Number of epochs without a lower held-out loss after which training stops.
    batch : int
        Pictures per step.
    learning_rate : float
        Of Adam.
    seed : int
        Seed for who is held out, and for the order of pictures; the same for all models compared.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    threads : int
        Threads that open pictures; 0: one per core.
    input_unit : {"image", "person"}
        Whether the whole image is looked at, or a person's box in it.
    images : str, optional
        The folder that the pictures' paths are relative to.
    cluster : str, optional
        What was sampled together: a cluster is learnt from or held out as a whole.
    only : sequence of str
        Who takes part.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are left out, and get no labels.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody among those learnt from.
    id : str, optional
        The column of ids in a table.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    overwrite : bool
        Start again, replacing an earlier training in that directory.

    Returns
    -------
    FineTuningResult

    Raises
    ------
    LicenceError
        Data whose licence does not let a model be trained on it, with its words.
    SpecError, UnknownNameError
        A model that cannot be fine-tuned; one class alone; other labels, pictures or another
        recipe than the training began with.
    FileError
        Pictures that are missing or broken, beyond a few that are left out.

    Examples
    --------
    ``docs/methods/training.md`` runs it.
    """
    schedule = Schedule(learning_rate, batch, epochs, patience, seed=seed, device=device)
    refuse_first_invalid_setting(
        ("held_out", held_out, 0.0 < held_out <= 0.5, "above 0, at most 0.5"),
        ("top", top, top >= 1, "1 or more"),
    )
    folder = check_or_resume_training_dir(out, _RECORD_FILE, overwrite=overwrite)
    dataset = load_training_people(
        data,
        cluster=cluster,
        only=only,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        id=id,
        data_option=data_option,
        images=images,
    )
    other_datasets = load_other_datasets(apply, id, images, withdrawn)
    rows, label_notes = select_rows_with_one_label(dataset, target)
    classes = tuple(rows["label"].unique().sort().to_list())
    refuse_one_class(classes, target or "classes", dataset.name)
    options = _add_embeddings_option(model, model_option)
    base_model = open_model(model, options)
    extractor = add_classification_head(base_model, len(classes), device)
    training_record = {
        "network": f"{base_model.name}, {base_model.key}",
        "classes": list(classes),
        "labels": hash_rows(rows.rows()),
        "recipe": {
            "learning_rate": learning_rate,
            "batch": batch,
            "seed": seed,
            "held_out": held_out,
            "input_unit": input_unit,
        },
    }
    checkpoint = None if overwrite else read_matching_checkpoint_or_none(folder, training_record)
    ids = rows["instance_id"]
    training_images = select_one_image_per_person(
        dataset, ids, input_unit, extractor.prepare, threads
    )
    for (
        _,
        other_dataset,
    ) in other_datasets:  # no folder, several people in a picture: before hours of training
        select_one_image_per_person(
            other_dataset,
            other_dataset.instances["instance_id"],
            input_unit,
            extractor.prepare,
            threads,
        )
    scan = training_images.scan()
    notes: tuple[str, ...] = (
        *dataset.notes,
        *label_notes,
        *caution_on_unknown_labels(rows["label"]),
    )
    notes = (*notes, *caution_or_refuse_unreadable(ids, scan, dataset.name))
    if checkpoint is not None:
        check_images_unchanged(checkpoint, scan, folder)
    labels, splits = encode_classes(rows["label"], classes), split_rows(rows, scan, held_out, seed)
    refuse_one_class(rows["label"].gather(splits[0]), target or "classes")
    notes = (*notes, *caution_on_rare_classes(labels[splits[0]], classes))
    earlier = _list_or_remove_earlier_labels(
        folder, is_same_model=checkpoint is not None and checkpoint.state.is_finished(schedule)
    )
    if overwrite:
        remove_files(folder, (CHECKPOINT, FINETUNED, _RECORD_FILE))
    state = finetune_with_checkpoints(
        extractor,
        training_images,
        scan,
        labels,
        splits,
        schedule,
        folder=folder,
        training_record=training_record,
        checkpoint=checkpoint,
        report=lambda epoch: report_epoch_loss_and_accuracy(epoch, epochs),
        head=target or "class",
    )
    notes = (*notes, *build_epoch_notes(state, labels[:, None], splits[1]), _NO_PERFORMANCE_NOTE)
    record = training_record | {
        **describe_dataset(dataset),
        "model": base_model.spec,
        "model_option": options,
        **describe_training(state, schedule, splits),
        "labelled": earlier,
        "notes": list(map(str, notes)),
    }
    write_record(folder / _RECORD_FILE, record)  # the model is complete, even if labelling fails
    label_settings = LabelPredictionSettings(extractor, input_unit, threads, batch, classes, top)
    label_results = predict_labels(label_settings, other_datasets, scan, folder)
    notes = (*notes, *label_results.notes)
    if other_datasets:
        with_labels = {
            "labelled": earlier | label_results.source_by_file,
            "notes": list(map(str, notes)),
        }
        write_record(folder / _RECORD_FILE, record | with_labels)
    return FineTuningResult(
        folder, classes, state.history, state.selected_epoch(), label_results.files, notes
    )


def _list_or_remove_earlier_labels(folder: Path, *, is_same_model: bool) -> dict[str, str]:
    """List label files of earlier commands, or remove them if the model changed."""
    if not is_same_model:
        remove_label_files(folder, _RECORD_FILE)
        return {}
    return {
        name: text
        for name, text in read_labelled_files(folder, _RECORD_FILE).items()
        if (folder / name).is_file()
    }


def _add_embeddings_option(model: str, options: Sequence[str]) -> list[str]:
    """Request embeddings where the family has several outputs and none was chosen."""
    task_options = ("answers", "predicts", "task")
    has_task_option = any(option.partition("=")[0].strip() in task_options for option in options)
    timm_options = ["answers=embeddings"]
    options_by_family = {
        "timm": timm_options,
        "fairface": timm_options,
        "open_clip": timm_options,
        "hf": ["task=embeddings"],
    }
    return [
        *options,
        *([] if has_task_option else options_by_family.get(model.partition(":")[0], [])),
    ]
