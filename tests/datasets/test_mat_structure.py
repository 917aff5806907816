"""Variables of MATLAB files walked before scipy reads them: what is sound, what is not."""

from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.io.matlab import MatlabObject
from scipy.sparse import csc_matrix

from isolux.datasets._mat.structure import HAS_OBJECT, INTACT, find_damage_in_variable

HEADER, BIG = 128, False


def cells(*held):
    made = np.empty((1, len(held)), dtype=object)
    made[0] = held
    return made


SOUND_VALUES = {
    "numbers": np.arange(12.0).reshape(3, 4),
    "a byte": np.uint8(7),
    "nothing": np.zeros((0, 3)),
    "complex": np.array([[1 + 2j]]),
    "flags": np.array([[True, False]]),
    "text": np.array(["abc", "déf"]),
    "sparse": csc_matrix(np.eye(3)),
    "cells": cells(np.arange(3.0), "text", cells("inner", np.zeros((0, 0)))),
    "no cells": np.empty((0, 0), dtype=object),
    "structure": {"a": np.arange(2.0), "b": {"c": "text"}},
}


def variable(value) -> np.ndarray:
    stream = io.BytesIO()
    savemat(stream, {"x": value}, long_field_names=True)
    return np.frombuffer(stream.getvalue()[HEADER:], np.uint8)


@pytest.mark.parametrize("name", SOUND_VALUES)
def test_what_scipy_writes_is_sound(name):
    assert find_damage_in_variable(variable(SOUND_VALUES[name]), BIG) == INTACT


@pytest.mark.parametrize("name", SOUND_VALUES)
def test_what_is_cut_off_is_not(name):
    whole = variable(SOUND_VALUES[name])
    for length in range(0, len(whole) - 8, 8):
        assert find_damage_in_variable(whole[:length], BIG) != INTACT, length


def test_an_object_is_sound_in_its_bytes_or_named():
    inner = np.zeros((1, 1), dtype=[("a", object)])
    inner["a"][0, 0] = np.arange(2.0)
    assert find_damage_in_variable(variable(MatlabObject(inner, classname="c")), BIG) in {
        INTACT,
        HAS_OBJECT,
    }
    function = variable(SOUND_VALUES["numbers"]).copy()
    function[16] = 16  # the class of functions
    assert find_damage_in_variable(function, BIG) == HAS_OBJECT


def test_a_type_that_is_none_is_damage():
    """scipy looks such a type up beyond the end of its table, and the process ends."""
    broken = variable(SOUND_VALUES["numbers"]).copy()
    at = int(np.flatnonzero(broken == 9)[-1])  # the tag of doubles
    assert bytes(broken[at : at + 4]) == b"\x09\0\0\0"
    broken[at] = 200
    assert find_damage_in_variable(broken, BIG) >= 0


def test_what_is_sound_can_be_read_whatever_byte_was_changed():
    whole = variable(SOUND_VALUES["cells"])
    head = io.BytesIO()
    savemat(head, {})
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = whole.copy()
        broken[rng.integers(len(broken))] = rng.integers(256)
        if find_damage_in_variable(broken, BIG) != INTACT:
            continue
        with suppress(Exception):  # whatever scipy raises: it must not end the process
            loadmat(io.BytesIO(head.getvalue()[:HEADER] + broken.tobytes()))
