"""Settings of the people who are judged: where they are, who stays, what else is known of them."""

from __future__ import annotations

from typing import Literal

from isolux.core.spec.stage import SettingsStage, setting


class People(SettingsStage):
    """Who is judged, and how their dataset is read."""

    data: str = setting(..., "what to audit, as NAME:PATH (table:people.csv)", often=True)
    id: str | None = setting(None, "the column that identifies a row")
    separator: str | None = setting(None, "what separates several values in one cell", flag=False)
    sheet: str | None = setting(
        None,
        "for a workbook (xlsx, ods): the sheet with the people; default: the only one",
        flag=False,
    )
    header_row: int | None = setting(
        None,
        "for a workbook: the row with the column names, counted from 1; default: the first",
        ge=1,
        flag=False,
    )
    cluster: str | None = setting(
        None,
        "what was sampled independently, such as subject or household: a word of the dataset, or "
        "a column of the data or of --attributes; two-way clusters as subject,photographer; "
        "default: the dataset's own, or each row",
        often=True,
    )
    only: tuple[str, ...] = setting(
        (), 'who is judged: "age>=20", "race=Black,White", "people_in_image=1"'
    )
    attributes: str | None = setting(
        None, "a table with more attributes of these people, joined by an id that both declare"
    )
    attributes_id: str | None = setting(
        None,
        "the column of --attributes that names people, images or subjects; default: found",
        flag=False,
        needs=("attributes",),
    )
    attributes_sheet: str | None = setting(
        None, "for a workbook: the sheet of --attributes", flag=False, needs=("attributes",)
    )
    attributes_id_from: Literal["column", "basename", "stem"] = setting(
        "column",
        "join --attributes on the whole id, its last path part, or that without its suffix",
        flag=False,
        needs=("attributes",),
    )
    withdrawn: str | None = setting(
        None, "file with the ids of people who withdrew: they and their photos are left out"
    )
    allow_unmatched: bool = setting(
        default=False,
        description="continue even if an id in --withdrawn matches nobody in these data",
        needs=("withdrawn",),
    )
    images: str | None = setting(
        None,
        "the folder of the dataset's pictures, if they are not next to the data",
        needs=("pictures",),
    )
    derive: tuple[str, ...] = setting(
        (), "further attributes to compute: see `isolux list attributes`"
    )
    data_option: tuple[str, ...] = setting(
        (), "a setting specific to the dataset, NAME=VALUE (votes=top)"
    )
    repair_ages: bool = setting(
        default=False,
        description="turn spreadsheet-damaged ages (9-Mar) back into ranges",
        flag=False,
    )
