"""Dollar Street: photos of the same things in homes of all incomes.

Gapminder's pictures of 54 to 63 countries, in two releases: the one that Fairness Indicators and
Meta's studies of factors use (addresses of photos, labels), and MLCommons' (topics and ImageNet
classes). Photos of one home are alike, so the home is what was sampled. No person is judged here:
what may differ between homes is whether a thing is recognised.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import TableError
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._files import build_recursive_patterns, find_single_file
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._tables import build_clustered_dataset, melt_columns_to_attribute_rows
from isolux.datasets.dollarstreet.releases import read_dollarstreet_photos

INCOME_BUCKETS = ("lowest", "low", "medium", "high", "highest")
"""Names of Fairness Indicators' buckets 0 to 4; its data have 1 to 3, which it calls so."""

_FILES = (
    "images_v2.csv",
    "metadata_full_dollar_street.json",
    "dollarstreet_factors_metadata.csv",
    "metadata.csv",
)

INFO = DatasetInfo(
    title="Dollar Street",
    summary="Photos of everyday things in hundreds of homes; country, region and monthly income.",
    references=(
        Reference(
            key="dollarstreet",
            citation="Gaviria Rojas, W. A., Diamos, S., Kini, K. R., Kanter, D., Janapa Reddi, V.,"
            " & Coleman, C. (2022). The Dollar Street dataset: Images representing the geographic"
            " and socioeconomic diversity of the world. In Advances in Neural Information"
            " Processing Systems 35, Datasets and Benchmarks Track.",
        ),
        Reference(
            key="dollarstreet-recognition",
            citation="De Vries, T., Misra, I., Wang, C., & van der Maaten, L. (2019). Does object"
            " recognition work for everyone? In CVPR Workshops (pp. 52–59).",
            location="the release with addresses of photos",
        ),
    ),
    licence="photos CC BY 4.0 (Gapminder); Meta's table of factors CC BY-NC 4.0",
    training_allowed=True,
    withdrawal="no way for the households shown to withdraw is published",
    label_source="self-reported",
    terms=(
        ("income", "household income, US dollars a month, adjusted for consumption"),
        ("income_bucket", "household income bucket"),
        ("country", "country of the home"),
        ("region", "region of the world"),
        ("household", "the home"),
        ("label", "what the photo shows, by those who took it"),
    ),
    units=(("income", "US dollars a month"),),
    noun="photos",
    assumptions=(
        "homes are independent of one another, photos of one home are not",
        "the model that is judged was not trained on these photos (Fairness Indicators, 3.2)",
        "homes were chosen by photographers; they are not a sample of a country's homes",
    ),
)


def load(
    path: str | Path,
    *,
    household: Literal["country and income", "place"] = "country and income",
    classes: Literal["own", "imagenet1k", "imagenet21k", "imagenet21k-alibaba"] = "own",
    split: Literal["train", "test"] | None = None,
) -> Dataset:
    r"""Load Dollar Street, either release.

    ``cluster`` of ``isolux.load`` may be ``household`` (where not given), ``country``, ``row``,
    or another attribute.

    Parameters
    ----------
    path : str or Path
        The table (``images_v2.csv``, ``metadata_full_dollar_street.json``, the factors'
        ``metadata.csv``), or a folder that holds it; or a table made of MLCommons', with ``id,
        country.name, topics, income``: regions are then looked up by country.
    household : {"country and income", "place"}
        What tells homes apart, as neither release has a sure name for them: the same country and
        income, or the place (MLCommons' column; the folder in a photo's address). They differ by
        a few homes.
    classes : {"own", "imagenet1k", "imagenet21k", "imagenet21k-alibaba"}
        What ``classes`` holds: the release's own labels or topics, or the numbers of ImageNet
        classes that it gives (MLCommons: ``imagenet1k``; the factors' table: the others).
    split : {"train", "test"}, optional
        Of a folder of MLCommons' release: its part with ImageNet classes
        (``images_v2_imagenet_test.csv``).

    Returns
    -------
    Dataset
        ``instances``: a photo, by its address or id, ``classes`` (several are all true of it),
        ``household_id``.
        ``attributes``: ``label`` (one row each), ``income`` (``number``: US dollars a month),
        ``income_bucket`` (round(ln(income) / 3) of Fairness Indicators, section 3.2: ``low``,
        ``medium``, ``high``), ``country``, ``region`` (the same four words in both releases),
        ``household``.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A damaged file, an unknown region, an income that is not a number above 0, a list that
        cannot be read, a photo of two homes; with the row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "metadata.csv"
    ...     _ = file.write_text(
    ...         "country,url,income,region,label\n"
    ...         "Peru,http://x.org/media/Peru%201/image/1.jpg,80.5,The Americas,\"['roofs']\"\n"
    ...     )
    ...     dataset = load(folder)
    >>> dataset.values_of("income_bucket")["value"].item(), dataset.instances["cluster_id"].item()
    ('low', 'Peru, 80.5')
    """
    check_literal_settings(load, household=household, classes=classes, split=split)
    names = (f"images_v2_imagenet_{split}.csv",) if split else _FILES
    file = find_single_file(path, build_recursive_patterns(*names), "Dollar Street table")
    source = str(file)
    release = read_dollarstreet_photos(file, classes)
    photos = _add_household_and_bucket(release.table, household, source)
    attribute_names = ("label", "income", "income_bucket", "country", "region", "household")
    return build_clustered_dataset(
        "dollarstreet",
        INFO,
        instances=photos.select(
            "classes", instance_id="photo", image_id="photo", household_id="household"
        ),
        attributes=melt_columns_to_attribute_rows(photos, "photo", attribute_names),
        images=photos.select(image_id="photo", uri="uri"),
        inputs=release.inputs,
        source=source,
        notes=(*release.notes, *_build_dollarstreet_notes(photos, household)),
        cluster="household",
        clusters={"household": "household_id", "image": "image_id", "row": None},
    )


def _add_household_and_bucket(photos: pl.DataFrame, household: str, source: str) -> pl.DataFrame:
    home = (
        pl.col("place") if household == "place" else pl.format("{}, {}", "country", "income_text")
    )
    with_household = photos.with_columns(household=home)
    n_nameless = with_household["household"].is_null().sum()
    if n_nameless:
        raise TableError(
            f"{n_nameless:,} photo(s) do not say of which home they are",
            expected=f"a {'place' if household == 'place' else 'country'} for each photo",
            where=source,
            hint="household='country and income' tells homes apart by these"
            if household == "place"
            else None,
        )
    # The natural logarithm: only it gives the borders of the paper's Table 5 (groups/binning.py).
    bucket = (pl.col("income").log() / 3.0).round().clip(0, 4).cast(pl.Int64)
    return with_household.with_columns(
        income_bucket=bucket.replace_strict(dict(enumerate(INCOME_BUCKETS)), return_dtype=pl.String)
    )


def _build_dollarstreet_notes(photos: pl.DataFrame, household: str) -> list[str]:
    homes = photos["household"].n_unique()
    explanation = "the release has no sure name for a home"
    notes = [f"{homes:,} homes are distinguished by their {household}: {explanation}."]
    n_without_classes = photos["classes"].is_null().sum()
    if n_without_classes:
        notes.append(
            f"{n_without_classes:,} photo(s) have none of these classes and cannot be judged."
        )
    return notes
