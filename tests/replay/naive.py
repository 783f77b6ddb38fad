"""The plainest replay memory: a list of rows and loops over it. What the real ones are compared with."""

import numpy as np

from agents.trees import tree_leaves, tree_map


class NaiveMemory:
    """Rows as dicts with id, kind's fields, source and raw priority; the oldest first."""

    def __init__(self, capacity, alpha, epsilon):
        self.capacity, self.alpha, self.epsilon = capacity, alpha, epsilon
        self.rows, self.inserted = [], 0
        self.newest = {}  # source -> the row before the next one

    @property
    def oldest(self):
        return self.inserted - len(self.rows)

    def append(self, record, priorities, sources):
        largest = max((row["raw"] for row in self.rows), default=1.0)
        for place, source in enumerate(sources):
            row = {name: tree_map(lambda leaf: leaf[place].copy(), getattr(record, name)) for name in record._fields}  # noqa: B023
            row |= {"id": self.inserted, "source": source, "after": None}
            row["raw"] = largest if priorities is None else priorities[place]
            before = self.newest.get(source)
            if before is not None and same(before["next_obs"], row["obs"]):
                before["after"] = row
            self.newest[source] = row
            self.rows.append(row)
            self.inserted += 1
        self.rows = self.rows[-self.capacity :]

    def update(self, ids, priorities):
        alive = {row["id"]: row for row in self.rows}
        for row_id, priority in zip(ids, priorities, strict=True):
            if row_id in alive:
                alive[row_id]["raw"] = priority
        return sum(row_id not in alive for row_id in ids)

    def resize(self, capacity):
        self.capacity = capacity
        self.rows = self.rows[-capacity:]

    def reset(self):
        self.rows, self.newest = [], {}

    def cut(self):
        """Streams end here, as after a load."""
        self.newest = {}

    def probabilities(self, source=None):
        """Id -> probability."""
        rows = [row for row in self.rows if source in (None, row["source"])]
        leaves = np.array([(row["raw"] + self.epsilon) ** self.alpha for row in rows])
        return {row["id"]: leaf / leaves.sum() for row, leaf in zip(rows, leaves, strict=True)}

    def row(self, row_id):
        return self.rows[row_id - self.oldest]

    def steps(self, row_id, count):
        """The row and those that follow it in its episode, at most ``count``."""
        out = [self.row(row_id)]
        while len(out) < count and not (out[-1]["terminated"] or out[-1]["truncated"]) and out[-1]["after"]:
            out.append(out[-1]["after"])
        return out

    def window(self, row_id, n_step, discount):
        """(reward, discount, last row) of the n-step window."""
        steps = self.steps(row_id, n_step)
        reward = sum(discount**k * step["reward"] for k, step in enumerate(steps))
        return reward, 0.0 if steps[-1]["terminated"] else discount ** len(steps), steps[-1]


def same(first, second):
    return all(a.tobytes() == b.tobytes() for a, b in zip(tree_leaves(first), tree_leaves(second), strict=True))
