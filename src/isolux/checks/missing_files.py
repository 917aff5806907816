"""Pictures that an image names and the disk does not hold, and those that nothing names.

The first thing to break when a dataset is copied: an archive that was not unpacked, a folder left
behind. A picture that no image names is often a split that was not asked for, or a leftover.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._image_files import ImageFiles
from isolux.checks._problems import concatenate_problems, make_image_problems, make_problems
from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo

INFO = CheckInfo(
    title="Files there, and files named",
    summary="Pictures that are missing, and pictures on disk that no image names.",
    references=(citations.DATASHEETS.with_location("3.2: is any information missing?"),),
    assumptions=("Only folders that hold a picture of the dataset are searched for others.",),
    needs="files",
)


def check(dataset: Dataset, *, pictures: ImageFiles) -> pl.DataFrame:
    """Compare the images' paths with the files below the root.

    Parameters
    ----------
    dataset : Dataset
    pictures : ImageFiles
        Where the files are.

    Returns
    -------
    polars.DataFrame
        Table ``problems``: a missing file is an error, one that nothing names a warning. Where no
        file at all is there, one error of the whole dataset.

    Examples
    --------
    >>> import tempfile
    >>> from isolux.checks._image_files import locate_images
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one picture",
    ...     info=DatasetInfo(title="One picture", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     images=pl.DataFrame({"image_id": ["1", "2"], "uri": ["1.jpg", "2.jpg"]}),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     from pathlib import Path
    ...     (Path(folder) / "2.jpg").touch()
    ...     check(one, pictures=locate_images(one, folder)).select("problem", "unit_id").rows()
    [('the file is missing', '1')]
    """
    rows = pictures.rows
    missing = rows.filter(pl.col("place").is_in(["missing", "not a file"]))
    hint = "unpack the pictures; or name their folder, --images DIR, or --no-images"
    if missing.height and not (rows["place"] == "file").any():
        dataset_row = pl.DataFrame({"name": [dataset.name]})
        return make_problems(
            "missing_files",
            dataset_row,
            "none of the pictures is there",
            severity="error",
            unit_kind="dataset",
            unit_id="name",
            file=pl.lit(str(pictures.root)),
            expected=f"{missing['uri'][0]!r} below this folder",
            found=f"{missing.height:,} paths without a file",
            hint=hint,
        )
    found_text = pl.when(place="missing").then(pl.lit("nothing")).otherwise(pl.lit("a folder"))
    return concatenate_problems(
        make_image_problems(
            "missing_files", missing, "the file is missing", "error", "a picture", found_text, hint
        ),
        make_problems(
            "missing_files",
            pictures.unlisted.to_frame(),
            "no image names this picture",
            severity="warning",
            unit_kind="file",
            unit_id="uri",
            file="uri",
            expected="an image of the dataset",
            hint="do they belong to another split or release? check before removing anything",
        ),
    )
