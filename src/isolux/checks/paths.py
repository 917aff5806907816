"""Paths that lead out of the dataset's folder: absolute, by ``..``, or through a link.

A path is data. One that leaves its folder makes an audit read other people's files, and breaks
wherever the dataset is copied. No such file is opened.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._image_files import ImageFiles
from isolux.checks._problems import concatenate_problems, make_image_problems
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference

INFO = CheckInfo(
    title="Paths inside the root",
    summary=(
        "Paths that are absolute, lead out of the dataset's folder, or follow a link out of it."
    ),
    references=(
        Reference(
            "cwe-22",
            "MITRE. CWE-22: Improper limitation of a pathname to a restricted directory, and"
            " CWE-59: improper link resolution.",
            "",
            "https://cwe.mitre.org/data/definitions/22.html",
        ),
    ),
    needs="files",
)

_PROBLEMS = {
    "absolute": ("the path is absolute", "write it relative to the dataset's folder"),
    "outside": ("the path leaves the dataset's folder", "write it without '..'"),
    "link outside": ("a link leaves the dataset's folder", "copy the file into the folder"),
}


def check(dataset: Dataset, *, pictures: ImageFiles) -> pl.DataFrame:
    """List the paths that lead out of the root.

    Parameters
    ----------
    dataset : Dataset
    pictures : ImageFiles
        Where each path leads.

    Returns
    -------
    polars.DataFrame
        Table ``problems``, all of them errors.

    Examples
    --------
    >>> from isolux.checks._image_files import locate_images
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one picture",
    ...     info=DatasetInfo(title="One picture", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "uri": ["../etc/passwd"]}),
    ... )
    >>> check(one, pictures=locate_images(one, "/data")).select("problem", "unit_id").rows()
    [("the path leaves the dataset's folder", '1')]
    """
    del dataset  # its images' paths are in pictures
    expected, uri_text = "a path below the dataset's folder", pl.col("uri").str.slice(0, 120)
    return concatenate_problems(
        *(
            make_image_problems(
                "paths",
                pictures.rows.filter(place=place_type),
                problem,
                "error",
                expected,
                uri_text,
                hint,
            )
            for place_type, (problem, hint) in _PROBLEMS.items()
        )
    )
