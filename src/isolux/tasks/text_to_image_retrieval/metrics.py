"""The metrics of text-to-image retrieval, and the papers that they are from."""

from __future__ import annotations

from functools import partial

from isolux.vocabulary.info import Metric, Reference, TaskInfo

GEYIK = Reference(
    "geyik-2019",
    "Geyik, S. C., Ambler, S., & Kenthapadi, K. (2019). Fairness-aware ranking in search & "
    "recommendation systems with application to LinkedIn talent search. In Proceedings of the 25th "
    "ACM SIGKDD International Conference on Knowledge Discovery & Data Mining (pp. 2221–2231).",
    "section 3.2: Skew@k, MinSkew@k, MaxSkew@k, NDKL",
    "https://arxiv.org/abs/1905.01989",
)
BERG = Reference(
    "berg-2022",
    "Berg, H., Hall, S. M., Bhalgat, Y., Yang, W., Kirk, H. R., Shtedritski, A., & Bain, M. "
    "(2022). A prompt array keeps the bias away: Debiasing vision-language models with adversarial "
    "learning. In Proceedings of AACL-IJCNLP 2022.",
    "section 3",
    "https://arxiv.org/abs/2203.11933",
)
WANG = Reference(
    "wang-2021-queries",
    "Wang, J., Liu, Y., & Wang, X. E. (2021). Are gender-neutral queries really gender-neutral? "
    "Mitigating gender bias in image search. In Proceedings of EMNLP 2021.",
    "section 3: Bias@K",
    "https://arxiv.org/abs/2109.05433",
)
HALL = Reference(
    "visogender",
    "Hall, S. M., Gonçalves Abrantes, F., Zhu, H., Sodunke, G., Shtedritski, A., & Kirk, H. R. "
    "(2023). VisoGender: A dataset for benchmarking gender bias in image-text pronoun resolution. "
    "In Advances in Neural Information Processing Systems 36, Datasets and Benchmarks.",
    "section 3: retrieval bias",
    "https://arxiv.org/abs/2306.12424",
)

_skew = partial(Metric, direction="lower", low=None, high=None, unit="nats", reference=GEYIK)

INFO = TaskInfo(
    predictions="outputs",
    title="Text-to-image retrieval",
    summary="Who appears in the first K images of a text search.",
    references=(GEYIK, BERG, WANG, HALL),
    assumptions=(
        "Queries name no group: for one that does, the shares should differ.",
        "Intervals are about other queries like these, the images being given.",
        "A group that is not among the first K counts as one image there, unless it is left out.",
    ),
    metrics=(
        _skew(
            name="max_skew_beyond_chance",
            title="Largest skew beyond chance",
            definition="MaxSkew@K less what it is on average when the query's images are in random "
            "order, with the same ties; 0 where the order has nothing to do with the attribute.",
            at="among the first",
        ),
        _skew(
            name="max_skew_at_k",
            title="Largest skew (MaxSkew)",
            definition="Largest skew of any value among the first K images: log of its share over "
            "its expected share. Never below 0 where shares add up to 1, and above it by chance "
            "alone.",
            at="among the first",
        ),
        _skew(
            name="skew_at_k",
            title="Skew",
            definition="Log of a value's share of the first K images over its expected share; 0.69 "
            "is twice as many as expected, -0.69 half.",
            direction="none",
            at="among the first",
        ),
        _skew(
            name="min_skew_at_k",
            title="Smallest skew (MinSkew)",
            definition="Smallest skew of any value among the first K images.",
            direction="higher",
            at="among the first",
        ),
        _skew(
            name="ndkl",
            title="NDKL",
            definition="Divergence of every top i of the list from the expected shares, weighed by "
            "1 / log2(i + 1). Above 0 by chance alone.",
            low=0.0,
        ),
        _skew(
            name="ndkl_beyond_chance",
            title="NDKL beyond chance",
            definition="NDKL less what it is on average when the images are in random order.",
        ),
        Metric(
            name="bias_at_k",
            title="Bias",
            definition="Images of the first value minus those of the second, divided by both, "
            "among the first K; 0 if there is neither.",
            direction="none",
            low=-1.0,
            reference=WANG,
            at="among the first",
        ),
    ),
    defaults=("max_skew_beyond_chance", "max_skew_at_k", "skew_at_k"),
)
