"""Where a picture was taken, approximately: countries and regions that its captions name.

FACET shows the geography of its images so (section 5.4, Figure 5): "inferred from locations
mentioned in the captions", without saying how. Here words of the caption are looked up in a small
list of names (``gazetteer``).

Doubts. A caption names what its writer thought worth naming: a French restaurant stands anywhere,
a Nigerian dancer may dance in London, and pictures from where captions are written are named least
("a man in a street"). The unmatched are therefore not missing at random, and their share is to be
read first. It says nothing about the nationality of the people in the picture.
"""

from __future__ import annotations

import re
from functools import cache

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DerivedInfo, Reference
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.derive._captions import CAPTION
from isolux.derive.caption_places.gazetteer import load_place_tables

INFO = DerivedInfo(
    title="Places in captions",
    summary="Countries and regions that an image's captions name: an approximate geography.",
    references=(
        citations.FACET.with_location("section 5.4, Figure 5"),
        Reference(
            "sdg-regions",
            "United Nations Statistics Division. SDG indicators: regional groupings.",
            "Europe and Northern America are kept apart here",
            "https://unstats.un.org/sdgs/indicators/regional-groups",
        ),
    ),
    assumptions=(
        "A place that a caption names is where the picture was taken, which need not be so.",
        "Names in other languages than English, and of small places, are not found.",
    ),
    attributes=(
        ("caption_country", "approximate: a country that the captions name, by a list of names."),
        ("caption_region", "approximate: the region of the places that the captions name."),
    ),
)

_INITIALS = {"uk", "us", "usa", "uae", "drc"}


def derive(dataset: Dataset) -> pl.DataFrame:
    """Look up the places that captions name.

    Parameters
    ----------
    dataset : Dataset
        With captions: an attribute ``caption`` of images, people or subjects, or a column of that
        name in ``images`` or ``instances``; several of one image count together.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``caption_country`` and ``caption_region`` of each instance, a row for
        each that is named; null where none is (a region alone has no country).

    Raises
    ------
    SpecError
        There are people and no caption.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "2"]}),
    ...     images=pl.DataFrame({"image_id": ["1", "2"],
    ...                          "caption": ["a Kenyan runner in Paris", "french fries"]}),
    ... )
    >>> derive(two).filter(attribute="caption_country").select("unit_id", "value").rows()
    [('a', 'France'), ('a', 'Kenya'), ('b', None)]
    """
    people = INSTANCES.conform(dataset.instances).select("instance_id")
    place_names = _find_places_in_captions(_list_captions_by_person(dataset))
    tables = []
    for attribute, column in (("caption_country", "country"), ("caption_region", "region")):
        named_values = place_names.select("instance_id", value=column).drop_nulls().unique()
        rows = people.join(
            named_values.sort("value"), on="instance_id", how="left", maintain_order="left"
        )
        words = {"unit_kind": "instance", "attribute": attribute}
        literals = [pl.lit(word).alias(name) for name, word in words.items()]
        tables.append(ATTRIBUTES.conform(rows.select("value", *literals, unit_id="instance_id")))
    return pl.concat(tables)


def _list_captions_by_person(dataset: Dataset) -> pl.DataFrame:
    """Gather what captions there are: ``instance_id, text``."""
    people = INSTANCES.conform(dataset.instances)
    tables = [
        dataset.instance_attributes()
        .filter(attribute=CAPTION)
        .select(instance_id="unit_id", text="value")
    ]
    if CAPTION in people.columns:
        tables.append(people.select("instance_id", text=pl.col(CAPTION).cast(pl.String)))
    if CAPTION in dataset.images.columns:
        image_captions = dataset.images.select("image_id", text=pl.col(CAPTION).cast(pl.String))
        person_captions = people.select("instance_id", "image_id").join(
            image_captions, on="image_id"
        )
        tables.append(person_captions.select("instance_id", "text"))
    captions = pl.concat(tables).drop_nulls()
    if captions.is_empty() and people.height:
        raise SpecError(
            "places in captions cannot be computed",
            expected="captions: an attribute or a column of images called 'caption'",
            found="none",
            where=dataset.name,
            hint="isolux describe takes them from a file: --captions FILE",
        )
    return captions


def _find_places_in_captions(captions: pl.DataFrame) -> pl.DataFrame:
    """Find the names in texts: ``instance_id, country, region``, a row a name."""
    any_case, capitalised = load_place_tables()
    all_places = any_case | capitalised
    # Each text once: five people of one image share its captions. Accents are taken off.
    texts = captions.select("text").unique()
    unaccented = pl.col("text").str.normalize("NFKD").str.replace_all(r"\p{M}", "")
    words = texts.select(
        "text",
        name=unaccented.str.replace_all("[’ʼ]", "'").str.extract_all(_build_place_name_pattern()),
    )
    words = words.explode("name").drop_nulls()
    lower_name = pl.col("name").str.to_lowercase().str.replace_all(r"\s+", " ")
    singular = (
        pl.when(lower_name.is_in(list(all_places)))
        .then(lower_name)
        .otherwise(lower_name.str.strip_suffix("s"))
    )
    countries, regions = ({k: v[i] for k, v in all_places.items()} for i in (0, 1))
    name = pl.col("name")
    matches = words.with_columns(name=singular).with_columns(
        country=name.replace_strict(countries, default=None, return_dtype=pl.String),
        region=name.replace_strict(regions, default=None, return_dtype=pl.String),
    )
    return captions.join(matches.select("text", "country", "region"), on="text")


@cache
def _build_place_name_pattern() -> str:
    """Write all names as one expression, longest first: New Mexico is no Mexico."""
    any_case, capitalised = load_place_tables()
    patterns = [(name, f"(?i:{_build_flexible_name_pattern(name)})") for name in any_case]
    patterns += [
        (name, _build_flexible_name_pattern(_capitalise_place_name(name))) for name in capitalised
    ]
    patterns.sort(key=lambda pair: -len(pair[0]))
    return rf"\b(?:{'|'.join(text for _, text in patterns)})[sS]?\b"


def _capitalise_place_name(name: str) -> str:
    return name.upper() if name in _INITIALS else name.title()


def _build_flexible_name_pattern(name: str) -> str:
    return re.escape(name).replace(r"\ ", r"\s+")
