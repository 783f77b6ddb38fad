"""NumPy's default generator for many rows at once: ``np.random.Generator(PCG64(SeedSequence(seed)))``, one a row.

A generator object a row takes two seconds to make for 65,536 rows and must be asked row by row. Here the seeding and
the generator are written as recurrences over arrays, to the bit as in `numpy.random`:

* `seed_words`: O'Neill's ``seed_seq_fe`` (2015, "Developing a seed_seq alternative"), as NumPy's SeedSequence has it;
* `RowGenerators`: PCG64, XSL-RR 128/64 (O'Neill 2014, "PCG: a family of simple fast space-efficient statistically good
  algorithms for random number generation", section 6.3), a linear congruential generator modulo 2^128 whose state
  after k steps is ``s_k = M^k s + (M^k - 1) / (M - 1) inc``. So k numbers come from one multiplication each, all
  rows and all k at once, and one may look ahead without moving.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_POOL = 4  # words of 32 bits in NumPy's default entropy pool
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = 0xCA01F9DD, 0x4973F715
_PCG_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_LOW_HALF, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Words(NamedTuple):
    """Numbers of 128 bits; each part is an array of uint64."""

    high: np.ndarray
    low: np.ndarray


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
        self.words = np.zeros((rows, 4), np.uint64)  # what belongs to a row stands together in memory

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Seeds these rows, each as ``np.random.default_rng(seed)`` would be.

        Args:
            rows: Indices of shape (m,).
            seeds: m integers of at least 0 and any size.
        """
        s_high, s_low, i_high, i_low = self._seed_words(seeds)
        increment = Words((i_high << np.uint64(1)) | (i_low >> np.uint64(63)), (i_low << np.uint64(1)) | np.uint64(1))
        start = _sum(Words(s_high, s_low), increment)  # the first step from state 0, plus the seed
        state = _sum(_product(_split(_PCG_MULTIPLIER), start), increment)
        for column, word in enumerate((*state, *increment)):
            self.words[rows, column] = word

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
            rows: Indices of shape (m,).
            items: Items a row.
            draws: Numbers an item.

        Returns:
            Floats in [0, 1) as ``Generator.random`` would give them, of shape (draws, items, m).
        """
        order = np.arange(1, items * draws + 1).reshape(items, draws).T[..., None]  # (draws, items, 1)
        out = np.empty((draws, items, len(rows)))
        if out.size:
            state, step = self._state_and_step(rows)
            ahead = _sum(_product(_sums_of_powers(order.size + 1)[:, order], step), state)  # (draws, items, m)
            self.words[rows, 0], self.words[rows, 1] = ahead.high[-1, -1], ahead.low[-1, -1]
            _look(ahead, out)
        return out

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
        out = np.empty((count, len(rows)))
        state, step = self._state_and_step(rows)
        _look(_sum(_product(_sums_of_powers(_farthest(at) + 1)[:, at], step), state), out)
        return out

    def advance(self, rows: np.ndarray, count: np.ndarray | int) -> None:
        """Moves these rows on by so many numbers; one integer or one a row."""
        state, step = self._state_and_step(rows)
        factors = _sums_of_powers(_farthest(count) + 1)[:, count]
        self.words[rows, 0], self.words[rows, 1] = _sum(_product(factors, step), state)

    def _state_and_step(self, rows: np.ndarray) -> tuple[Words, Words]:
        """The states of these rows, and what their next steps add to them: ``(M - 1) s + inc``."""
        s_high, s_low, i_high, i_low = self.words.take(rows, axis=0).T
        state = Words(s_high, s_low)
        return state, _sum(_product(_split(_PCG_MULTIPLIER - 1), state), Words(i_high, i_low))

    def generator(self, row: int, ahead: int = 0) -> np.random.Generator:
        """A NumPy generator that stands where this row stands, or so many numbers further; behind it if negative."""
        bits = np.random.PCG64(0)
        s_high, s_low, i_high, i_low = self.words[row].tolist()
        state: Any = {"state": s_high << 64 | s_low, "inc": i_high << 64 | i_low}
        bits.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
        return np.random.Generator(bits.advance(ahead))


@functools.cache
def _split(*numbers: int) -> np.ndarray:
    """Numbers of 128 bits: high word, low word and the two halves of that, of shape (4, len(numbers)), uint64."""
    high = np.array([number >> 64 & (2**64 - 1) for number in numbers], np.uint64)
    low = np.array([number & (2**64 - 1) for number in numbers], np.uint64)
    return np.stack([high, low, low & _LOW_HALF, low >> _HALF])


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


def _farthest(counts: np.ndarray | int) -> int:
    return int(np.abs(counts).max(initial=0))


def _sum(a: Words, b: Words) -> Words:
    """``a + b`` modulo 2^128, written over a."""
    np.add(a.low, b.low, out=a.low)
    np.add(a.high, b.high, out=a.high)
    np.add(a.high, a.low < b.low, out=a.high)
    return a


def _product(a: np.ndarray, b: Words) -> Words:
    """``a b`` modulo 2^128, as schoolbook multiplication has it; a comes split."""
    a_high, a_low, a0, a1 = a
    b0, b1 = b.low & _LOW_HALF, b.low >> _HALF
    part = a0 * b0
    part >>= _HALF
    middle = a1 * b0
    middle += part
    other = a0 * b1
    other += np.bitwise_and(middle, _LOW_HALF, out=part)
    middle >>= _HALF
    other >>= _HALF
    high = a1 * b1
    high += middle
    high += other
    high += np.multiply(a_low, b.high, out=part)
    high += np.multiply(a_high, b.low, out=part)
    return Words(high, np.multiply(a_low, b.low, out=part))


def _look(state: Words, out: np.ndarray) -> None:
    """The numbers that states give (XSL-RR, then the upper 53 bits as a fraction); the states are used up."""
    high, low = state
    low ^= high
    high >>= np.uint64(58)  # how far to rotate
    bits = low >> high
    np.subtract(np.uint64(64), high, out=high)
    low <<= high  # NumPy shifts by 64 to 0
    bits |= low
    bits >>= np.uint64(11)
    np.multiply(bits, 2.0**-53, out=out)
