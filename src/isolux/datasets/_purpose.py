"""Sets for evaluation alone: they do not feed training, in no case."""

from __future__ import annotations

from isolux.vocabulary.errors import LicenceError
from isolux.vocabulary.info import DatasetInfo


def refuse_training(info: DatasetInfo) -> None:
    """Refuse a dataset whose licence does not let a model be trained on it.

    Examples
    --------
    >>> from isolux.vocabulary.info import Reference
    >>> refuse_training(
    ...     DatasetInfo(
    ...         title="A benchmark",
    ...         summary="An example.",
    ...         references=(Reference("b", "Someone (2024). A benchmark.", url="https://b.org"),),
    ...         licence="evaluation only",
    ...         training_allowed=False,
    ...     )
    ... )
    Traceback (most recent call last):
        ...
    isolux.vocabulary.errors.LicenceError: A benchmark may not be used to train a model
      expected: a dataset whose licence allows training
      found: evaluation only
      where: Someone (2024). A benchmark. https://b.org
      what to do: evaluate with it, and train on other data
    """
    if info.training_allowed is not False:
        return
    said = [info.licence] + ([f'"{info.training_terms}"'] if info.training_terms else [])
    source = info.references[0] if info.references else None
    raise LicenceError(
        f"{info.title} may not be used to train a model",
        expected="a dataset whose licence allows training",
        found=": ".join(said),
        where=info.terms_file or (f"{source.citation} {source.url}".strip() if source else None),
        hint="evaluate with it, and train on other data",
    )
