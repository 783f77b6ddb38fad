"""What arguments may be, and the sentences for what they may not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_custom.arguments import legal_choice, legal_flag, legal_integer, legal_number, shown

ANYTHING = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.none(), st.text(), st.binary(), st.complex_numbers(),
    st.lists(st.integers()), st.dictionaries(st.text(), st.integers()),
    st.sampled_from([np.eye(9), np.float32(2), np.int8(3), np.True_, 10**5000, -(10**400), object(), np.ma.masked]),
)  # fmt: skip


def is_number(value):
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


@given(ANYTHING)
def test_a_number_comes_back_or_one_line_says_why_not(value):
    if is_number(value) and -2.0 <= value <= 1e6:
        number = legal_number("slip", value, -2.0, 1e6)
        assert type(number) is float
        assert number == value
        return
    with pytest.raises(ValueError, match=r"\Aslip must be a number.{1,120}\Z") as caught:
        legal_number("slip", value, -2.0, 1e6)
    assert isinstance(caught.value, TypeError) != is_number(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_without_bounds_a_number_is_finite(value):
    assert legal_number("reward", 1e308) == 1e308
    with pytest.raises(ValueError, match=r"^reward must be finite, not "):
        legal_number("reward", value)


@pytest.mark.parametrize("value", [True, 2.0, "2", None, [2], np.float64(2), np.array([2])])
def test_integers_are_no_floats_and_no_booleans(value):
    with pytest.raises(TypeError, match=r"^rooms must be an integer from 0 to 9, not "):
        legal_integer("rooms", value, 0, 9)


def test_integers_keep_to_their_bounds():
    assert [legal_integer("rooms", n, 0, 9) for n in (0, np.int64(9), np.uint8(3))] == [0, 9, 3]
    for n in (-1, 10, 10**5000):
        with pytest.raises(ValueError, match=r"^rooms must be an integer from 0 to 9, not "):
            legal_integer("rooms", n, 0, 9)


def test_flags_and_choices():
    assert legal_flag("open", np.True_) is True
    assert legal_choice("color", "red", {"red": 1, "blue": 2}) == "red"
    with pytest.raises(TypeError, match=r"^open must be True or False, not 1$"):
        legal_flag("open", 1)
    for value in ("green", None, ["red"], 3):
        with pytest.raises(ValueError, match=r"^color must be one of 'red', 'blue', not "):
            legal_choice("color", value, {"red": 1, "blue": 2})


def test_values_are_shown_in_one_short_line():
    assert shown([1, "a"]) == "[1, 'a']"
    assert shown(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert shown("x" * 500) == "'" + "x" * 76 + "..."
    assert shown(10**5000) == "an integer of 16610 bits"
