"""NumPy's default generator for many rows at once: ``np.random.Generator(PCG64(SeedSequence(seed)))``, one a row.

A generator object a row takes two seconds to make for 65,536 rows and must be asked row by row. Here the seeding and
the generator are written as recurrences over arrays, to the bit as in `numpy.random`:

* `seed_words`: O'Neill's ``seed_seq_fe`` (2015, "Developing a seed_seq alternative"), as NumPy's SeedSequence has it;
* `RowGenerators`: PCG64, XSL-RR 128/64 (O'Neill 2014, "PCG: a family of simple fast space-efficient statistically good
  algorithms for random number generation", section 6.3), a linear congruential generator modulo 2^128 whose state
  after one step is ``M s + inc`` and after k steps ``s_k = s + (M^k - 1) / (M - 1) d``, where ``d = (M - 1) s + inc``.
  So k numbers come from one multiplication each, all rows at once and for many also all k, and one may look ahead
  without moving.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_custom.recording.memory import aligned_zeros

_POOL = 4  # words of 32 bits in NumPy's default entropy pool
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = 0xCA01F9DD, 0x4973F715
_PCG_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_NUMBERS_AT_ONCE = 16_384  # so that what lies between states and numbers stays in the processor's cache

_FEW = 8  # numbers a row up to which they are drawn one after the other: constants multiply quicker than columns


def _constant(value: float, dtype: Any = np.uint64) -> np.ndarray:
    """An array without axes, which NumPy takes quicker than a number."""
    return np.array(value, dtype)


_LOW_HALF, _HALF = _constant(0xFFFFFFFF), _constant(32)
_ROTATION, _WORD, _SPARE, _UNIT = _constant(58), _constant(64), _constant(11), _constant(2.0**-53, np.float64)


def seed_words(entropy: np.ndarray) -> np.ndarray:
    """What ``SeedSequence(seed).generate_state(4, np.uint64)`` gives, for many seeds below 2^128.

    Args:
        entropy: The seeds in words of 32 bits, lowest first, of shape (4, rows), uint32.

    Returns:
        Of shape (4, rows), uint64.
    """
    constant = _INIT_A

    def hashed(value: Any) -> Any:
        nonlocal constant
        value = value ^ np.uint32(constant)
        constant = constant * _MULT_A & 0xFFFFFFFF
        value = value * np.uint32(constant)
        return value ^ (value >> np.uint32(16))

    pool = [hashed(word) for word in entropy]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                mixed = pool[target] * np.uint32(_MIX_L) - hashed(pool[source]) * np.uint32(_MIX_R)
                pool[target] = mixed ^ (mixed >> np.uint32(16))
    return _generate(pool)


def _generate(pool: list[np.ndarray]) -> np.ndarray:
    constant, words = _INIT_B, []
    for i in range(2 * _POOL):
        value = pool[i % _POOL] ^ np.uint32(constant)
        constant = constant * _MULT_B & 0xFFFFFFFF
        value = value * np.uint32(constant)
        words.append((value ^ (value >> np.uint32(16))).astype(np.uint64))
    return np.stack([low | (high << _HALF) for low, high in zip(words[::2], words[1::2], strict=True)])


class RowGenerators:
    """A PCG64 generator a row, as arrays.

    Args:
        rows: Number of rows; each must be seeded before use.

    Attributes:
        words: High and low word of the state, then of the increment, of shape (rows, 4), uint64.
    """

    def __init__(self, rows: int):
        self.words = np.zeros((rows, 4), np.uint64)
        self._records = records(self.words)
        self._room = np.empty(0, np.uint64)

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Seeds these rows, each as ``np.random.default_rng(seed)`` would be.

        Args:
            rows: Indices of shape (m,).
            seeds: m integers of at least 0 and any size.
        """
        s_high, s_low, i_high, i_low = self._seed_words(seeds)
        one = np.uint64(1)
        increment = [(i_high << one) | (i_low >> np.uint64(63)), (i_low << one) | one]
        start = _far(_ONE, (s_high, s_low), increment)  # the first step from state 0, plus the seed
        self.words[rows] = np.stack([*_far(_M, increment, start), *increment], axis=1)

    @staticmethod
    def _seed_words(seeds: Sequence[int]) -> np.ndarray:
        try:
            words = np.array(seeds, np.uint64)
            halves = [words & _LOW_HALF, words >> _HALF, np.zeros_like(words), np.zeros_like(words)]
        except OverflowError:  # some seeds are longer
            if max(seeds) >= 2**128:
                return np.stack([np.random.SeedSequence(seed).generate_state(4, np.uint64) for seed in seeds], axis=1)
            halves = [np.array([seed >> 32 * i & 0xFFFFFFFF for seed in seeds]) for i in range(_POOL)]
        return seed_words(np.stack(halves).astype(np.uint32))

    def draw(self, rows: np.ndarray, items: int, draws: int = 1) -> np.ndarray:
        """The next numbers of these rows, which move on.

        Args:
            rows: Indices of shape (m,), each row once.
            items: Items a row.
            draws: Numbers an item.

        Returns:
            Floats in [0, 1) as ``Generator.random`` would give them, of shape (draws, items, m).
        """
        count, out = items * draws, np.empty((items * draws, len(rows)))
        wide = max(1, _NUMBERS_AT_ONCE // max(1, count))
        for begin in range(0, len(rows) if count else 0, wide):
            self._draw(rows[begin : begin + wide], draws, out[:, begin : begin + wide])
        return out.reshape(draws, items, len(rows))

    def _draw(self, rows: np.ndarray, draws: int, out: np.ndarray) -> None:
        """Draws into ``out``, of shape (count, m), whose last line is the last number."""
        lines, factors = _order(len(out) // draws, draws)
        records = self._records.take(rows)
        state, increment = np.split(_columns(records), 2)
        high, low, *spare = room = self._borrow((4, len(out), len(rows)))
        if len(out) <= _FEW:
            for line in lines:
                _ahead(_M, increment, state, (high[line], low[line], spare[0][0], spare[1][0]))
                state = high[line], low[line]  # type: ignore[assignment]
        else:
            _ahead(factors, state, _step(state, increment), room)
        moved = records.view(np.uint64).reshape(-1, 4)
        moved[:, 0], moved[:, 1] = high[-1], low[-1]
        self._records[rows] = records
        _look(high, low, spare[0], out)

    def uniforms(self, rows: np.ndarray, first: np.ndarray | int, count: int) -> np.ndarray:
        """Looks around without moving: numbers ``first`` to ``first + count - 1`` of each row's future.

        Args:
            rows: Indices of shape (m,).
            first: Where to begin, 0 for the very next number, -1 for the last one; one integer or one a row.
            count: Numbers a row.

        Returns:
            Floats in [0, 1) as ``Generator.random`` would give them, of shape (count, m).
        """
        at = np.asarray(first) + 1 + np.arange(count).reshape(-1, 1)  # (count, m), or (count, 1)
        out, size = np.empty((count, len(rows))), int(np.abs(at).max(initial=0)) + 1
        state, increment = np.split(_columns(self._records.take(rows)), 2)
        high, low, spare, _ = room = np.empty((4, *out.shape), np.uint64)
        _ahead(_sums_of_powers(size)[:, at], state, _step(state, increment), room)
        _look(high, low, spare, out)
        return out

    def generator(self, row: int, ahead: int = 0) -> np.random.Generator:
        """A NumPy generator that stands where this row stands, or so many numbers further; behind it if negative."""
        bits = np.random.PCG64(0)
        s_high, s_low, i_high, i_low = self.words[row].tolist()
        inner: Any = {"state": s_high << 64 | s_low, "inc": i_high << 64 | i_low}
        bits.state = {"bit_generator": "PCG64", "state": inner, "has_uint32": 0, "uinteger": 0}
        return np.random.Generator(bits.advance(ahead))

    def _borrow(self, shape: tuple[int, ...]) -> np.ndarray:
        """Memory of this shape, the same each time: new one would not be in the cache."""
        size = math.prod(shape)
        if len(self._room) < size:
            self._room = aligned_zeros((size,), np.uint64)
        return self._room[:size].reshape(shape)


def records(numbers: np.ndarray) -> np.ndarray:
    """Numbers of shape (m, width), in C order, as one item a row, which NumPy moves several times quicker."""
    return numbers.view(f"V{numbers.strides[0]}")[:, 0]


def _columns(records: np.ndarray) -> np.ndarray:
    """The words of some records, of shape (4, m)."""
    return records.view(np.uint64).reshape(-1, 4).T.copy()


def _split(*numbers: int) -> np.ndarray:
    """Numbers of 128 bits: high word, low word and the two halves of that, of shape (4, len(numbers)), uint64."""
    high = np.array([number >> 64 & (2**64 - 1) for number in numbers], np.uint64)
    low = np.array([number & (2**64 - 1) for number in numbers], np.uint64)
    return np.stack([high, low, low & _LOW_HALF, low >> _HALF])


_ONE, _M, _M_LESS_ONE = (
    tuple(map(_constant, _split(number)[:, 0])) for number in (1, _PCG_MULTIPLIER, _PCG_MULTIPLIER - 1)
)


@functools.lru_cache(maxsize=8)
def _table(size: int) -> np.ndarray:
    """``(M^k - 1) / (M - 1)`` modulo 2^128, split, for k from 0 to size and, as indices, from -1 to -size."""
    inverse, ahead, behind = pow(_PCG_MULTIPLIER, -1, 2**128), [0], [0]
    for _ in range(size):
        ahead.append((ahead[-1] * _PCG_MULTIPLIER + 1) % 2**128)
        behind.append((behind[-1] - 1) * inverse % 2**128)
    return _split(*ahead, *behind[:0:-1])


def _sums_of_powers(size: int) -> np.ndarray:
    return _table(max(64, 1 << (size - 1).bit_length()))


@functools.lru_cache(maxsize=64)
def _order(items: int, draws: int) -> tuple[list[int], np.ndarray]:
    """Numbers that stand as (draws, items): the lines of those drawn one after the other, and each line's factors."""
    lines = np.arange(items * draws).reshape(draws, items).T.ravel()
    ahead = lines.argsort() + 1  # how many steps lead to a line's number
    return lines.tolist(), _sums_of_powers(len(lines) + 1)[:, ahead, None]  # (4, count, 1)


def _step(state: Any, increment: Any) -> np.ndarray:
    """What the next step adds to a state, ``(M - 1) s + inc``, of shape (2, m)."""
    return _far(_M_LESS_ONE, increment, state)


def _far(factor: Any, b: Any, x: Any) -> np.ndarray:
    """`_ahead` for one factor, in memory of its own: high and low words, of shape (2, m)."""
    room = np.empty((4, len(x[0])), np.uint64)
    _ahead(factor, b, x, room)
    return room[:2]


def _ahead(factors: Any, b: Any, x: Any, room: Any) -> None:
    """``factor * x + b`` modulo 2^128, as schoolbook multiplication has it in digits of 32 bits.

    Args:
        factors: Split; each of the four of shape (), (k, 1) or (k, m).
        b: High and low words, each of shape (m,).
        x: High and low words, each of shape (m,).
        room: For the results' high and low words and two arrays more, each of shape (m,) or (k, m).
    """
    a_high, a_low, a0, a1 = factors
    (b_high, b_low), (x_high, x_low) = b, x
    high, low, part, middle = room
    x0, x1 = np.bitwise_and(x_low, _LOW_HALF), np.right_shift(x_low, _HALF)
    multiply, add, shift = np.multiply, np.add, np.right_shift
    multiply(a0, x0, part)
    add(part, np.bitwise_and(b_low, _LOW_HALF), part)
    shift(part, _HALF, part)
    multiply(a1, x0, middle)
    add(middle, part, middle)
    np.bitwise_and(middle, _LOW_HALF, part)
    shift(middle, _HALF, middle)
    add(part, shift(b_low, _HALF), part)
    multiply(a0, x1, high)
    add(part, high, part)  # a product of digits and two digits: just no overflow
    shift(part, _HALF, part)
    add(middle, part, middle)
    for one, other in ((a1, x1), (a_low, x_high), (a_high, x_low)):
        multiply(one, other, high)
        add(middle, high, middle)
    add(middle, b_high, high)
    multiply(a_low, x_low, low)
    add(low, b_low, low)


def _look(high: np.ndarray, low: np.ndarray, bits: np.ndarray, out: np.ndarray) -> None:
    """The numbers that states give (XSL-RR, then the upper 53 bits as a fraction); the states are used up."""
    np.bitwise_xor(low, high, low)
    np.right_shift(high, _ROTATION, high)  # how far to rotate
    np.right_shift(low, high, bits)
    np.subtract(_WORD, high, high)
    np.left_shift(low, high, low)  # NumPy shifts by 64 to 0
    np.bitwise_or(bits, low, bits)
    np.right_shift(bits, _SPARE, bits)
    np.copyto(out, bits.view(np.int64))  # quicker than from uint64
    np.multiply(out, _UNIT, out)
