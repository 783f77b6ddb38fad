"""What is said where a library is missing that only the extra ``[agents]`` installs."""

from __future__ import annotations


def missing_extra(package: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error that names the extra; a module of our own that is missing stays as it is."""
    if error.name is None or error.name.partition(".")[0] == "agents":
        return error
    return ModuleNotFoundError(f"{package} needs {error.name}: pip install --editable '.[agents]'", name=error.name)
