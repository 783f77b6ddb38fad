"""Play an environment with the keyboard: the arrow keys (or W A S D), Escape to leave.

GridWorld waits for a key, the cart-pole and the robot do not. In other environments with discrete actions the keys
1 to 9 are the first nine actions, unless the environment brings keys along (``get_keys_to_action``).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from gym_custom.programs.arguments import (
    WRONG,
    Parser,
    WrongArguments,
    add_env,
    find_own_modules,
    natural,
    positive,
    require_pictures,
)
from gym_custom.programs.screens import open_screen, screen_is_there
from gym_custom.window import load_pygame

EXAMPLES = """examples:
  %(prog)s --env MyEnv-v0
  %(prog)s --env NumpyCartPole-v1 --fps 15
  %(prog)s --env GridWorld-v0 --env-kwargs layout:maze slip:0.2 --output maze.gif
"""
REST = -1  # no key is pressed, where the world has no action for it
LETTERS = {"RIGHT": "d", "DOWN": "s", "LEFT": "a", "UP": "w"}


class Controls(NamedTuple):
    """How the keyboard steers a world."""

    keys: dict[Any, int]  # tuples of keys that are pressed together: names as in pygame.K_LEFT, when read its codes
    rest: int = 0  # the action while no key is pressed
    waits: bool = False  # whether the world stands still then
    fps: int | None = None  # steps a second, None for those of the environment


WORLDS = {
    "gym_custom.cartpole": Controls({("LEFT",): 0, ("RIGHT",): 1}, rest=REST, fps=25),
    "gym_custom.gridworld": Controls({("RIGHT",): 0, ("DOWN",): 1, ("LEFT",): 2, ("UP",): 3}, waits=True),
    "gym_custom.my_env": Controls(
        {("LEFT",): 0, ("RIGHT",): 2, ("LEFT", "UP"): 6, ("UP",): 7, ("RIGHT", "UP"): 8}, rest=1
    ),
}


def parser(prog: str) -> Parser:
    """The command line."""
    parse = Parser(prog=prog, description=__doc__, epilog=EXAMPLES)
    add_env(parse)
    add = parse.add_argument
    add("--fps", type=positive, metavar="N", help="steps a second (default: the world's; cart-pole: half of them)")
    add("--seed", type=natural, metavar="N", help="of each episode (default: every episode is another one)")
    add("--output", type=Path, metavar="FILE", help="also write a .gif or .mp4 file")
    return parse


def main(argv: list[str] | None = None, prog: str = "python -m gym_custom play") -> int:
    """Plays until Escape; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    find_own_modules()
    parse = parser(prog)
    try:
        arguments = parse.parse_args(argv)
        require_pictures(arguments.env)
        if not screen_is_there():
            raise WrongArguments("there is no screen here, so there are no keys; demo writes films without one")
        env = gym.make(arguments.env, **dict(arguments.env_kwargs), render_mode="rgb_array")
        controls = controls_of(env, arguments.env)
        fps = arguments.fps or controls.fps or int(env.metadata.get("render_fps") or 30)
        recorder = None if arguments.output is None else open_screen(arguments.output, arguments.env, fps)
    except WRONG as error:
        return parse.refuse(error)
    try:
        if recorder is None:
            steer(env, controls, fps, arguments.seed)
        else:
            with recorder:
                steer(Recorded(env, recorder), controls, fps, arguments.seed)
    except KeyboardInterrupt:
        return 130
    finally:
        env.close()
    if arguments.output is not None and arguments.output.exists():
        print(f"{arguments.output} ({arguments.output.stat().st_size / 1024:.0f} KiB)")
    return 0


def controls_of(env: gym.Env, env_id: str) -> Controls:
    """The controls of a world, those that an environment brings along, or the keys 1 to 9."""
    known = WORLDS.get(type(env.unwrapped).__module__)
    if known is not None and isinstance(env.action_space, gym.spaces.Discrete):
        return known._replace(keys=key_codes(with_letters(known.keys)))
    if env.has_wrapper_attr("get_keys_to_action"):
        return Controls(env.get_wrapper_attr("get_keys_to_action")())
    if isinstance(env.action_space, gym.spaces.Discrete):
        first = range(min(9, int(env.action_space.n)))
        return Controls(key_codes({(str(i + 1),): int(env.action_space.start) + i for i in first}), waits=True)
    raise WrongArguments(f"{env_id} has the action space {env.action_space}, which keys cannot steer")


def with_letters(keys: dict[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    """The same keys, and W A S D in place of the arrows."""
    return {**keys, **{tuple(LETTERS[key] for key in combination): action for combination, action in keys.items()}}


def key_codes(keys: dict[tuple[str, ...], int]) -> dict[tuple[int, ...], int]:
    """The same keys by pygame's codes."""
    pygame = load_pygame()
    return {tuple(getattr(pygame, f"K_{key}") for key in combination): action for combination, action in keys.items()}


def steer(env: gym.Env, controls: Controls, fps: int, seed: int | None) -> None:
    """Plays with Gymnasium's own loop and prints how each episode ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses matplotlib, for plots that are not drawn here
        from gymnasium.utils.play import play  # loads pygame

    steps, total = 0, 0.0

    def count(before: Any, after: Any, action: Any, reward: Any, terminated: bool, truncated: bool, info: Any) -> None:
        nonlocal steps, total
        steps, total = steps + 1, total + float(reward)
        if terminated or truncated:
            print(f"Episode finished after {steps} timesteps, return {total:g}")
            steps, total = 0, 0.0

    play(
        Resting(env) if controls.rest == REST else env,
        fps=fps,
        keys_to_action=controls.keys,
        noop=controls.rest,
        wait_on_player=controls.waits,
        seed=seed,
        callback=count,
    )


class Resting(gym.Wrapper):
    """Takes the action REST as left and right in turn, which leaves a cart about where it is."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self._next = 0

    def step(self, action: Any) -> Any:
        """One step."""
        if action == REST:
            action, self._next = self._next, 1 - self._next
        return self.env.step(action)


class Recorded(gym.Wrapper):
    """Hands each picture to a screen as well."""

    def __init__(self, env: gym.Env, screen: Any):
        super().__init__(env)
        self._screen = screen

    def render(self) -> Any:
        """The picture."""
        frame: Any = self.env.render()
        self._screen.show(frame)
        return frame
