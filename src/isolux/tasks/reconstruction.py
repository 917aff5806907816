"""Face reconstruction: how near a face that a model encoded and decoded is to the original.

FHIBE's task (Xiang et al. 2025, Methods): LPIPS, PSNR and the cosine of face embeddings, for each
face, and the mean by group. The pictures, embeddings of them, or values that another program
measured are read; super-resolution is judged by the same numbers.

The paper's text names the three metrics and no size or formula. The code that its authors released
brings both pictures to 256 × 256 pixels, and so does this by default.
"""

from __future__ import annotations

from collections.abc import Sequence

from isolux.tasks._images.compare import Comparison, Crop
from isolux.tasks._images.judging import Asked, score_pictures
from isolux.tasks._images.metrics import FHIBE, OF_NETWORKS, PICTURES, SAME_PLACE
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.info import TaskInfo

__all__ = ["INFO", "score"]

INFO = TaskInfo(
    predictions="outputs",
    title="Face reconstruction",
    summary="How near each face that a model reconstructed is to the original.",
    references=(FHIBE,),
    assumptions=(
        SAME_PLACE,
        OF_NETWORKS,
        "PSNR also moves with the picture: an even, dark background is reproduced more exactly.",
    ),
    metrics=PICTURES,
    defaults=("lpips", "psnr", "identity_cosine"),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    originals: str | None = None,
    original_embeddings: str | None = None,
    size_px: int = 256,
    crop: Crop = "none",
    crop_outputs: bool = True,
    exif_orientation: bool = True,
    shape_tolerance: float = 0.02,
    error_floor: float = 1e-8,
    lpips_weights: str = "vgg16",
    device: str = "cpu",
    model: str | None = None,
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
    originals : str, optional
        The folder that the dataset's paths begin in. Not given: that of the file that its loader
        read, or one of three above it.
    original_embeddings : str, optional
        A file of the originals' embeddings, by the network that made ``predictions``.
    size_px : int
        Both pictures are brought to squares of this side by a bilinear filter, as in FHIBE's code.
        0: they stay as they are and must be of one size.
    crop : {"none", "face", "box"}
        Compare only what lies in the instance's ``face_box_x, …`` or ``box_x, …``, in pixels of
        the original. FHIBE's face table holds aligned crops, which need none.
    crop_outputs : bool
        The model's pictures are cropped too, at the same place of the picture; no: they are crops
        already.
    exif_orientation : bool
        Turn pictures as their EXIF says; boxes are those of the turned picture.
    shape_tolerance : float
        A picture whose ratio of width to height differs from the original's by a larger share
        than this is not scored.
    error_floor : float
        Added to PSNR's mean squared error (pixels from 0 to 1). 1e-8, as FHIBE's code has it by
        way of PIQ: at most 80 dB. 0: the textbook's formula, by which identical pictures are
        infinite, and null here; leaving out a model's best pictures moves the mean.
    lpips_weights : str
        torchvision's weights of VGG-16, a file; ``"vgg16"``: where PyTorch keeps what torchvision
        fetched. Nothing is downloaded.
    device : str
        Where PyTorch runs LPIPS: ``cpu``, ``cuda``.
    model : str, optional
        What to call the model if there is not one prediction to say so.

    Returns
    -------
    Scores
        ``units``: table ``scores``, one row for each model, metric and instance. ``lpips``: 0 or
        more, **lower is better**; ``psnr``: dB from 0, higher is better; ``ssim`` and
        ``identity_cosine``: −1 to 1, higher is better. Null with the reason "no prediction", "no
        original picture", "no face box" (or "no box"), "box outside the picture", "picture of
        another shape than the original" (or "of another size"), "picture under 16 pixels" (LPIPS;
        11: SSIM), "identical pictures: PSNR is infinite", "no embedding", "embedding of length
        zero" (with "original: " before it if it is the original's), "no value was given".

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
    >>> from isolux.vocabulary.info import DatasetInfo
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
    how = Comparison(
        size_px=size_px,
        crop=crop,
        crop_outputs=crop_outputs,
        exif_orientation=exif_orientation,
        shape_tolerance=shape_tolerance,
        error_floor=error_floor,
    )
    asked = Asked(
        metrics=(metrics,) if isinstance(metrics, str) else tuple(metrics),
        how=how,
        originals=originals,
        original_embeddings=original_embeddings,
        lpips_weights=lpips_weights,
        device=device,
        model=model,
    )
    return score_pictures("reconstruction", INFO, dataset, predictions, asked)
