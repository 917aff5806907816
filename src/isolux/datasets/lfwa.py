"""LFWA+: 13,000 photographs of Labeled Faces in the Wild with forty or 73 attributes.

Liu et al. (2015) on the photographs of Huang et al. (2007). Reads ``lfw_att_40.mat`` (MATLAB 7.3,
through h5py; or saved again in an older version, without it) and the parts in its folder. No
picture is opened.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError, format_location
from isolux.core.info import Reference
from isolux.datasets._celeba import CELEBA_INFO, FACE_CLUSTERS
from isolux.datasets._files import (
    Inputs,
    build_recursive_patterns,
    find_first_file_or_none,
    find_single_file,
)
from isolux.datasets._mat.files import read_mat_variables
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import build_clustered_dataset, melt_columns_to_attribute_rows
from isolux.io.refusals import refuse_cells, refuse_repeats

_INDICES_BY_SPLIT = {"train": "indices_img_train", "test": "indices_img_test"}
_INDICES_FILE = "indices_train_test.mat"

INFO = replace(
    CELEBA_INFO,
    title="LFWA+",
    summary="13,000 photographs of Labeled Faces in the Wild; forty or 73 yes-or-no attributes.",
    references=(
        citations.CELEBA,
        Reference(
            key="lfw",
            citation="Huang, G. B., Ramesh, M., Berg, T., & Learned-Miller, E. (2007). Labeled"
            " Faces in the Wild: A database for studying face recognition in unconstrained"
            " environments (Technical Report 07-49). University of Massachusetts, Amherst.",
            url="https://vis-www.cs.umass.edu/lfw/",
        ),
    ),
    assumptions=(
        "the groups come from annotators' judgements, not from what people say about themselves",
        "photographs of one person are not independent: the folder's name says who it is",
    ),
)


def load(
    path: str | Path,
    *,
    labels: Literal["40", "73"] = "40",
    split: Literal["all", "train", "test"] = "all",
) -> Dataset:
    r"""Load LFWA+.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given), ``image``, an
    attribute.

    Parameters
    ----------
    path : str or Path
        The folder with ``lfw_att_40.mat`` (or ``lfw_att_73.mat``) and perhaps
        ``indices_train_test.mat``; or the first of them.
    labels : {"40", "73"}
        Which file of attributes a folder is searched for.
    split : {"all", "train", "test"}
        The part to load; needs the indices unless all are loaded.

    Returns
    -------
    Dataset
        ``instances``: a photograph, ``<person>/<file>`` as id, ``subject_id`` the person's name as
        the folder has it. ``attributes``: by their published names, spaces as ``_``, ``yes`` or
        ``no``; ``split`` with the indices (null: a photograph of neither part).

    Raises
    ------
    FileError, TableError
        A file that is missing or damaged; labels, names and attributes whose numbers disagree; a
        label that is neither yes nor no; a place that there is not. With the row.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import savemat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     variables = {
    ...         "AttrName": np.array(["Male", "Pale Skin"], dtype=object),
    ...         "label": np.array([[0, 1]]),
    ...         "name": np.array(["Ada_L\\Ada_L_0001.jpg"], dtype=object),
    ...     }
    ...     savemat(Path(folder) / "lfw_att_40.mat", variables)
    ...     dataset = load(folder)
    >>> dataset.instances["instance_id"][0], dataset.instances["subject_id"][0]
    ('Ada_L/Ada_L_0001.jpg', 'Ada_L')
    >>> dataset.attributes.select("attribute", "value").rows()
    [('Male', 'no'), ('Pale_Skin', 'yes')]
    """
    check_literal_settings(load, labels=labels, split=split)
    file = find_single_file(
        path, build_recursive_patterns(f"lfw_att_{labels}.mat"), "LFWA attributes"
    )
    inputs, source = Inputs(), str(file)
    variables = read_mat_variables(
        inputs.read(file), source, text_variables=("AttrName", "name"), number_variables=("label",)
    )
    names = _read_lfwa_attribute_names(variables.texts["AttrName"], source)
    photo_names = _read_photo_paths_and_people(variables.texts["name"], source)
    faces = photo_names.hstack(
        _read_yes_no_labels(variables.numbers["label"], photo_names.height, names, source)
    )
    faces = _add_lfwa_split(faces, file.parent, split, inputs)
    split_attributes = ["split"] if faces["split"].is_not_null().any() else []
    n_without_split = faces["split"].null_count() if split_attributes else 0
    prefix = "lfw/" if (file.parent / "lfw").is_dir() else ""
    return build_clustered_dataset(
        "lfwa",
        INFO,
        instances=faces.select(
            instance_id="file", image_id="file", subject_id="who", classes=pl.lit(["face"])
        ),
        attributes=melt_columns_to_attribute_rows(faces, "file", (*names, *split_attributes)),
        images=faces.select(image_id="file", uri=pl.format("{}{}", pl.lit(prefix), "file")),
        inputs=inputs,
        source=source,
        notes=[f"{n_without_split:,} photograph(s) are in neither part."]
        if n_without_split
        else (),
        cluster="subject",
        clusters=FACE_CLUSTERS,
    )


def _read_lfwa_attribute_names(cells: pl.Series, source: str) -> list[str]:
    names = cells.fill_null("").str.strip_chars().str.replace_all(r"\s+", "_")
    problem, expected = "an attribute has no name, or not a unique one", "names, each once"
    if not len(names):
        source = str(format_location(source, column="AttrName"))
        raise TableError(problem, expected=expected, found="no attribute", where=source)
    bad = names.is_duplicated() | (names == "") | names.is_in(["file", "who", "split"])
    refuse_cells(bad, cells, problem, expected, source, column="AttrName")
    return names.to_list()


def _read_photo_paths_and_people(cells: pl.Series, source: str) -> pl.DataFrame:
    """Read the paths of photographs, and the people whom their folders name."""
    paths = cells.fill_null("").str.replace_all("\\", "/", literal=True)
    check_paths_stay_inside(paths, source, "name")
    refuse_cells(
        ~paths.str.contains(r"^[^/]+/[^/]+$"),
        cells,
        "a photograph is not named by person and file",
        "person\\person_0001.jpg",
        source,
        column="name",
    )
    refuse_repeats(paths, "a photograph is listed twice", None, source, "name")
    return pl.DataFrame({"file": paths, "who": paths.str.replace("/.*$", "")})


def _read_yes_no_labels(
    label: npt.NDArray[Any], n: int, names: list[str], source: str
) -> pl.DataFrame:
    """Read 1 as yes and 0 (CelebA writes -1) as no."""
    if label.shape != (n, len(names)):
        raise TableError(
            "labels do not go with names and attributes",
            expected=f"{n:,} rows of {len(names)}",
            found=" × ".join(map(str, label.shape)),
            where=format_location(source, column="label"),
        )
    is_unknown_code = ~np.isin(label, (0, 1, -1))
    if is_unknown_code.any():
        row, column = (int(i) for i in np.argwhere(is_unknown_code)[0])
        raise TableError(
            "a label is neither yes nor no",
            expected="1 (yes), 0 or -1 (no)",
            found=str(label[row, column]),
            where=format_location(source, row + 1, names[column]),
        )
    words = np.where(label == 1, "yes", "no")
    return pl.DataFrame(
        {name: pl.Series(words[:, k].tolist(), dtype=pl.String) for k, name in enumerate(names)}
    )


def _add_lfwa_split(faces: pl.DataFrame, root: Path, split: str, inputs: Inputs) -> pl.DataFrame:
    file = find_first_file_or_none(root, build_recursive_patterns(_INDICES_FILE))
    if file is None:
        if split != "all":
            raise FileError(
                f"the part {split!r} cannot be determined without the indices",
                expected=_INDICES_FILE,
                where=str(root),
            )
        return faces.with_columns(split=pl.lit(None, dtype=pl.String))
    source = str(file)
    variables = read_mat_variables(
        inputs.read(file), source, number_variables=tuple(_INDICES_BY_SPLIT.values())
    )
    codes = np.zeros(faces.height, dtype=np.int64)
    for code, name in enumerate(_INDICES_BY_SPLIT.values(), start=1):
        image_numbers = np.ravel(variables.numbers[name]).astype(np.float64)
        # MATLAB counts from 1.
        bad = ~(
            (image_numbers >= 1)
            & (image_numbers <= faces.height)
            & (image_numbers == np.floor(image_numbers))
        )
        if bad.any():
            row = int(np.argmax(bad))
            raise TableError(
                "an index is of no photograph",
                expected=f"a whole number from 1 to {faces.height:,}",
                found=str(image_numbers[row]),
                where=format_location(source, row + 1, name),
            )
        image_indices = image_numbers.astype(np.int64) - 1
        if (codes[image_indices] != 0).any():
            raise TableError(
                "a photograph is in both parts",
                found=repr(faces["file"][int(image_indices[np.argmax(codes[image_indices] != 0)])]),
                where=format_location(source, column=name),
            )
        codes[image_indices] = code
    split_names = pl.Series("split", [None, *_INDICES_BY_SPLIT], dtype=pl.String).gather(codes)
    with_splits = faces.with_columns(split_names)
    selected = with_splits if split == "all" else with_splits.filter(split=split)
    if selected.is_empty():
        raise FileError(f"no photograph is in the part {split!r}", where=source)
    return selected
