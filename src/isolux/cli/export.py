"""``isolux export``: people and scores in FiftyOne's format, or a model's output as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from isolux.cli import command_output
from isolux.cli.output_files import check_output_file
from isolux.cli.streams import print_clean_lines
from isolux.core import registry
from isolux.core.plugin_options import list_keyword_defaults, select_used_settings
from isolux.io.frames import FORMATS

if TYPE_CHECKING:
    import polars as pl

    from isolux.core.containers import Dataset

_FORMAT_FLAGS = {
    "fiftyone": ("images", "masks", "withdrawn", "allow_unmatched", "publish_min", "data_option"),
    "parquet": ("format", "model_name", "prediction_option", "overwrite"),
}
"""The flags of each format beside --out."""
_VIEW_HINT = """to look at them:
  pip install fiftyone
  python -c 'import sys, fiftyone as fo
  seen = fo.Dataset.from_dir(sys.argv[1], fo.types.FiftyOneDataset)
  seen.add_dynamic_sample_fields(); fo.launch_app(seen).wait()' {folder}"""


def export(
    data: str,
    *,
    out: Path,
    to: Literal["fiftyone", "parquet"] = "fiftyone",
    images: Path | None = None,
    masks: bool = True,
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    publish_min: int = 0,
    data_option: Sequence[str] = (),
    format: str | None = None,  # noqa: A002  (the flag is called --format)
    model_name: str | None = None,
    prediction_option: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Export people and their scores for FiftyOne, or a model's output in any format as Parquet.

    From a run, this exports everybody who was judged, their attributes (computed ones too), and
    each score as a field, so that you can sort by score and filter by group. Pictures stay where
    they are. With --to parquet, DATA is a model's output: its boxes, masks, keypoints, embeddings
    or labels are written as a table that loads at once.

    Parameters
    ----------
    data : str
        A run directory, whose scores are included; or NAME:PATH; or a model's output.
    out : Path
        The folder to make, or the Parquet file to write.
    to : {"fiftyone", "parquet"}
        The format to write.
    images : Path, optional
        The folder of the pictures, which the export then refers to.
    masks : bool
        Write masks.
    withdrawn : str, optional
        File with the ids of people who withdrew: left out.
    allow_unmatched : bool
        Continue even if an id in that file matches nobody.
    publish_min : int
        Withhold the attributes of people who share all their attributes with fewer than this many
        people; 0: nothing is withheld.
    data_option : sequence of str
        For NAME:PATH: a setting specific to the dataset, NAME=VALUE.
    format : str, optional
        Of a model's output: one of `isolux list formats`; default: recognised.
    model_name : str, optional
        Of a model's output: the model's name; default: the name in the file, or else the file's.
    prediction_option : sequence of str
        Of a model's output: a setting specific to the format, NAME=VALUE.
    overwrite : bool
        Replace the Parquet file.
    """
    select_used_settings(
        list_keyword_defaults(export), locals(), ("out", "to", *_FORMAT_FLAGS[to]), f"--to {to}"
    )
    if to == "parquet":
        check_output_file(out, endings=FORMATS["parquet"], source=data, overwrite=overwrite)
        _export_predictions(data, out, format, model_name, prediction_option)
        return
    from isolux.api.publish import suppress_revealing_scores, suppress_small_groups
    from isolux.core.spec import parse_spec
    from isolux.io.atomic import refuse_existing
    from isolux.people.loading import load_people

    save_dataset = registry.load("datasets", to).save
    consent = {"withdrawn": withdrawn, "allow_unmatched": allow_unmatched}
    refuse_existing(out, overwrite=False)
    if Path(data).expanduser().is_dir():
        dataset, scores, target = _load_people_and_scores(data, list(data_option), consent)
    else:
        people_settings = {"data": data, "data_option": list(data_option), **consent}
        dataset, scores, target = load_people(parse_spec(people_settings).people), None, None
    if publish_min:
        full_dataset, dataset = dataset, suppress_small_groups(dataset, publish_min)
        if scores is not None:
            scores = suppress_revealing_scores(scores, full_dataset, dataset, target)
    folder = save_dataset(dataset, out, images=images, scores=scores, masks=masks)
    people = dataset.instances
    summary_text = f"{people.height:,} people of {people['image_id'].n_unique():,} images"
    if scores is not None:
        n = scores.select("model", "metric", "label", "threshold").n_unique()
        summary_text += f", {n:,} score(s) each"
    print_clean_lines(summary_text)
    command_output.report_file(to, folder)
    print_clean_lines(
        *_VIEW_HINT.splitlines()[:-1], _VIEW_HINT.splitlines()[-1].format(folder=folder)
    )


def _export_predictions(
    path: str, out: Path, format_name: str | None, model: str | None, options: Sequence[str]
) -> None:
    """Write a model's output as Parquet, and say how much it is."""
    from isolux.core.plugin_options import parse_option_assignments
    from isolux.io.atomic import write_parquet
    from isolux.predictions import detect_output_format, read_labels, read_predictions

    format_name = format_name or detect_output_format(path)
    plugin = registry.load("predictions", format_name)
    settings = parse_option_assignments(
        read_labels if format_name in FORMATS else plugin.read,
        options,
        owner=f"the format {format_name}",
        flag="--prediction-option",
        hidden=("model", "format"),
    )
    frame = read_predictions(path, format=format_name, model=model, **settings)
    target = write_parquet(out, frame)
    column, units = (
        ("image_id", "images") if "image_id" in frame.columns else ("instance_id", "units")
    )
    models = ", ".join(["", *frame["model"].unique(maintain_order=True).to_list()[:5]])
    print_clean_lines(f"{frame.height:,} rows of {frame[column].n_unique():,} {units}{models}")
    command_output.report_file("predictions", target)


def _load_people_and_scores(
    path: str, options: list[str], consent: dict[str, Any]
) -> tuple[Dataset, pl.DataFrame, str | None]:
    """Load a run's people again, its scores of people, and the name of the truth's attribute."""
    import polars as pl

    from isolux.core.counts import refuse_count_tables
    from isolux.core.errors import SpecError
    from isolux.core.spec import read_recorded_spec
    from isolux.io import run_directory
    from isolux.people.loading import load_audit_people

    if options:
        raise SpecError("a run says how its dataset is loaded", found="--data-option", where=path)
    run = run_directory.load_run(path)
    refuse_count_tables(run.evidence, "an export", "a run of people, named by their ids")
    recorded_settings = run.record.get("spec") or {}
    if ":" not in str(recorded_settings.get("data") or ""):
        raise SpecError(
            "this run does not say which dataset it is about",
            expected="a run of `isolux audit NAME:PATH`",
            found=repr(recorded_settings.get("data")),
            where=path,
        )
    spec = read_recorded_spec(run.record)
    if consent["withdrawn"] is not None:
        spec = spec.model_copy(update={"people": spec.people.model_copy(update=consent)})
    dataset = load_audit_people(spec)
    scores = run.scores.filter(unit_kind="instance")
    # People withdrawn before the run are in none of its tables; later ones not in the dataset.
    tables = [scores, *(t for t in run.evidence.values() if "unit_id" in t.columns)]
    scored_ids = pl.concat([t.select("unit_id") for t in tables])["unit_id"].unique()
    people = dataset.instances.filter(pl.col("instance_id").is_in(scored_ids.implode()))
    image_ids = people["image_id"].unique().implode()
    dataset_attributes = dataset.attributes["attribute"].unique().implode()
    person_ids = people["instance_id"].implode()
    computed = run.attributes.filter(
        ~pl.col("attribute").is_in(dataset_attributes), pl.col("unit_id").is_in(person_ids)
    )
    scores = scores.filter(pl.col("unit_id").is_in(person_ids))
    exported = replace(
        dataset,
        instances=people,
        images=dataset.images.filter(pl.col("image_id").is_in(image_ids)),
        attributes=pl.concat([dataset.attributes, computed], how="diagonal_relaxed"),
    )
    return exported, scores, recorded_settings.get("target")
