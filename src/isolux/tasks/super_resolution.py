"""Super-resolution: how close a face that a model enlarged is to the original.

FHIBE's task (Xiang et al. 2025, Methods): LPIPS between the original and the model's output for a
reduced copy of it. PSNR and SSIM, which papers on face restoration also report, and the cosine
of face embeddings are measured when named.

The released code resizes both images to 256 × 256 pixels, though the model's have 512, which
averages away much of what super-resolution adds. It is the default, for comparability;
``size_px=0`` compares the images in their own size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from isolux.core.containers import Dataset, Scores
from isolux.core.info import TaskInfo
from isolux.tasks._images.evaluation import score_images
from isolux.tasks._images.metrics import (
    ALIGNMENT_ASSUMPTION,
    FHIBE,
    IMAGE_METRICS,
    NETWORK_ASSUMPTION,
)
from isolux.tasks._images.settings import ImageComparisonSettings

INFO = TaskInfo(
    predictions="outputs",
    judges_images=True,
    title="Face super-resolution",
    summary="How close each face that a model made from a reduced copy is to the original.",
    references=(FHIBE,),
    assumptions=(
        ALIGNMENT_ASSUMPTION,
        NETWORK_ASSUMPTION,
        "Every copy was reduced alike: how, the dataset does not say.",
    ),
    # FHIBE reports LPIPS alone for this task (Methods, narrow model evaluation metrics).
    metrics=IMAGE_METRICS,
    defaults=("lpips",),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    **pictures: Unpack[ImageComparisonSettings],
) -> Scores:
    """Hold each person's picture that one or several models made against the original.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances; ``uri`` of their images leads to the originals, which were not
        reduced.
    predictions : frame
        As in reconstruction: pictures, embeddings of them, or values computed elsewhere.
    metrics : sequence of str
        ``lpips``, ``psnr``, ``ssim`` of pictures; ``identity_cosine`` of embeddings; any of values.
        Default: of pictures LPIPS; of values those that are there.
    **pictures
        The settings of ``ImageComparisonSettings``, as in reconstruction.

    Returns
    -------
    Scores
        ``units``: table ``scores``, as in reconstruction, with the same ranges, directions (LPIPS:
        **lower is better**) and reasons.

    Raises
    ------
    SpecError, UnknownNameError, FileError, TableError, JoinError
        As in reconstruction.

    Examples
    --------
    An even grey of 100 and a picture of it that is 51 of 255 lighter: 13.98 dB.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> from PIL import Image
    >>> from isolux.core.info import DatasetInfo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, grey in (("original", 100), ("made", 151)):
    ...         Image.new("RGB", (16, 16), (grey,) * 3).save(Path(folder) / f"{name}.png")
    ...     person = Dataset(
    ...         name="one",
    ...         info=DatasetInfo(title="One", summary="An example.", references=()),
    ...         instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...         images=pl.DataFrame({"image_id": ["1"], "uri": ["original.png"]}),
    ...     )
    ...     made = pl.DataFrame(
    ...         {"model": ["m"], "instance_id": ["1"], "uri": [str(Path(folder) / "made.png")]}
    ...     )
    ...     found = score(person, made, metrics=["psnr"], originals=folder)
    >>> found.units["value"].round(2).to_list()
    [13.98]
    """
    # The same measurement as reconstruction: only the declared defaults differ.
    return score_images("super_resolution", INFO, dataset, predictions, metrics, **pictures)
