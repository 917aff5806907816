"""``isolux sample``: draw a test set with as many people of every combination of attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.output_files import check_output_file
from isolux.cli.streams import print_clean_lines

VERB = "isolux.api.sample:sample"


def sample(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Draw a balanced test set; cells with too few people are taken whole, and listed.

    If the dataset or --cluster names subjects, all of a subject's photos are drawn or none.

    Parameters
    ----------
    data : str
        NAME:PATH, such as fairface:labels.csv.
    out : Path
        The CSV file of ids to write.
    overwrite : bool
        Replace the file.
    """
    from isolux.api.sample import sample as run_sample
    from isolux.cli.table_output import print_table_in_column_blocks
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import to_safe_csv

    check_output_file(out, source=data.partition(":")[2], overwrite=overwrite)
    balanced_sample = run_sample(data, **settings)
    command_output.add_table_to_json("cells", balanced_sample.cells)
    short_cells = balanced_sample.cells.filter(balanced_sample.cells["short"] > 0)
    if short_cells.height:
        print_table_in_column_blocks(f"Short of {settings['per_cell']:,} people", short_cells)
        print_clean_lines()
    for note in balanced_sample.notes:
        command_output.report_note(note)
    short_text = f", {short_cells.height:,} of them short" if short_cells.height else ""
    print_clean_lines(
        f"{balanced_sample.people.height:,} people of {balanced_sample.cells.height:,}"
        f" cells{short_text}"
    )
    command_output.report_file("ids", write_text(out, to_safe_csv(balanced_sample.people)))
