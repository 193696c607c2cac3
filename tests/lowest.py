"""Print the lowest versions of the libraries that pyproject.toml allows, as constraints for pip (make test-lowest).

Tools of the development group are left to pip: only what users install is held to its lowest version.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def lowest() -> Iterator[str]:
    """One line per library, such as ``numpy==1.26.*``."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    for requirement in dict.fromkeys([*project["dependencies"], *extras]):
        found = _REQUIREMENT.match(requirement)
        assert found, f"{requirement}: no lowest version"
        yield f"{found[1]}=={found[2]}.*"


if __name__ == "__main__":
    print("\n".join(sorted(set(lowest()))))
