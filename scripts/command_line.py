"""What the command lines of the scripts have in common: the same as those of the package's own programs."""

from gym_custom.programs.arguments import (
    Parser,
    WrongArguments,
    find_own_modules,
    natural,
    pair,
    positive,
    render_modes,
    require_id,
    sentence,
)

__all__ = [
    "Parser",
    "WrongArguments",
    "find_own_modules",
    "natural",
    "pair",
    "positive",
    "render_modes",
    "require_id",
    "sentence",
]
