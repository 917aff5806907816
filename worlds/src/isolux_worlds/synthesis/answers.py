"""A written world's people as one table, and its simulated models' answers as files.

Who a model is right about was decided by the world (``photo_world.response``). Here that is laid
on the data as its loader reads them, so that an audit meets what it would meet in real files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.plugin_options import parse_option_assignments
from isolux.core.registry import load as plugin
from isolux.datasets import load
from isolux_worlds._joins import left_join_in_order
from isolux_worlds.layouts import LayoutWriter, Way
from isolux_worlds.photo_world.injected_effects import draw_is_right
from isolux_worlds.photo_world.settings import ModelSettings
from isolux_worlds.photo_world.world import PhotoWorld
from isolux_worlds.predictors import SimulatedModel, write_predictions, write_simulated_predictions
from isolux_worlds.predictors.labels import simulate_labels

__all__ = ["build_people_table", "write_occupation_predictions", "write_predictions_of_models"]

_FIRST = ("instance_id", "image_id", "subject_id", "household_id")
_MOST_JITTER = 0.49
_BY_CLASS = ("classification", "open_vocabulary", "grounding")


def build_people_table(world: PhotoWorld, layout: LayoutWriter) -> pl.DataFrame:
    """Lay everyone out: a row for each person in each photo, under the ids of the loader."""
    names = layout.ids(world)
    flat = [name for name, dtype in world.people.schema.items() if not dtype.is_nested()]
    people = world.people.select(flat).drop("mask_counts", strict=False)
    homes_columns = world.households.select("household_id", "income", "country", "region")
    homes = left_join_in_order(
        world.photos.select("image_id", "household_id"), homes_columns, "household_id"
    )
    shared_columns = [
        name for name in homes.columns if name in people.columns and name != "image_id"
    ]
    images = names.images.select("image_id", native_image="native")
    table = left_join_in_order(left_join_in_order(people, homes.drop(shared_columns)), images)
    if layout.judges_people:
        native = names.people.select("person_id", instance_id="native")
        table = left_join_in_order(table, native, "person_id").drop("person_id")
    else:
        table = table.rename({"person_id": "instance_id"})
    table = table.drop("image_id").rename({"native_image": "image_id"})
    return table.select(*_FIRST, pl.exclude(_FIRST))


def write_occupation_predictions(
    world: PhotoWorld, people: Path, model: ModelSettings, folder: Path
) -> None:
    """Write what a model says each person's occupation is: ``occupation.csv``."""
    dataset = load("table", str(people), id="instance_id")
    classes = world.people.select(pl.concat_list("occupation")).to_series()
    instances = dataset.instances.with_columns(classes=classes)
    is_right = pl.Series(draw_is_right(world, model, stream_name="occupation"))
    answers = dataset.instances.select("instance_id", right=is_right)
    predictions = simulate_labels(
        replace(dataset, instances=instances), answers, _build_simulated_model(model, world)
    )
    write_predictions(predictions, folder, "occupation")


def write_predictions_of_models(
    world: PhotoWorld,
    name: str,
    layout: LayoutWriter,
    ways: tuple[Way, ...],
    stage: Path,
    tell: Callable[[str, int, int], None],
) -> None:
    """Write every model's answers to every task: ``predictions/<model>/<task>…``."""
    read: dict[tuple[str, tuple[str, ...]], Dataset] = {}
    ways = tuple({way.answers: way for way in reversed(ways)}.values())[::-1]
    for n_done, way in enumerate(ways, start=1):
        files = (way.path, way.options)
        if files not in read:
            read[files] = _load_dataset(name, way, stage)
        dataset = read[files]
        if layout.judges_people and way.task in _BY_CLASS:
            dataset = _replace_classes_by_truth(dataset, world, layout)
        if way.task == "segmentation" and "mask_counts" not in dataset.instances.columns:
            dataset = _add_true_masks(dataset, world, layout)
        # Protocols alone are audited for the first model.
        for model in world.settings.models[: 1 if way.protocol else None]:
            answers = _draw_is_correct_by_instance(layout, world, model, way.answers)
            instance_ids = dataset.instances.select("instance_id")
            present = answers.join(
                instance_ids, on="instance_id", how="semi", maintain_order="left"
            )
            folder, simulated = (
                stage / "predictions" / model.name,
                _build_simulated_model(model, world),
            )
            write_simulated_predictions(
                way.answers, dataset, present, simulated, folder, root=stage / "data"
            )
        tell("writing answers", n_done, len(ways))


def _load_dataset(name: str, way: Way, stage: Path) -> Dataset:
    inputs = [
        pair.format(data=stage / "data")
        for flag, pair in zip(way.options[::2], way.options[1::2], strict=True)
        if flag == "--data-option"
    ]
    loader = plugin("datasets", name).load
    options = parse_option_assignments(
        loader, tuple(inputs), owner=name, flag="--data-option", hidden=()
    )
    return load(name, str(stage / "data" / way.path), **options)


def _replace_classes_by_truth(dataset: Dataset, world: PhotoWorld, layout: LayoutWriter) -> Dataset:
    """Give people their true class: a model knows nothing of annotators' mistakes."""
    true = world.people.select("person_id", "occupation").join(
        layout.ids(world).people, on="person_id", maintain_order="left"
    )
    classes = true.select(instance_id="native", classes=pl.concat_list("occupation"))
    people = left_join_in_order(dataset.instances.drop("classes"), classes, "instance_id")
    return replace(dataset, instances=people)


def _add_true_masks(dataset: Dataset, world: PhotoWorld, layout: LayoutWriter) -> Dataset:
    """Give people the masks that were painted, where files have those of their parts alone."""
    masks = left_join_in_order(world.sized_people(), layout.ids(world).people, "person_id").select(
        "mask_counts", instance_id="native", mask_height="height", mask_width="width"
    )
    return replace(dataset, instances=left_join_in_order(dataset.instances, masks, "instance_id"))


def _draw_is_correct_by_instance(
    layout: LayoutWriter, world: PhotoWorld, model: ModelSettings, task: str
) -> pl.DataFrame:
    """Draw for whom a model is right; where images are units, for the first person of each."""
    answers = world.people.select("person_id", "image_id").with_columns(
        right=draw_is_right(world, model, stream_name=task)
    )
    names = layout.ids(world)
    if layout.judges_people:
        with_native_ids = answers.join(names.people, on="person_id", maintain_order="left")
    else:
        first = answers.unique("image_id", keep="first", maintain_order=True)
        with_native_ids = first.join(names.images, on="image_id", maintain_order="left")
    return with_native_ids.select("right", instance_id="native")


def _build_simulated_model(model: ModelSettings, world: PhotoWorld) -> SimulatedModel:
    jitter, alarms = min(model.jitter, _MOST_JITTER), model.false_alarms
    return SimulatedModel(name=model.name, jitter=jitter, false_alarms=alarms, seed=world.seed)
