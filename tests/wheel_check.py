"""Build the wheel, install it alone into an empty environment, and run the blocks of the README there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*command: str | Path, folder: Path) -> str:
    # A bare environment: nothing of the checkout may leak in.
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "PATH", "HOME", "LANG"))}
    result = subprocess.run([str(part) for part in command], cwd=folder, env=kept, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", place, REPOSITORY, folder=place)
        (wheel,) = place.glob("*.whl")
        venv.create(place / "empty", with_pip=True)
        scripts = place / "empty" / ("Scripts" if os.name == "nt" else "bin")
        run(scripts / "python", "-m", "pip", "install", "--quiet", wheel, folder=place)
        shown = run(scripts / "rarevote", "demo", folder=place)
        assert "majority vote" in shown, shown
        assert "CC-Rasch, as published" in shown, shown
        inside = run(scripts / "python", "-c", "import rarevote; print(rarevote.__file__)", folder=place)
        assert str(REPOSITORY) not in inside, inside
        text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
        for number, (language, code) in enumerate(BLOCK.findall(text)):
            folder = place / f"block-{number}"
            folder.mkdir()
            if language == "bash":
                run("bash", "-euc", f'PATH="{scripts}:$PATH"\n{code}', folder=folder)
            elif language == "python":
                run(scripts / "python", "-c", code, folder=folder)
        print(f"{wheel.name}: installs alone, and every block of the README runs")


if __name__ == "__main__":
    main()
