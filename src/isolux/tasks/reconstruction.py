"""Face reconstruction: how close a face that a model encoded and decoded is to the original.

FHIBE's task (Xiang et al. 2025, Methods): LPIPS, PSNR and the cosine of face embeddings, for each
face, and the mean by group. The input is the images, embeddings of them, or values that another
program measured; super-resolution has the same metrics.

The paper names the three metrics without size or formula. Its released code resizes both images to
256 × 256 pixels, which is the default here.
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
    title="Face reconstruction",
    summary="How close each face that a model reconstructed is to the original.",
    references=(FHIBE,),
    # PSNR depends on the content of the image, so groups may differ without a difference of models.
    assumptions=(
        ALIGNMENT_ASSUMPTION,
        NETWORK_ASSUMPTION,
        "PSNR also moves with the picture: an even, dark background is reproduced more exactly.",
    ),
    metrics=IMAGE_METRICS,
    # The three metrics that FHIBE reports for this task.
    defaults=("lpips", "psnr", "identity_cosine"),
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
        Units are its instances; ``uri`` of their images leads to the originals.
    predictions : frame
        ``model``, ``instance_id`` (of a person or an image, with or without folder and suffix)
        and one of three kinds: ``uri``, the path of a picture; ``embedding``, a vector; or
        ``metric`` and ``value``, computed elsewhere. Everyone in an image is given its picture.
    metrics : sequence of str
        ``lpips``, ``psnr``, ``ssim`` of pictures; ``identity_cosine`` of embeddings; any of values.
        Default: of pictures LPIPS and PSNR; of values those that are there.
    **pictures
        Where the originals are, and how two pictures are made comparable and measured:
        ``originals``, ``original_embeddings``, ``size_px``, ``crop``,
        ``lpips_weights``, ``device`` and ``model``, described in ``ImageComparisonSettings``.

    Returns
    -------
    Scores
        ``units``: table ``scores``, one row for each model, metric and instance. ``lpips``: 0 or
        more, **lower is better**; ``psnr``: dB from 0, higher is better; ``ssim`` and
        ``identity_cosine``: −1 to 1, higher is better. Null with the reason "no prediction", "no
        original picture", "no face box" (or "no box"), "box outside the picture", "picture of
        another shape than the original" (or "of another size"), "picture under 16 pixels" (LPIPS;
        11: SSIM), "no embedding", "embedding of length zero" (with "original: " before it if it
        is the original's), "no value was given".

    Raises
    ------
    SpecError, UnknownNameError
        A setting or metric that cannot be; no original is found; PyTorch is not installed.
    FileError
        A picture or file of weights that is damaged or gone.
    TableError, JoinError
        Values outside a metric's range; predictions whose ids are not in the dataset.

    Examples
    --------
    Values that another program measured; the second person was given no picture.

    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two",
    ...     info=DatasetInfo(title="Two", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "2"]}),
    ... )
    >>> values = pl.DataFrame(
    ...     {"model": "m", "instance_id": ["a"], "metric": ["lpips"], "value": [0.2]}
    ... )
    >>> score(people, values).units.select("metric", "unit_id", "value", "reason").rows()
    [('lpips', 'a', 0.2, None), ('lpips', 'b', None, 'no prediction')]
    """
    return score_images("reconstruction", INFO, dataset, predictions, metrics, **pictures)
