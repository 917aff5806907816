from __future__ import annotations

from datetime import date, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import TableError
from isolux.datasets._date_damage import (
    recover_range_from_date,
    repair_or_refuse_date_damaged_ranges,
)

AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")


@pytest.mark.parametrize(
    "cell",
    [
        "9-Mar", "09-Mar", "Mar-9", "Mar-09", "9 March", "3-Sep", "03-Sept", "Sep-03",
        "9. Mrz", "9-mär", "9-mars", "03-set", "9-Mar-24", "9-Mar-2024", "2024-03-09",
        "2024-09-03", "2024-03-09 00:00:00", "2024-03-09T00:00:00", "3/9/2024", "09/03/24",
        "3/9", "09.03.2024", "45360", "45360.0",
    ],
)  # fmt: skip
def test_what_three_to_nine_becomes(cell):
    # 45360 days after 30 December 1899 is 9 March 2024.
    assert recover_range_from_date(cell, AGES) == "3-9"


@pytest.mark.parametrize(
    "cell",
    [
        "19-Oct", "Oct-19", "19. Okt", "19-ott", "19-out", "Oct-2019", "1-Oct-19", "2019-10-01",
        "2024-10-19", "10/19/2024", "19/10/2024", "01/10/2019", "10/1/2019", "43739", "45584",
    ],
)  # fmt: skip
def test_what_ten_to_nineteen_becomes(cell):
    # 43739 is 1 October 2019 (where days come first), 45584 is 19 October 2024.
    assert recover_range_from_date(cell, AGES) == "10-19"


@pytest.mark.parametrize(
    "cell",
    ["", "3-9", "Male", "2-Jan", "1-Jan", "Feb-00", "9-Xyz", "31-Oct", "0", "7", "70+", "99999",
     "2024-13-09", "2-Feb", "Mar", "43525"],
)  # fmt: skip
def test_what_no_range_becomes(cell):
    # 43525 is 1 March 2019, which reads as 1-3 or 3-19: no age range of these.
    assert recover_range_from_date(cell, AGES) is None


def test_a_date_that_two_ranges_may_have_been_is_not_repaired():
    assert recover_range_from_date("9-Mar", ["3-9", "9-3"]) is None


def test_only_two_of_the_nine_ages_can_be_damaged():
    # Every day that a spreadsheet may store, written as a date and as its serial number.
    days = (date(1954, 10, 4) + timedelta(days=n) for n in range(25_000))
    found = {recover_range_from_date(day.isoformat(), AGES) for day in days}
    assert found == {None, "3-9", "10-19"}


@given(st.text("0123456789-/. TMarOctsep:é+", max_size=12))
def test_any_text_is_a_range_or_none(cell):
    assert recover_range_from_date(cell, AGES) in {None, "3-9", "10-19"}


@given(st.dates(date(1955, 1, 1), date(2118, 1, 1)))
def test_a_serial_number_and_its_date_agree(day):
    serial = str((day - date(1899, 12, 30)).days)
    assert recover_range_from_date(serial, AGES) == recover_range_from_date(day.isoformat(), AGES)


def repaired(cells, *, repair=True):
    frame = pl.DataFrame({"age": cells})
    return repair_or_refuse_date_damaged_ranges(frame, ["age"], repair=repair, source="people.csv")[
        0
    ]["age"].to_list()


def test_the_first_of_a_month_is_the_range_that_fits_the_others():
    # 1-10 would lie across 3-9; 10-19 lies between 3-9 and 20-29.
    assert repaired(["0-2", "2026-03-09", "2019-10-01", "20-29"]) == [
        "0-2",
        "3-9",
        "10-19",
        "20-29",
    ]
    # Nothing lies across 1-10 here, and 10-19 borders on 20-29.
    assert repaired(["2019-10-01", "20-29", "30-39"]) == ["10-19", "20-29", "30-39"]
    with pytest.raises(TableError, match="'2019-10-01' for 10-19"):
        repaired(["2019-10-01", "20-29", "30-39"], repair=False)


@pytest.mark.parametrize("repair", [True, False])
def test_a_date_that_was_one_of_two_ranges_is_refused(repair):
    with pytest.raises(TableError, match="'2019-10-01', which was 1-10 or 10-19"):
        repaired(["2019-10-01", "40-49", "50-59"], repair=repair)
