"""The metrics of generated pictures, and where they are from."""

from __future__ import annotations

from isolux.tasks.generated_images.shares import DISTANCE, ENTROPY, GAP, SHARE
from isolux.vocabulary.info import Metric, Reference, TaskInfo

GREENLAND = Reference(
    "greenland-1988",
    "Greenland, S. (1988). Variance estimation for epidemiologic effect estimates under "
    "misclassification. Statistics in Medicine 7(7), 745-757.",
    "the matrix method",
    "https://doi.org/10.1002/sim.4780070704",
)
BIANCHI = Reference(
    "bianchi-2023",
    "Bianchi, F., Kalluri, P., Durmus, E., Ladhak, F., Cheng, M., Nozza, D., Hashimoto, T., "
    "Jurafsky, D., Zou, J., & Caliskan, A. (2023). Easily accessible text-to-image generation "
    "amplifies demographic stereotypes at large scale. In Proceedings of FAccT 2023.",
    "shares of perceived groups by prompt",
    "https://arxiv.org/abs/2211.03759",
)
CHO = Reference(
    "dall-eval",
    "Cho, J., Zala, A., & Bansal, M. (2023). DALL-Eval: Probing the reasoning skills and social "
    "biases of text-to-image generation models. In Proceedings of ICCV 2023.",
    "section 4.2: distance to a uniform distribution",
    "https://arxiv.org/abs/2202.04053",
)

INFO = TaskInfo(
    title="Generated pictures",
    summary=(
        "Who appears in the pictures that a model generates for a prompt, corrected for the "
        "judge's errors."
    ),
    references=(GREENLAND, BIANCHI, CHO),
    assumptions=(
        "This judges how a generated person is perceived; nobody actually belongs to that group.",
        "The classifier errs here as it did where its matrix was counted, whatever the prompt.",
        "Pictures of a prompt are independent of one another, or clusters say which are not.",
    ),
    metrics=(
        Metric(
            name="share",
            title="Share of pictures",
            definition="Share of pictures of that value, the classifier's errors undone.",
            direction="none",
            evidence="shares",
            statistic=SHARE,
            reference=GREENLAND,
        ),
        Metric(
            name="share_beyond_aim",
            title="Share beyond the aim",
            definition="Share of pictures of that value minus the intended share.",
            direction="none",
            low=-1.0,
            evidence="shares",
            statistic=GAP,
            reference=CHO,
        ),
        Metric(
            name="judged_share",
            title="Share of judgements",
            definition="Share of pictures that were judged to be of that value, errors and all.",
            direction="none",
            reference=BIANCHI,
        ),
        Metric(
            name="entropy",
            title="Evenness of shares",
            definition="Entropy of the shares over that of equal ones: 1 where all values are as "
            "often, 0 where all pictures are of one.",
            direction="none",
            evidence="pictures",
            statistic=ENTROPY,
            pooled=False,
            reference=BIANCHI,
        ),
        Metric(
            name="distance",
            title="Distance to the aim",
            definition="Half the sum of differences between shares and those aimed at: the share "
            "of pictures that would have to be of another value. Above 0 by chance alone.",
            direction="lower",
            high=None,
            evidence="pictures",
            statistic=DISTANCE,
            pooled=False,
            reference=CHO,
        ),
    ),
    defaults=("judged_share", "entropy", "distance"),
    worse="the pictures for {0} are farther from the aim than those for {1}",
)
