"""What a plain ``pip install .`` puts on the disk, part by part, into docs/evidence/install_size.csv.

``python -m benchmarks.install_size``: an empty environment, the package without extras, and a sum of file sizes by what
each distribution says it installed. Compiled Python files are counted with their sources.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import evidence

# Distributions below this are summed.
_MIN_MB = 5.0
_SIZES = """
import importlib.metadata, json, pathlib
sizes = {}
for found in importlib.metadata.distributions():
    files = [pathlib.Path(found.locate_file(name)) for name in found.files or ()]
    sizes[found.metadata["Name"]] = sum(path.stat().st_size for path in files if path.is_file())
print(json.dumps(sizes))
"""


def installed_sizes(folder: Path) -> dict[str, float]:
    """Megabytes of every distribution that the package needs, itself included."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", evidence.REPOSITORY], check=True)
    shown = subprocess.run([python, "-c", _SIZES], check=True, capture_output=True, text=True)
    sizes: dict[str, int] = json.loads(shown.stdout)
    return {name: size / 1e6 for name, size in sizes.items() if name not in ("pip", "setuptools")}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rarevote-size-") as folder:
        sizes = installed_sizes(Path(folder) / "venv")
    large = {name: size for name, size in sizes.items() if size >= _MIN_MB}
    rows = [("all", sum(sizes.values()))]
    rows += sorted(large.items(), key=lambda row: -row[1])
    rows.append((f"{len(sizes) - len(large)} others", sum(sizes.values()) - sum(large.values())))
    evidence.write("install_size", [{"part": name, "mb": f"{size:.0f}"} for name, size in rows])


if __name__ == "__main__":
    main()
