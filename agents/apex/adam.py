"""Adam on one flat vector: torch's own arithmetic without ``torch.optim``'s objects.

Making one of those loads torch's compiler, which takes longer than all else that a training needs to start.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

BETA1, BETA2 = 0.9, 0.999


class Adam:
    """Kingma & Ba 2015 (arXiv 1412.6980), algorithm 1, with their decay rates.

    Args:
        vector: what is trained, (P,); changed in place.
        gradient: (P,), read at each step.
        epsilon: added to the root of the second moment.
    """

    def __init__(self, vector: Tensor, gradient: Tensor, epsilon: float) -> None:
        self._vector, self._gradient, self._epsilon = vector, gradient, epsilon
        self._mean, self._square = torch.zeros_like(vector), torch.zeros_like(vector)
        self._steps = torch.tensor(0.0)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the vector against its gradient."""
        adam(
            [self._vector],
            [self._gradient],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            foreach=False,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=learning_rate,
            weight_decay=0.0,
            eps=self._epsilon,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Give both moments and the number of steps."""
        return {"mean": self._mean, "square": self._square, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from saved moments."""
        for name, own in self.state_dict().items():
            own.copy_(state[name])
