"""Check worlds against the contract: the rules are read and played, and the drivers compared with each other.

Without names, the worlds that come with this package are checked. Yours may be a registered id, module:id, or a
function module:make_world. ``gym_custom.check_world`` is the same as a function, to which states and a policy can be
given that lead it to places that random play does not reach.
"""

from __future__ import annotations

import gymnasium as gym

from gym_custom import check_world, load_world
from gym_custom.checks import WorldCheckError
from gym_custom.programs.arguments import WRONG, Parser, find_own_modules, pair, require_id
from gym_custom.world import World

EXAMPLES = """examples:
  %(prog)s
  %(prog)s MyEnv-v0 --env-kwargs n_pedestrians:8
  %(prog)s hopper:make_world hopper:LunarHopper-v0
"""


def parser(prog: str) -> Parser:
    """The command line."""
    parse = Parser(prog=prog, description=__doc__, epilog=EXAMPLES)
    parse.add_argument("worlds", nargs="*", metavar="WORLD", help="an id, module:id or module:make_world")
    parse.add_argument(
        "--env-kwargs", nargs="+", default=[], type=pair, metavar="NAME:VALUE", help="arguments of the worlds"
    )
    return parse


def main(argv: list[str] | None = None, prog: str = "python -m gym_custom check") -> int:
    """Checks and prints a line a world; 0 where all keep the contract, 1 where one does not, 2 for wrong arguments."""
    find_own_modules()
    parse = parser(prog)
    try:
        arguments = parse.parse_args(argv)
        kwargs = dict(arguments.env_kwargs)
        worlds = {name: load(name, kwargs) for name in arguments.worlds or own_ids()}
    except WRONG as error:
        return parse.refuse(error)
    try:
        kept = [keeps_contract(name, world) for name, world in worlds.items()]
    except KeyboardInterrupt:
        return 130
    return 0 if all(kept) else 1


def own_ids() -> list[str]:
    """The ids of this package."""
    return [i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom.")]


def load(name: str, kwargs: dict[str, object]) -> World:
    """The world behind an id or a function's name."""
    if not name.partition(":")[2].isidentifier():
        require_id(name)
    return load_world(name, **kwargs)[0]


def keeps_contract(name: str, world: World) -> bool:
    """Whether a world keeps the contract; says so, or what is wrong."""
    print(f"{name:<20}", end=" ", flush=True)
    try:
        check_world(world)
    except WorldCheckError as error:
        print(error)
        return False
    print("keeps the contract")
    return True
