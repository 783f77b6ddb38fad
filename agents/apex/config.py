"""The settings of an Ape-X run: one frozen record, whose defaults are CartPole's but for the scale of its rewards."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

MOST_STEPS = 10**12  # of anything that is only counted
MOST_UNITS = 10**5  # of a layer
CLUSTERS = ("local", "inline", "ray")
EXPLORATIONS = ("epsilon", "noisy")
PLACEMENTS = ("SPREAD", "DEFAULT")


@dataclass(frozen=True)
class ApeXConfig:
    """Settings of an Ape-X run; every field is checked when the record is made.

    The paper's values (Horgan et al. 2018, arXiv 1803.00933) stand in brackets where they differ: they belong to
    Atari on 360 actors.
    """

    cluster: str = "local"
    """Where actors run: "local" (a process each), "inline" (in the caller's thread, repeatable to the last bit) or
    "ray" (on the machines of a Ray cluster)."""
    num_actors: int = 2
    """Number of actors [360]."""
    envs_per_actor: int = 16
    """Environment rows that each actor steps together [1]."""
    n_step: int = 3
    """Steps in a window, the n of the n-step return."""
    gamma: float = 0.99
    """Discount per step, in [0, 1]."""
    reward_scale: float = 1.0
    """What rewards are multiplied with for learning, above 0; reported returns are not touched [clipped rewards]."""
    exploration: str = "epsilon"
    """How actors explore: "epsilon" (a fixed share of random actions a row) or "noisy" (random weights whose spread is
    learned, drawn anew for each block)."""
    noisy_sigma: float = 0.5
    """The noise's first spread, with "noisy" alone, at least 0."""
    max_epsilon: float = 0.4
    """Exploration of the most random row, the epsilon of eps ** (1 + alpha * i / (N - 1)), in [0, 1]."""
    epsilon_alpha: float = 7.0
    """How fast exploration falls from row to row, the alpha of the same formula, at least 0."""
    warmup_steps: int = 1_000
    """Env steps of all actors together with random actions before the learner starts [50,000]."""
    block_steps: int = 16
    """Steps of each of its env rows that an actor takes before it sends what came of them [50]."""
    update_param_interval: int = 400
    """Env steps of one actor (its rows counted together) between two looks for newer weights."""
    memory_size: int = 100_000
    """Windows that the replay memory holds [2,000,000]."""
    priority_exponent: float = 0.3
    """Exponent alpha of the sampling probabilities p ** alpha / sum p ** alpha, in [0, 1]; 0 is uniform [0.6]."""
    importance_sampling_exponent: float = 0.4
    """Exponent beta of the importance weights at the start, in [0, 1]; it grows to 1."""
    importance_annealing_steps: int = 10_000
    """Updates after which beta is 1."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Units of each layer before value and advantage part [a convolutional network]."""
    conv_channels: tuple[int, ...] = (16, 32, 32)
    """Channels of the convolutions that pictures in the observations go through first; each halves the picture."""
    layer_norm: bool = True
    """Whether each layer is normalised before its ReLU [no]."""
    batch_size: int = 64
    """Rows of one update [512]."""
    samples_per_insert: float = 32.0
    """Rows trained per row collected [about 0.8]; holds whatever the machine's speed."""
    learning_rate: float = 1e-3
    """Adam's step size at the start [RMSProp, 6.25e-5]."""
    adam_epsilon: float = 1e-4
    """Adam's epsilon: the larger it is, the smaller are the steps once gradients are small [1.5e-7]."""
    final_learning_rate: float = 2e-5
    """Adam's step size after annealing_steps; it falls linearly."""
    annealing_steps: int = 50_000
    """Env steps until the learning rate has reached its final value."""
    max_gradient_norm: float = 40.0
    """Gradients are scaled down to this Euclidean norm."""
    target_update_interval: int = 1
    """Updates between two moves of the target network [2,500]."""
    target_update_rate: float = 0.02
    """How far the target moves towards the online network, in (0, 1]; 1 copies it [1]."""
    averaging_rate: float = 0.002
    """How far the policy's averaged weights move towards the online network each update, in (0, 1]; 1 copies it [1]."""
    evaluation_interval: int = 1_000
    """Env steps between two greedy evaluations."""
    evaluation_episodes: int = 20
    """Greedy episodes per evaluation, always from the same starts, which no actor gets."""
    keep_best: bool = True
    """Whether learn() ends with the best evaluated weights in place (else with the last)."""
    checkpoint_interval: int = 10_000
    """Env steps between two checkpoints in the run folder."""
    log_interval: int = 1_000
    """Env steps between two rows of progress.csv."""
    run_folder: str | None = None
    """Folder for logs and checkpoints; None means runs/<id>_<time>, made when first needed."""
    max_restarts: int = 3
    """Exceptions in a row, without a delivered block, after which an actor's exception reaches the caller."""
    watchdog_seconds: float = 60.0
    """Seconds without a block after which a warning names the actors that are waited for."""
    ray_address: str | None = None
    """Of the Ray cluster to join, such as "auto" or "host:6379"; None takes RAY_ADDRESS, or starts Ray on this machine.
    A Ray that the program has started itself is used as it is."""
    ray_cpus: float = 1.0
    """Cores that Ray sets aside for each actor."""
    ray_resources: dict[str, float] = field(default_factory=dict)
    """What else Ray sets aside for each actor, by name: an actor lives only on a machine that offers it."""
    ray_placement: str = "SPREAD"
    """Where Ray puts actors: "SPREAD" (evenly over the machines) or "DEFAULT" (on few machines first)."""

    def __post_init__(self) -> None:
        """Refuse values that no run could work with."""
        for name in ("hidden_sizes", "conv_channels"):
            object.__setattr__(self, name, _sizes(name, getattr(self, name)))
        object.__setattr__(self, "ray_resources", _amounts(self.ray_resources))
        for name, (kind, legal, holds) in _RULES.items():
            _check(name, getattr(self, name), kind, legal, holds)
        if self.memory_size < max(self.batch_size, self.warmup_steps):
            raise ValueError(
                f"memory_size must be at least batch_size ({self.batch_size}) and warmup_steps "
                f"({self.warmup_steps}), not {self.memory_size}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as JSON types."""
        return {**dataclasses.asdict(self), **{n: list(getattr(self, n)) for n in ("hidden_sizes", "conv_channels")}}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> ApeXConfig:
        """Build the record from JSON types; an unknown name is a ValueError that lists the legal ones."""
        names = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(settings) - set(names))
        if unknown:
            raise ValueError(f"unknown setting {unknown[0]!r}; legal are {', '.join(names)}")
        return cls(**settings)

    @classmethod
    def preset(cls, env_id: str) -> ApeXConfig:
        """Give the tuned settings of an id, or the defaults where no preset file exists."""
        return cls.from_dict(_preset(env_id.split(":")[-1].replace("/", "_")))


def _preset(name: str) -> dict[str, Any]:
    """Read a preset file: those of the preset that it is "like", if it names one, and then its own settings."""
    file = resources.files("agents.apex") / "presets" / f"{name}.json"
    settings = json.loads(file.read_text()) if file.is_file() else {}
    return {**(_preset(settings.pop("like")) if "like" in settings else {}), **settings}


def _sizes(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)) or not all(_is_int(size) and 0 < size <= MOST_UNITS for size in value):
        raise ValueError(f"{name} must be integers from 1 to {MOST_UNITS} such as (64, 64), not {value!r}")
    return tuple(int(size) for size in value)


def _amounts(value: Any) -> dict[str, float]:
    good = isinstance(value, dict) and all(_is_number(amount) and amount >= 0 for amount in value.values())
    if not good or not all(isinstance(name, str) for name in value):
        raise ValueError(
            f'ray_resources must be amounts of at least 0 by name, such as {{"simulator": 1}}, not {value!r}'
        )
    return {name: float(amount) for name, amount in value.items()}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _check(name: str, value: Any, kind: Any, legal: str, holds: Any) -> None:
    if not (kind(value) and holds(value)):
        raise ValueError(f"{name} must be {legal}, not {value!r}")


def _integer(low: int, high: int = MOST_STEPS) -> tuple:
    return (_is_int, f"an integer from {low} to {high}", lambda value: low <= value <= high)


def _one_of(names: tuple[str, ...]) -> tuple:
    return (lambda value: isinstance(value, str), " or ".join(map(repr, names)), names.__contains__)


_POSITIVE = (_is_number, "a number above 0", lambda value: value > 0)
_NOT_NEGATIVE = (_is_number, "a number of at least 0", lambda value: value >= 0)
_UNIT = (_is_number, "a number from 0 to 1", lambda value: 0 <= value <= 1)
_RATE = (_is_number, "a number above 0 and at most 1", lambda value: 0 < value <= 1)
_FLAG = (lambda value: isinstance(value, bool), "True or False", lambda value: True)
_RULES = {
    "cluster": _one_of(CLUSTERS),
    "num_actors": _integer(1, 10**4),
    "envs_per_actor": _integer(1, 10**5),
    "n_step": _integer(1, 10**4),
    "gamma": _UNIT,
    "reward_scale": _POSITIVE,
    "exploration": _one_of(EXPLORATIONS),
    "noisy_sigma": _NOT_NEGATIVE,
    "max_epsilon": _UNIT,
    "epsilon_alpha": _NOT_NEGATIVE,
    "warmup_steps": _integer(1),
    "block_steps": _integer(1, 10**5),
    "update_param_interval": _integer(1),
    "memory_size": _integer(1, 10**9),
    "priority_exponent": _UNIT,
    "importance_sampling_exponent": _UNIT,
    "importance_annealing_steps": _integer(1),
    "layer_norm": _FLAG,
    "batch_size": _integer(1, 10**6),
    "samples_per_insert": _POSITIVE,
    "learning_rate": _NOT_NEGATIVE,
    "final_learning_rate": _NOT_NEGATIVE,
    "adam_epsilon": _POSITIVE,
    "annealing_steps": _integer(1),
    "max_gradient_norm": _POSITIVE,
    "target_update_interval": _integer(1),
    "target_update_rate": _RATE,
    "averaging_rate": _RATE,
    "evaluation_interval": _integer(1),
    "evaluation_episodes": _integer(1, 10**5),
    "keep_best": _FLAG,
    "checkpoint_interval": _integer(1),
    "log_interval": _integer(1),
    "run_folder": (lambda value: value is None or isinstance(value, (str, Path)), "a path or None", lambda value: True),
    "max_restarts": _integer(0),
    "watchdog_seconds": _POSITIVE,
    "ray_address": (lambda value: value is None or isinstance(value, str), "an address or None", lambda value: True),
    "ray_cpus": _NOT_NEGATIVE,
    "ray_placement": _one_of(PLACEMENTS),
}
