"""Print the lowest versions of the libraries that pyproject.toml allows, as constraints for pip (make test-lowest).

Tools of the development group are left to pip: only what users install is held to its lowest version, and the frames
that they hand over.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
_FRAMES = ("pandas", "polars")
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def lowest() -> Iterator[str]:
    """One line per library, such as ``numpy==1.26``, which is 1.26.0 and no later one."""
    text = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project = text["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    frames = [line for line in text["dependency-groups"]["dev"] if line.startswith(_FRAMES)]
    for requirement in dict.fromkeys([*project["dependencies"], *extras, *frames]):
        found = _REQUIREMENT.match(requirement)
        assert found, f"{requirement}: no lowest version"
        yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print("\n".join(sorted(set(lowest()))))
