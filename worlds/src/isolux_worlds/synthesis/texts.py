"""What goes with a written world: the commands that audit it, and the truth to hold against."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isolux_worlds.layouts import LayoutWriter, Way
from isolux_worlds.photo_world.injected_effects import (
    build_photo_injected_effects_record,
    compute_photo_injected_rates,
)
from isolux_worlds.photo_world.settings import WorldSettings, format_world_yaml
from isolux_worlds.predictors import PREDICTORS

__all__ = [
    "build_audit_commands",
    "build_injected_truth",
    "build_protocol_commands",
    "build_readme_text",
    "format_world_yaml_with_version",
]

_WIDTH = 96
_AUDIT_THEM = (
    "Run these in this folder. Their reports show what was injected and what was found: accuracy,"
    "\nand recall at a threshold of 0.5, are in each group its injected value but for chance."
)


def build_audit_commands(
    settings: WorldSettings, name: str, layout: LayoutWriter, ways: Sequence[Way], stage: Path
) -> tuple[str, ...]:
    """List audits of a written world, to be run in its folder; the first by every grouping."""
    command_lines = []
    for model in settings.models:
        for way in ways:
            data_dir, answers = (
                f"{name}:data/{way.path}".rstrip("/"),
                _find_predictions_path(stage, model.name, way.task),
            )
            words = [data_dir, "--task", way.task, "--predictions", answers]
            words += [*_build_metric_arguments(way.task, model.name), *layout.options]
            words += [option.format(data="data") for option in way.options]
            words += [
                *_build_grouping_arguments(settings, layout),
                "--out",
                f"runs/{model.name}-{way.task}",
            ]
            command_lines.append(words)
        command_lines.append(_build_occupation_audit_arguments(settings, model.name))
    return tuple("isolux audit " + " ".join(map(shlex.quote, words)) for words in command_lines)


def build_protocol_commands(
    settings: WorldSettings, name: str, ways: Sequence[Way], stage: Path
) -> tuple[str, ...]:
    """List audits by published protocols, each of the first model; to be run in its folder."""
    return tuple(
        "isolux audit "
        + shlex.join(
            [
                f"{name}:data/{way.path}".rstrip("/"),
                *("--protocol", way.protocol, "--predictions"),
                _find_predictions_path(stage, model.name, way.answers),
                *("--model-name", model.name),
                *(option.format(data="data") for option in way.options),
                *("--out", f"runs/{model.name}-{way.protocol.replace(':', '-')}"),
            ]
        )
        for model in settings.models[:1]
        for way in ways
    )


def _build_occupation_audit_arguments(settings: WorldSettings, model: str) -> list[str]:
    """Audit occupations by whatever the world has, the layout's or not."""
    by = [word for entry in _list_groupings_or_defaults(settings) for word in ("--by", entry)]
    return [
        "table:people.csv",
        "--id",
        "instance_id",
        "--target",
        "occupation",
        "--predictions",
        f"predictions/{model}/occupation.csv",
        "--prediction-column",
        "label",
        *_build_metric_arguments("classification", model),
        "--cluster",
        "household_id",
        *by,
        "--out",
        f"runs/{model}-occupation",
    ]


def _build_grouping_arguments(settings: WorldSettings, layout: LayoutWriter) -> list[str]:
    """List ``--by`` options: the groupings that the layout has, or its first attributes."""
    native_groupings = [
        layout.translate_grouping_or_none(entry) for entry in _list_groupings_or_defaults(settings)
    ]
    groupings = [entry for entry in native_groupings if entry is not None]
    if not groupings and not layout.also:
        groupings = [native.name for native in list(layout.names.values())[:2]]
    by = [word for entry in dict.fromkeys(groupings) for word in ("--by", entry)]
    return [*by, *layout.also]


def _list_groupings_or_defaults(settings: WorldSettings) -> tuple[str, ...]:
    """Give the world's groupings; of a world that names no attribute, two that everyone has."""
    return settings.groupings or ("perceived_gender_presentation", "skin_tone")


def _build_metric_arguments(task: str, model: str) -> tuple[str, ...]:
    """Ask for the metric that is a group's true rate, where there is one, and for that rate."""
    predictor = PREDICTORS[task]
    if not predictor.exact:
        return ("--model-name", model)
    return (
        "--metric",
        predictor.metric,
        "--model-name",
        model,
        "--option",
        "injected=injected.json",
    )


def _find_predictions_path(stage: Path, model: str, task: str) -> str:
    folder = stage / "predictions" / model
    names = sorted(path.name for path in folder.glob(f"{task}*") if ".ids." not in path.name)
    file = next(name for name in names if name.partition(".")[0] == task)
    return f"predictions/{model}/{file}"


def _wrap_command_line(line: str) -> str:
    """Break a command before an option where it is long, as a shell reads on."""
    rows = [""]
    for option in line.split(" --"):
        word = option if not rows[0] else f"--{option}"
        if rows[0] and len(rows[-1]) + len(word) > _WIDTH:
            rows.append("")
        rows[-1] += f" {word}" if rows[-1] else word
    return " \\\n    ".join(rows)


def build_injected_truth(settings: WorldSettings, layout: LayoutWriter) -> dict[str, Any]:
    """Give the true rate of every group and the widest gap of every grouping, model by model."""
    exact = {task: predictor for task, predictor in PREDICTORS.items() if predictor.exact}
    models = {}
    for model in settings.models:
        rows = compute_photo_injected_rates(settings, model).to_dicts()
        groups = [{**row, "in_data": _translate_group_or_none(layout, row)} for row in rows]
        models[model.name] = {
            "groups": groups,
            "widest": build_photo_injected_effects_record(settings, model),
        }
    return {
        "about": "value: the chance that the model is right about one of the group; difference:"
        " to everyone's; widest: of each grouping the two groups that lie farthest apart; in_data:"
        " the group in the words of the data, null where they have none. These are the world's"
        " truths, not this sample's.",
        "world": settings.name,
        "seed": settings.seed,
        "tasks": {k: {"metric": p.metric, "threshold": p.threshold} for k, p in exact.items()},
        "models": models,
    }


def _translate_group_or_none(layout: LayoutWriter, row: Mapping[str, Any]) -> dict[str, Any] | None:
    if row["attribute"] is None:
        return None
    entry = layout.translate_grouping_or_none(row["attribute"])
    if entry is None:
        return None
    return {"attribute": entry, "values": layout.values(row["attribute"], row["values"])}


def format_world_yaml_with_version(settings: WorldSettings, layout: str, *, pixels: bool) -> str:
    """Write the world, with what it was drawn by; ``read_world`` reads it again."""
    from importlib.metadata import version

    packages = ("isolux", "numpy", "polars", "pillow", "simplejpeg")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    painted = "painted" if pixels else "not painted"
    return f"# Drawn by {versions}; layout {layout}, {painted}.\n{format_world_yaml(settings)}"


def build_readme_text(
    settings: WorldSettings,
    name: str,
    layout: LayoutWriter,
    audits: Sequence[str],
    protocol_commands: Sequence[str],
    *,
    pixels: bool,
) -> str:
    """Write README.txt."""
    missing_groupings = [
        e for e in settings.groupings if layout.translate_grouping_or_none(e) is None
    ]
    paragraphs = [
        f"{settings.name}: people who never lived, in the files of {name}.",
        settings.about,
        "data/            " + layout.summary,
        "people.csv       everyone and all that is known of them",
        "predictions/     what simulated models answered",
        "injected.json     the truth: how often each model is right about whom",
        "world.yaml       the world; `isolux synthesize world.yaml --out DIR` draws it again",
        "",
        _AUDIT_THEM if audits else "The world has no model, so there is nothing to audit.",
        "",
        *(f"  {_wrap_command_line(line)}\n" for line in audits),
    ]
    if protocol_commands:
        paragraphs += [
            "By published protocols, whose tables they print:\n",
            *(f"  {_wrap_command_line(line)}\n" for line in protocol_commands),
        ]
    if not pixels:
        paragraphs.append("No picture was painted, so there are no masks and no aligned faces.")
    if missing_groupings:
        entries = ", ".join(missing_groupings)
        paragraphs.append(f"These files have no place for {entries}: audit people.csv by them.")
    if not layout.judges_people:
        paragraphs.append(
            "Photos are judged: a model is right about one if it is about the first in it."
        )
    if any(not native.exact for native in layout.names.values()):
        paragraphs.append(
            "Some values are told apart less finely here than in the world, or seen by annotators"
            " who err: the groups' true rates are then mixtures of those in injected.json."
        )
    return "\n".join(paragraphs) + "\n"
