"""``python -m isolux_worlds.rehearsal``: whoever is needed to build a dataset, simulated.

inbox      what people send in, with injected damage
golden     right answers to the tasks of a stage, for training
review     what a lab's own people see in photos, and what a detector of logos marks
look       the same people fill a sheet of suspects
annotate   simulated annotators answer the open tasks of a stage
predict    a model with an injected disparity looks at the published photos
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isolux.core.errors import IsoluxError

_Inbox = Annotated[Path, typer.Option(help="the folder that `inbox` wrote")]
_Stage = Annotated[str, typer.Option(help="count, boxes, skin_tone, attributes or masks")]
_Photos = Annotated[Path, typer.Option(help="the folder of the published photos")]
_Out = Annotated[Path, typer.Option(help="the file or folder to write")]
app = typer.Typer(help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def inbox(out: _Out, *, photos: int = 600, seed: int = 0, overwrite: bool = False) -> None:
    """Paint what people send in, with its sheets, and the truth beside it."""
    from isolux_worlds.rehearsal import draw_submitted_photos, write_inbox

    submissions = draw_submitted_photos(photos, seed=seed)
    write_inbox(submissions, out, overwrite=overwrite)
    n_faulty = submissions.photos["fault"].count()
    typer.echo(
        f"{photos:,} photos of {submissions.subjects.height:,} people, {n_faulty:,} with a fault"
    )
    typer.echo(f"inbox: {out}")


@app.command()
def golden(project: Path, *, inbox: _Inbox, stage: _Stage, out: _Out, units: int = 12) -> None:
    """Write the right answers to the first open tasks of a stage."""
    from isolux_curate.project.folder import open_project
    from isolux_worlds.rehearsal import build_golden_sheet, list_tasks, read_people

    tasks = list_tasks(open_project(project), stage, read_people(inbox))[:units]
    build_golden_sheet(tasks, stage).write_csv(out)
    typer.echo(f"{len(tasks):,} tasks: {out}")


@app.command()
def review(project: Path, *, inbox: _Inbox, out: _Out, seed: int = 0) -> None:
    """Look at the photos that stand; writes a sheet for each kind of fault, and regions.csv."""
    from isolux_curate.project.folder import open_project
    from isolux_curate.project.queries import read_images
    from isolux_worlds.rehearsal import REVIEWED, read_people, simulate_photo_review
    from isolux_worlds.rehearsal.specialists import (
        mark_bystanders,
        read_photo_faults,
        simulate_logo_detections,
    )

    accepted_ids = read_images(open_project(project))["image_id"].to_list()
    photos = read_photo_faults(inbox)
    out.mkdir(parents=True, exist_ok=True)
    for fault in REVIEWED:
        review_table = simulate_photo_review(photos, accepted_ids, fault, seed=seed)
        if fault == "bystander":
            review_table = mark_bystanders(
                read_people(inbox), photos, review_table["image_id"].to_list()
            )
            review_table.write_csv(out / "regions.csv")
        else:
            review_table.write_csv(out / f"{fault.replace(' ', '_')}.csv")
            accepted_ids = [
                image_id
                for image_id in accepted_ids
                if image_id not in set(review_table["image_id"])
            ]
        typer.echo(f"{fault}: {review_table.height:,}")
    marks = simulate_logo_detections(photos, accepted_ids, seed=seed)
    marks.write_csv(out / "logos.csv")
    typer.echo(f"logos that a detector marked: {marks.height:,}")


@app.command()
def look(sheet: Path, *, inbox: _Inbox, out: _Out, seed: int = 0) -> None:
    """Fill a sheet of `isolux curate suspects` with verdicts, for `isolux curate review`."""
    import polars as pl

    from isolux_worlds.rehearsal.specialists import fill_suspects_sheet

    filled = fill_suspects_sheet(pl.read_csv(sheet, infer_schema=False), inbox, seed=seed)
    filled.write_csv(out)
    typer.echo(f"{filled.height:,} looked at, {filled.filter(verdict='out').height:,} out: {out}")


@app.command()
def annotate(
    project: Path,
    *,
    inbox: _Inbox,
    stage: _Stage,
    out: Annotated[Path | None, typer.Option(help="a table, for `isolux curate answers`")] = None,
    server: Annotated[str | None, typer.Option(help="a Label Studio: everyone signs up")] = None,
    training: bool = False,
    seed: int = 0,
) -> None:
    """Let simulated annotators answer: of a stage with golden tasks, those who graduated."""
    from isolux_worlds.rehearsal.annotator_work import run_annotation_round

    n_answers, n_mistaken = run_annotation_round(
        project, inbox, stage, out=out, server=server, training=training, seed=seed
    )
    typer.echo(f"{n_answers:,} answers, {n_mistaken:,} with a slip")


@app.command()
def predict(objects: Path, *, photos: _Photos, inbox: _Inbox, out: _Out, seed: int = 0) -> None:
    """Let a model with an injected disparity look at published photos."""
    from isolux_worlds.rehearsal.simulated_predictions import predict as predicted

    typer.echo(f"{predicted(objects, photos, inbox, out, seed=seed):,} boxes: {out}")


def main() -> None:
    """Run a command; what went wrong is said in words."""
    try:
        app(standalone_mode=True)
    except IsoluxError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
