"""Functions of plain numbers against NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_custom.drivers.scalar_math import _fastest, scalar_namespace

XP = scalar_namespace()
finite = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("name", ["sin", "cos", "exp", "tanh", "floor", "sign", "arctan", "abs", "isfinite"])
@given(x=st.floats(-300.0, 300.0))
def test_functions_of_one_number_are_numpys(name, x):
    found, expected = getattr(XP, name)(x), getattr(np, name)(x)
    assert found == expected
    assert type(found) in (float, bool)


@pytest.mark.parametrize("name", ["minimum", "maximum", "hypot", "arctan2", "copysign"])
@given(a=finite, b=finite)
def test_functions_of_two_numbers_are_numpys(name, a, b):
    assert getattr(XP, name)(a, b) == getattr(np, name)(a, b)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_nan_goes_through(name):
    assert math.isnan(getattr(XP, name)(math.nan, 1.0))
    assert math.isnan(getattr(XP, name)(1.0, math.nan))


@given(x=finite, low=st.floats(-5, 0), high=st.floats(0, 5))
def test_the_rest_is_numpys_too(x, low, high):
    assert XP.clip(x, low, high) == np.clip(x, low, high)
    assert XP.where(x > low, x, high) == np.where(x > low, x, high)
    assert XP.logical_not(x > low) == np.logical_not(x > low)
    assert XP.astype(XP.floor(x), int) == np.floor(x).astype(int)
    assert XP.square(x) == np.square(x)


def test_a_function_with_other_bits_gives_way_to_numpys():
    arguments = (np.linspace(0.1, 3.0, 50),)
    assert _fastest("sin", math.sin, arguments) is math.sin
    replaced = _fastest("sin", lambda x: math.sin(x) * (1 + 1e-15), arguments)
    assert replaced(1.0) == float(np.sin(1.0))
    assert type(replaced(1.0)) is float
