"""Where many functions pass 0: against square roots, and whichever rows are still asked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from isolux.stats.root_finding import Excess, find_roots

NUMBERS = np.random.default_rng(3).uniform(0.01, 50.0, 500)


def squares(asked: list[int]) -> Callable[..., Excess]:
    def of(rows: npt.NDArray[np.intp] | None = None) -> Excess:
        held = NUMBERS if rows is None else NUMBERS[rows]

        def excess(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            asked.append(len(x))
            return x**3 - held

        return excess

    return of


def test_rows_that_are_found_are_left_behind_and_nothing_else_changes():
    every: list[int] = []
    fewer: list[int] = []
    zero, far = np.zeros_like(NUMBERS), np.full_like(NUMBERS, 60.0)
    whole = find_roots(squares(every)(), zero, far)
    of = squares(fewer)
    some = find_roots(of(), zero, far, of)
    assert some.tobytes() == whole.tobytes()
    assert np.allclose(whole, np.cbrt(NUMBERS), rtol=0, atol=1e-12)
    assert len(every) == len(fewer)  # as many rounds
    assert set(every) == {500}
    assert min(fewer) < 250
    assert sum(fewer) < 0.9 * sum(every)


def test_what_never_passes_ends_at_the_far_end_and_no_number_stays_none():
    """Rows: x - 1 passes at 1; x - 9 does not up to 2; one whose value is no number."""
    least = np.array([1.0, 9.0, np.nan])

    def of(rows: npt.NDArray[np.intp] | slice = slice(None)) -> Excess:
        return lambda x: x - least[rows]

    found = find_roots(of(), np.zeros(3), np.full(3, 2.0), of)
    assert found.tolist() == [1.0, 2.0, 2.0]


def test_of_none_there_is_none():
    assert find_roots(lambda x: x, np.zeros(0), np.zeros(0)).tolist() == []
