"""How much is trained per collected row, asked as a question so that nobody ever waits on a lock."""

from __future__ import annotations


class SamplesPerInsert:
    """Keeps trained rows at a fixed multiple of collected rows (the rate limiter of Cassirer et al. 2021, Reverb).

    Rows collected during warm-up ask for no training, so no burst follows them; a loaded state goes on where it was.

    Args:
        samples_per_insert: rows trained per row collected after warm-up.
        warmup: rows collected before the first training.
        batch_size: rows of one update.
    """

    def __init__(self, samples_per_insert: float, warmup: int, batch_size: int) -> None:
        self.samples_per_insert = samples_per_insert
        self.warmup = warmup
        self.batch_size = batch_size
        self.inserted = 0
        self.sampled = 0

    def insert(self, num_rows: int) -> None:
        """Count collected rows."""
        self.inserted += num_rows

    def sample(self) -> None:
        """Count one update."""
        self.sampled += self.batch_size

    def may_sample(self) -> bool:
        """Whether one more update keeps to the ratio."""
        due = (self.inserted - self.warmup) * self.samples_per_insert
        return self.inserted >= self.warmup and self.sampled + self.batch_size <= due

    def state_dict(self) -> dict[str, int]:
        """Give the two counts."""
        return {"inserted": self.inserted, "sampled": self.sampled}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from saved counts."""
        self.inserted, self.sampled = int(state["inserted"]), int(state["sampled"])
