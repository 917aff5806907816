"""Metrics of generated images: direction, range and reference.

Lower is better only for LPIPS: without its direction a reader of a table of these numbers would
take its best group for the worst.
"""

from __future__ import annotations

from isolux.core import citations
from isolux.core.info import Metric, Reference

ALIGNMENT_ASSUMPTION = (
    "A model's picture shows what the original shows, in the same place: neither is aligned."
)
NETWORK_ASSUMPTION = (
    "LPIPS and embeddings come from networks that may themselves work unequally well for groups."
)

FHIBE = citations.FHIBE.with_location("Methods, narrow model evaluation metrics")
LPIPS = citations.LPIPS.with_location("section 3, equation 1")
PIQ = Reference(
    "piq",
    "Kastryulin, S., Zakirov, J., Prokopenko, D., & Dylov, D. V. (2022). PyTorch Image Quality:"
    " Metrics for image quality assessment. arXiv:2208.14818.",
    "psnr: 1e-8 is added to the mean squared error",
    "https://arxiv.org/abs/2208.14818",
)
SSIM = Reference(
    "ssim",
    "Wang, Z., Bovik, A. C., Sheikh, H. R., & Simoncelli, E. P. (2004). Image quality assessment:"
    " From error visibility to structural similarity. IEEE Transactions on Image Processing, 13(4),"
    " 600–612.",
    "equation 13; an 11 × 11 window of standard deviation 1.5",
    "https://doi.org/10.1109/TIP.2003.819861",
)
CURRICULAR_FACE = Reference(
    "curricularface",
    "Huang, Y., Wang, Y., Tai, Y., Liu, X., Shen, P., Li, S., Li, J., & Huang, F. (2020)."
    " CurricularFace: Adaptive curriculum learning loss for deep face recognition. In Proceedings"
    " of the IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)"
    " (pp. 5901–5910).",
    "the network whose embeddings FHIBE compares",
    "https://arxiv.org/abs/2004.00288",
)

IMAGE_METRICS = (
    Metric(
        name="lpips",
        title="Perceptual distance",
        definition="Distance of the model's picture to the original in the features of VGG-16;"
        " lower is better.",
        # The only one of the four where lower is better.
        direction="lower",
        low=0.0,
        high=None,
        unit="LPIPS",
        reference=LPIPS,
    ),
    Metric(
        name="psnr",
        title="Peak signal-to-noise ratio",
        definition="Ten times the logarithm of one over the mean squared difference of the pixels,"
        " which run from 0 to 1.",
        direction="higher",
        low=0.0,
        high=None,
        # On a scale of decibels, a difference of 3 dB is a factor of 2 in squared error.
        unit="dB",
        reference=PIQ,
    ),
    Metric(
        name="ssim",
        title="Structural similarity",
        definition="Likeness of means, contrasts and patterns in windows of 11 × 11 pixels,"
        " averaged over windows and colours.",
        direction="higher",
        # Negative for images whose patterns are inverted; such values are rare but valid.
        low=-1.0,
        high=1.0,
        unit="SSIM",
        reference=SSIM,
    ),
    Metric(
        name="identity_cosine",
        title="Identity kept",
        definition="Cosine between the face embeddings of the model's picture and of the original;"
        " 1 is the same direction.",
        direction="higher",
        low=-1.0,
        high=1.0,
        unit="cosine",
        reference=CURRICULAR_FACE,
    ),
)

PIXEL_METRICS = ("lpips", "psnr", "ssim")
"""Metrics that are computed from the pixels of two images."""
