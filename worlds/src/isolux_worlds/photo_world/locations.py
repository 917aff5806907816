"""Where homes are, and what they earn: countries' approximate centres, and incomes by group.

Regions are Dollar Street's four. Incomes of a group are a log-normal cut off at the group's ends:
the least and the most that Dollar Street's homes have, and between them the borders of the
buckets round(ln(income) / 3) of Fairness Indicators.

References
----------
.. [1] Gaviria Rojas, W. et al. (2022). The Dollar Street Dataset. NeurIPS Datasets and Benchmarks.
.. [2] Goyal, P. et al. (2022). Fairness Indicators for Systematic Assessments of Visual Feature
   Extractors. FAccT, section 3.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isolux_worlds._random_streams import FloatArray, IntArray, build_named_rng

__all__ = [
    "COUNTRIES",
    "INCOMES",
    "PLACE_VALUES",
    "REGIONS",
    "Country",
    "draw_country_and_coordinates",
    "draw_monthly_incomes_usd",
]


@dataclass(frozen=True, slots=True)
class Country:
    """A country, its two letters, its region, about where its middle lies (degrees); FHIBE's words.

    ``ancestry`` and ``nationality`` are FHIBE's answers, with their numbers.
    """

    name: str
    code: str
    region: str
    latitude: float
    longitude: float
    ancestry: str
    nationality: str = "225. Not listed"


COUNTRIES = (
    Country("Burkina Faso", "bf", "af", 12.2, -1.6, "5. Western Africa", "31. Burkinan"),
    Country("Cameroon", "cm", "af", 5.7, 12.7, "3. Middle Africa", "35. Cameroonian"),
    Country("Egypt", "eg", "af", 26.8, 30.0, "1. Northern Africa", "62. Egyptian"),
    Country("Ethiopia", "et", "af", 9.1, 39.6, "2. Eastern Africa", "68. Ethiopian"),
    Country("Ghana", "gh", "af", 7.9, -1.0, "5. Western Africa", "78. Ghanaian"),
    Country("Kenya", "ke", "af", 0.5, 37.9, "2. Eastern Africa", "105. Kenyan"),
    Country("Malawi", "mw", "af", -13.3, 34.3, "2. Eastern Africa", "122. Malawian"),
    Country("Nigeria", "ng", "af", 9.1, 8.1, "5. Western Africa", "146. Nigerian"),
    Country("Rwanda", "rw", "af", -2.0, 29.9, "2. Eastern Africa", "168. Rwandan"),
    Country("South Africa", "za", "af", -29.0, 25.1, "4. Southern Africa", "184. South African"),
    Country("Tunisia", "tn", "af", 34.1, 9.6, "1. Northern Africa", "206. Tunisian"),
    Country("Argentina", "ar", "am", -35.4, -65.2, "9. South America", "8. Argentine"),
    Country("Bolivia", "bo", "am", -16.7, -64.7, "9. South America", "23. Bolivian"),
    Country("Brazil", "br", "am", -10.8, -53.1, "9. South America", "26. Brazilian"),
    Country("Canada", "ca", "am", 56.1, -106.3, "10. Northern America", "36. Canadian"),
    Country("Colombia", "co", "am", 3.9, -73.1, "9. South America", "43. Colombian"),
    Country("Guatemala", "gt", "am", 15.7, -90.4, "8. Central America"),
    Country("Haiti", "ht", "am", 18.9, -72.7, "7. Caribbean"),
    Country("Mexico", "mx", "am", 23.9, -102.5, "8. Central America", "131. Mexican"),
    Country("Peru", "pe", "am", -9.2, -74.4, "9. South America", "159. Peruvian"),
    Country("United States", "us", "am", 39.8, -98.6, "10. Northern America", "3. American"),
    Country("Bangladesh", "bd", "as", 23.8, 90.3, "15. Southern Asia", "15. Bangladeshi"),
    Country("Cambodia", "kh", "as", 12.7, 104.9, "14. South-eastern Asia", "34. Cambodian"),
    Country("China", "cn", "as", 36.6, 103.8, "13. Eastern Asia", "42. Chinese"),
    Country("India", "in", "as", 22.9, 79.6, "15. Southern Asia", "93. Indian"),
    Country("Indonesia", "id", "as", -2.2, 117.2, "14. South-eastern Asia", "94. Indonesian"),
    Country("Jordan", "jo", "as", 31.3, 36.8, "16. Western Asia", "103. Jordanian"),
    Country("Nepal", "np", "as", 28.2, 83.9, "15. Southern Asia", "143. Nepalese"),
    Country("Pakistan", "pk", "as", 29.9, 69.3, "15. Southern Asia", "153. Pakistani"),
    Country("Philippines", "ph", "as", 11.8, 122.9, "14. South-eastern Asia", "71. Filipino"),
    Country("South Korea", "kr", "as", 36.4, 127.8, "13. Eastern Asia", "185. South Korean"),
    Country("Vietnam", "vn", "as", 16.6, 106.3, "14. South-eastern Asia", "218. Vietnamese"),
    Country("Denmark", "dk", "eu", 56.0, 10.0, "19. Northern Europe", "55. Danish"),
    Country("France", "fr", "eu", 46.6, 2.5, "21. Western Europe", "73. French"),
    Country("Italy", "it", "eu", 42.8, 12.1, "20. Southern Europe", "99. Italian"),
    Country("Netherlands", "nl", "eu", 52.1, 5.3, "21. Western Europe", "59. Dutch"),
    Country("Romania", "ro", "eu", 45.9, 25.0, "18. Eastern Europe", "166. Romanian"),
    Country("Serbia", "rs", "eu", 44.2, 20.8, "20. Southern Europe", "176. Serbian"),
    Country("Spain", "es", "eu", 40.2, -3.6, "20. Southern Europe", "187. Spanish"),
    Country("Sweden", "se", "eu", 62.8, 16.7, "19. Northern Europe", "195. Swedish"),
    Country("Ukraine", "ua", "eu", 49.0, 31.4, "18. Eastern Europe", "212. Ukrainian"),
)
"""Real countries: names and letters of ISO 3166, centres to about a degree."""

REGIONS = ("af", "am", "as", "eu")
"""Africa, the Americas, Asia, Europe."""

_INCOME_RANGE = (27.0, 10_098.0)  # US dollars a month: all of Dollar Street's homes lie between
_BORDERS = (math.exp(4.5), math.exp(7.5))
INCOMES: Mapping[str, tuple[float, float]] = {
    "low": (_INCOME_RANGE[0], _BORDERS[0]),
    "middle": _BORDERS,
    "high": (_BORDERS[1], _INCOME_RANGE[1]),
}
"""US dollars a month of each income group, ends included."""

PLACE_VALUES: Mapping[str, tuple[str, ...]] = {
    "income_group": tuple(INCOMES),
    "region": REGIONS,
    "country": tuple(country.name for country in COUNTRIES),
}
"""What a world may set about its homes, and the values that these attributes may have."""

_MEDIAN, _SPREAD = 320.0, 1.3  # of the log-normal, before it is cut: US dollars; of the logarithm
_DEGREES = 0.5  # homes lie about their country's centre: standard deviation


def draw_monthly_incomes_usd(groups: IntArray | None, n_homes: int, seed: int) -> FloatArray:
    """Draw monthly incomes, US dollars.

    ``groups``: [homes] int, optional.
    """
    from scipy.special import ndtr, ndtri

    income_bounds = np.array([_INCOME_RANGE, *INCOMES.values()])
    lower, upper = ndtr((np.log(income_bounds) - math.log(_MEDIAN)) / _SPREAD).T
    row = np.zeros(n_homes, dtype=np.int64) if groups is None else groups.astype(np.int64) + 1
    uniform = build_named_rng(seed, "income").random(n_homes)
    between = lower[row] + uniform * (upper[row] - lower[row])
    incomes = np.exp(math.log(_MEDIAN) + _SPREAD * ndtri(between))
    return np.asarray(
        np.round(
            np.clip(incomes, np.ceil(income_bounds[row, 0]), np.floor(income_bounds[row, 1])), 2
        )
    )


def draw_country_and_coordinates(
    n_homes: int,
    seed: int,
    *,
    region: tuple[tuple[str, ...], IntArray] | None = None,
    country: tuple[tuple[str, ...], IntArray] | None = None,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Draw each home's country and its place in it."""
    rng = build_named_rng(seed, "place")
    uniform = rng.random(n_homes)
    if country is not None:
        names = [c.name for c in COUNTRIES]
        country_index = np.array([names.index(name) for name in country[0]])[country[1]]
    elif region is not None:
        country_index = np.zeros(n_homes, dtype=np.int64)
        for number, name in enumerate(region[0]):
            candidates = np.array([i for i, c in enumerate(COUNTRIES) if c.region == name])
            is_in_region = region[1] == number
            country_index[is_in_region] = candidates[
                (uniform[is_in_region] * len(candidates)).astype(np.int64)
            ]
    else:
        country_index = (uniform * len(COUNTRIES)).astype(np.int64)
    centre = np.array([(c.latitude, c.longitude) for c in COUNTRIES])[country_index]
    spot = centre + np.clip(rng.standard_normal((n_homes, 2)), -3, 3) * _DEGREES
    return country_index, spot[:, 0].round(5), spot[:, 1].round(5)
