"""What was sampled independently: a loader's own default, or the column that a user names."""

from __future__ import annotations

from collections.abc import Mapping

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import UnknownNameError

__all__ = ["clustered_as"]


def clustered_as(
    dataset: Dataset, cluster: str | None, *, default: str | None, names: Mapping[str, str | None]
) -> Dataset:
    """Return the dataset with ``cluster_id`` filled.

    Parameters
    ----------
    dataset : Dataset
        Its instances and attributes.
    cluster : str or None
        One of ``names``, a column of instances or an attribute; None: ``default``.
    default : str or None
        The key of ``names`` to take where the user names nothing.
    names : mapping of str to str or None
        The field's word (``"frame"``) to a column (``"image_id"``); None: rows are clusters.

    Raises
    ------
    UnknownNameError
        For a word that is neither.
    """
    chosen = default if cluster is None else cluster
    if chosen is None:
        return dataset.clustered_by(None)
    column = names.get(chosen, chosen)
    attributes = dataset.attributes["attribute"].unique().to_list()
    if column is not None and column not in {*dataset.instances.columns, *attributes}:
        raise UnknownNameError("cluster", chosen, [*names, *attributes], where=dataset.name)
    return dataset.clustered_by(column if dataset.instances.height else None)
