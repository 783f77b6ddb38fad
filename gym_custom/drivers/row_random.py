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
_TILE = 8_192  # numbers worked out at once: their temporaries stay in the cache


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
    """

    def __init__(self, rows: int):
        self.state, self.increment = (Words(*np.zeros((2, rows), np.uint64)) for _ in range(2))

    def seed(self, rows: np.ndarray, seeds: Sequence[int]) -> None:
        """Seeds these rows, each as ``np.random.default_rng(seed)`` would be.

        Args:
            rows: Indices of shape (m,).
            seeds: m integers of at least 0 and any size.
        """
        s_high, s_low, i_high, i_low = self._seed_words(seeds)
        increment = Words((i_high << np.uint64(1)) | (i_low >> np.uint64(63)), (i_low << np.uint64(1)) | np.uint64(1))
        start = _add(Words(s_high, s_low), increment)  # the first step from state 0, plus the seed
        _put(self.increment, rows, increment)
        _put(self.state, rows, _add(_times(start, Words(*_parts([_PCG_MULTIPLIER]))), increment))

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

    def uniforms(self, rows: np.ndarray | slice, first: np.ndarray | int, count: int) -> np.ndarray:
        """Looks ahead without moving: numbers ``first`` to ``first + count - 1`` of each row's future.

        Args:
            rows: Indices of shape (m,), or a slice.
            first: Where to begin, 0 for the very next number; one integer or one a row.
            count: Numbers a row.

        Returns:
            Floats in [0, 1) as ``Generator.random`` would give them, of shape (count, m).
        """
        state = Words(self.state.high[rows], self.state.low[rows])  # (m,)
        increment = Words(self.increment.high[rows], self.increment.low[rows])
        step = _add(_times(state, Words(*_parts([_PCG_MULTIPLIER - 1]))), increment)
        if count == 0:
            return np.empty((0, len(state.low)))
        if np.ndim(first):
            return self._scattered(state, step, np.asarray(first), count)
        factors = _sums_of_powers(int(first) + count + 1)[:, int(first) + 1 :]  # (4, count), in quarters
        out = np.empty((count, len(state.low)))
        wide = max(1, _TILE // count)
        for a in range(0, len(state.low), wide):
            tile = slice(a, a + wide)
            _look(_tile(state, tile), _tile(step, tile), factors[:, :, None], out[:, tile])
        return out

    @staticmethod
    def _scattered(state: Words, step: Words, first: np.ndarray, count: int) -> np.ndarray:
        at = first + 1 + np.arange(count)[:, None]  # (count, m)
        out = np.empty(at.shape)
        _look(state, step, _sums_of_powers(int(at.max(initial=0)) + 1)[:, at], out)
        return out

    def advance(self, rows: np.ndarray | slice, count: np.ndarray | int) -> None:
        """Moves these rows on by so many numbers; one integer or one a row."""
        state = Words(self.state.high[rows], self.state.low[rows])
        increment = Words(self.increment.high[rows], self.increment.low[rows])
        step = _add(_times(state, Words(*_parts([_PCG_MULTIPLIER - 1]))), increment)
        factors = _sums_of_powers(int(np.max(count, initial=0)) + 1)[:, count]
        _put(self.state, rows, _add(state, _times(step, Words(factors[0], factors[1]))))

    def words(self) -> tuple[np.ndarray, ...]:
        """Everything that a generator is, as four arrays."""
        return (*self.state, *self.increment)

    def generator(self, row: int, ahead: int = 0) -> np.random.Generator:
        """A NumPy generator that stands where this row stands, or so many numbers further."""
        bits = np.random.PCG64(0)
        join = lambda words: (int(words.high[row]) << 64) | int(words.low[row])  # noqa: E731
        state: Any = {"state": join(self.state), "inc": join(self.increment)}
        bits.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
        return np.random.Generator(bits.advance(ahead))


def _parts(numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """High and low halves of 128-bit numbers."""
    return (
        np.array([number >> 64 & (2**64 - 1) for number in numbers], np.uint64),
        np.array([number & (2**64 - 1) for number in numbers], np.uint64),
    )


@functools.lru_cache(maxsize=8)
def _table(size: int) -> np.ndarray:
    """``1 + M + ... + M^(k-1)`` modulo 2^128 for k below size: high word, low word and its two halves, (4, size)."""
    sums, total = [], 0
    for _ in range(size):
        sums.append(total)
        total = (total * _PCG_MULTIPLIER + 1) % 2**128
    high, low = _parts(sums)
    return np.stack([high, low, low & _LOW_HALF, low >> _HALF])


def _sums_of_powers(size: int) -> np.ndarray:
    return _table(max(64, 1 << (size - 1).bit_length()))[:, :size]


def _tile(words: Words, tile: slice) -> Words:
    return Words(words.high[tile], words.low[tile])


def _put(words: Words, rows: Any, values: Words) -> None:
    words.high[rows], words.low[rows] = values


def _add(a: Words, b: Words) -> Words:
    low = a.low + b.low
    return Words(a.high + b.high + (low < b.low), low)


def _times(a: Words, b: Words) -> Words:
    return _product(a, (a.low & _LOW_HALF, a.low >> _HALF), b, (b.low & _LOW_HALF, b.low >> _HALF))


def _product(a: Words, a_halves: tuple, b: Words, b_halves: tuple) -> Words:
    """``a b`` modulo 2^128; the low words come in halves too, as schoolbook multiplication wants them."""
    (a0, a1), (b0, b1) = a_halves, b_halves
    middle = a1 * b0
    middle += (a0 * b0) >> _HALF
    other = a0 * b1
    other += middle & _LOW_HALF
    high = a1 * b1
    high += middle >> _HALF
    high += other >> _HALF
    high += a.low * b.high
    high += a.high * b.low
    return Words(high, a.low * b.low)


def _look(state: Words, step: Words, factors: np.ndarray, out: np.ndarray) -> None:
    """The numbers that states ``state + factor step`` give (XSL-RR, then the upper 53 bits as a fraction)."""
    halves = (step.low & _LOW_HALF, step.low >> _HALF)
    high, low = _product(Words(factors[0], factors[1]), (factors[2], factors[3]), step, halves)
    low += state.low
    high += state.high
    high += low < state.low
    low ^= high
    high >>= np.uint64(58)  # how far to rotate
    bits = low >> high
    np.subtract(np.uint64(64), high, out=high)
    low <<= high  # NumPy shifts by 64 to 0
    bits |= low
    bits >>= np.uint64(11)
    np.multiply(bits, 2.0**-53, out=out)
