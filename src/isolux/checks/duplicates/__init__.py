"""Photos that are there twice: copied, resized, recompressed, cut at the edges, mirrored.

A photo under two people's names makes one of them wrong; in two splits it is learned and then
tested; in one person's photos it is counted as two observations. Perceptual hashes (phash) name
candidates, and thumbnails laid over one another decide (``kernels.py``): a hash that is
loose enough to find a cut copy also takes two people before one wall for the same photo.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._image_files import ImageFiles
from isolux.checks._problems import Severity, concatenate_problems, make_problems, read_splits
from isolux.checks.duplicates.hashes import (
    MAX_BLOCK_DIFFERENCE,
    MAX_DIFFERING_BITS,
    MIN_CORRELATION,
    find_duplicate_pairs,
)
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import CheckInfo, Reference
from isolux.core.tables import INSTANCES

INFO = CheckInfo(
    title="Duplicate photos",
    summary="Copies and near-copies of a photo, within and across subjects and splits.",
    references=(
        Reference(
            "zauner-phash",
            "Zauner, C. (2010). Implementation and benchmarking of perceptual image hash functions."
            " Diploma thesis, Upper Austria University of Applied Sciences, Hagenberg.",
            "3.2.1: the hash of the discrete cosine transform",
            "https://www.phash.org/docs/pubs/thesis_zauner.pdf",
        ),
        Reference(
            "barz-cifair",
            "Barz, B. and Denzler, J. (2020). Do we train on test data? Purging CIFAR of"
            " near-duplicates. Journal of Imaging 6(6), 41.",
            "near-duplicates between splits, and what they are worth",
            "https://doi.org/10.3390/jimaging6060041",
        ),
    ),
    assumptions=("Two photos of one scene that differ in a few pixels of a thumbnail are copies.",),
    needs="pixels",
)

_ADVICE = "look at both pictures; keep one"


def check(
    dataset: Dataset,
    *,
    pictures: ImageFiles,
    most_bits: int = MAX_DIFFERING_BITS,
    least_correlation: float = MIN_CORRELATION,
    most_apart: float = MAX_BLOCK_DIFFERENCE,
    split: str = "split",
) -> pl.DataFrame:
    """List pictures that are copies of another one.

    Parameters
    ----------
    dataset : Dataset
    pictures : ImageFiles
        Every picture that was looked at, with its thumbnail.
    most_bits : int
        How many of a hash's 64 bits may differ between two candidates. Unrelated pictures differ in
        32; a copy cropped by 5 % in 6 on average and in up to 18.
    least_correlation : float
        Smallest correlation of two thumbnails, one of them cropped so that it fits the other best,
        0 to 1.
    most_apart : float
        Difference of the worst of the thumbnail's 64 parts, in standard deviations of its pixels.
        This distinguishes another person in the same place from a copy.
    split : str
        The attribute, or the column of instances, that names the split.

    Returns
    -------
    polars.DataFrame
        Table ``problems``, a row for each pair; of one picture at most eight earlier copies are
        looked at. Across subjects or across splits: an error; within a subject, or where no
        subject is known: a warning.

    Raises
    ------
    SpecError
        A threshold outside its range.

    References
    ----------
    Zauner (2010), phash. The second stage is isolux's own; docs/methods/checks.md measures both.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from PIL import Image
    >>> from isolux.checks._inspection import inspect_images
    >>> from isolux.checks._image_files import locate_images
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two pictures",
    ...     info=DatasetInfo(title="Two pictures", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "2"],
    ...                             "subject_id": ["s", "t"]}),
    ...     images=pl.DataFrame({"image_id": ["1", "2"], "uri": ["1.png", "2.png"]}),
    ... )
    >>> noise = np.random.default_rng(0).integers(0, 255, (6, 8), dtype=np.uint8)
    >>> large = Image.fromarray(noise).resize((80, 60))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     large.save(Path(folder) / "1.png")
    ...     large.resize((40, 30)).save(Path(folder) / "2.png")
    ...     found = check(two, pictures=inspect_images(locate_images(two, folder)))
    >>> found.select("severity", "problem", "unit_id").row(0)
    ('error', 'one photo is of different subjects', '2')
    """
    if not (0 <= most_bits <= 64 and -1 <= least_correlation <= 1 and most_apart >= 0):
        raise SpecError(
            "a threshold of duplicates is out of its range",
            expected="most_bits 0 to 64, least_correlation -1 to 1, most_apart 0 or more",
            found=f"{most_bits}, {least_correlation}, {most_apart}",
        )
    pairs = find_duplicate_pairs(
        pictures.thumbnails,
        most_bits=most_bits,
        least_correlation=least_correlation,
        most_apart=most_apart,
    )
    if pairs.is_empty():
        return concatenate_problems()
    hashed_images = (
        pictures.rows.drop_nulls("thumbnail").sort("thumbnail").select("image_id", "uri")
    )
    facts = _image_people(dataset, split)
    for copy_column in ("first", "second"):
        image_facts = hashed_images.with_row_index(copy_column).with_columns(
            pl.col(copy_column).cast(pl.Int64)
        )
        image_facts = image_facts.join(facts, on="image_id", how="left")
        renamed = {
            name: f"{copy_column}_{name}" for name in image_facts.columns if name != copy_column
        }
        pairs = pairs.join(
            image_facts.rename(renamed), on=copy_column, how="left", maintain_order="left"
        )
    return concatenate_problems(*_make_problems(pairs))


def _image_people(dataset: Dataset, split: str) -> pl.DataFrame:
    """List the subjects and splits of each image: ``image_id, subjects, splits`` (lists)."""
    people = INSTANCES.conform(dataset.instances)
    splits = read_splits(dataset, split)
    with_splits = people.select("instance_id", "image_id", "subject_id").join(
        splits, on="instance_id", how="left"
    )
    return with_splits.group_by("image_id").agg(
        subjects=pl.col("subject_id").drop_nulls().unique(),
        splits=pl.col("part").drop_nulls().unique(),
    )


def _make_problems(pairs: pl.DataFrame) -> list[pl.DataFrame]:
    def are_disjoint(column: str) -> pl.Expr:
        first, second = pl.col(f"first_{column}"), pl.col(f"second_{column}")
        both_known = (first.list.len() > 0) & (second.list.len() > 0)
        return (both_known & (first.list.set_intersection(second).list.len() == 0)).fill_null(
            value=False
        )

    has_subjects = (
        (pl.col("first_subjects").list.len() > 0) & (pl.col("second_subjects").list.len() > 0)
    ).fill_null(value=False)
    other_subjects, other_splits = are_disjoint("subjects"), are_disjoint("splits")
    mirrored_text = pl.when("mirrored").then(pl.lit(", mirrored")).otherwise(pl.lit(""))
    copy_text = pl.format(
        "a copy of {}{}: {} of 64 bits differ, correlation {}",
        "first_uri",
        mirrored_text,
        "bits",
        pl.col("correlation").round(3),
    )
    problem_types: tuple[tuple[str, Severity, pl.Expr], ...] = (
        ("one photo is of different subjects", "error", other_subjects),
        ("one photo is in different splits", "error", other_splits & ~other_subjects),
        (
            "a subject's photo is there twice",
            "warning",
            has_subjects & ~other_subjects & ~other_splits,
        ),
        ("a photo is there twice", "warning", ~has_subjects & ~other_splits),
    )
    return [
        make_problems(
            "duplicates",
            pairs.filter(test),
            problem,
            severity=severity,
            unit_kind="image",
            unit_id="second_image_id",
            file="second_uri",
            expected="another photo",
            found=copy_text,
            hint=_ADVICE,
        )
        for problem, severity, test in problem_types
    ]
