"""Settings of a model that is run over the pictures."""

from __future__ import annotations

from typing import Literal

from isolux.core.spec.stage import SettingsStage, setting


class ModelRun(SettingsStage):
    """Which model is run, what it is shown, and how the run is done."""

    spec: str | None = setting(
        None,
        "the model to run, FAMILY:WHAT (onnx:net.onnx): `isolux list models`",
        flat="model",
        often=True,
    )
    option: tuple[str, ...] = setting(
        (),
        "a setting of the model's family, NAME=VALUE (labels=classes.txt)",
        flat="model_option",
        needs=("model",),
    )
    answers: str | None = setting(
        None,
        "directory where the model's answers are kept, to resume from; default: the run "
        "directory's name with .answers",
        flat="answers",
        flag=False,
        needs=("model",),
    )
    input_unit: Literal["image", "person"] = setting(
        "image",
        "what the model is shown for each person: the whole image, or their box",
        needs=("model",),
    )
    box_factor: float = setting(
        1.0,
        "factor by which a person's box is enlarged about its centre",
        gt=0,
        flag=False,
        needs=("model",),
    )
    crops: str | None = setting(
        None,
        "a directory of `isolux crop`: the model is shown each person's crop",
        flag=False,
        needs=("model",),
    )
    batch: int | None = setting(
        None,
        "largest number of pictures at a time; default: 16, with a model on a GPU 64; halved if "
        "there is too little memory",
        ge=1,
        flag=False,
        needs=("model",),
    )
    readers: int | None = setting(
        None,
        "threads that read pictures ahead of the model; default: one per core, at most 8",
        ge=1,
        flag=False,
        needs=("model",),
    )
    reader_processes: int | None = setting(
        None,
        "processes that read pictures ahead of the model; 0: none, threads alone; default: of a "
        "model on a GPU one per core but one, at most 16, if there are many pictures",
        ge=0,
        flag=False,
        needs=("model",),
    )
    shard_size: int = setting(
        64, "number of pictures that are saved together", ge=1, flag=False, needs=("model",)
    )
    time_limit: float = setting(
        1800.0,
        "seconds per shard, at most a week; pictures that take longer get no answer",
        gt=0,
        le=604_800,
        flag=False,
        needs=("model",),
    )
    max_failures: float = setting(
        0.05,
        "the largest share of pictures, 0 to 1, that may remain without an answer",
        ge=0,
        le=1,
        flag=False,
        needs=("model",),
    )
