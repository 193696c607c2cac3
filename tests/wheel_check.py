"""Build the wheel, install it alone into an empty environment, run every verb and the blocks of the README there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)

# Every verb that needs no extra, in an order in which each finds what it reads.
VERBS = """
--version
methods
help aggregate
datasets
datasets list
datasets show rte
datasets import jigsaw toxic.csv --cache cache
simulate --tasks 200 --seed 1 --out crowd
aggregate crowd/labels.csv --out r.csv --model-out people.model --soft-out soft.npz
aggregate crowd/labels.csv -m majority-vote --out r.tsv
aggregate crowd/labels.csv -m majority-vote --out r.json.gz
aggregate crowd/labels.csv -m majority-vote --out r.ndjson.zst
aggregate crowd/labels.csv -m majority-vote --out r.parquet
aggregate crowd/labels.csv -m cc-rasch --checkpoint kept --out r.csv
report crowd/labels.csv --truth crowd/truth.csv --out page.html
compare crowd/labels.csv --truth crowd/truth.csv
annotators crowd/labels.csv --out people.csv
check crowd/labels.csv --json
plan crowd/labels.csv --budget 20 --out again.csv
explain crowd/labels.csv --task task-000000000000
predict people.model crowd/labels.csv --out new.csv
score r.csv --truth crowd/truth.csv
watch crowd/labels.csv --rounds 1 --out watched
convert form.csv --question damage --out rows.csv
audit start crowd/labels.csv --find 1=0.5 --flag-cost 30 --confidence 0.6 --plan audit.json --review-out round.csv
audit status audit.json
audit continue audit.json --answers answers.csv --who ann --review-out round-2.csv
audit repeat audit.json --share 0.5 --review-out again.csv
audit finish audit.json --out proved.csv --certificate certificate.json
audit verify audit.json certificate.json
"""
# And those that do, with the extra that they must name.
EXTRAS = {
    "aggregate crowd/labels.csv --out r.xlsx": "rarevote[excel]",
    "aggregate crowd/labels.csv --out r.arrow": "rarevote[arrow]",
    "aggregate crowd/labels.csv --engine dask --out results": "rarevote[dask]",
    "audit review audit.json --no-browser": "rarevote[workbench]",
    "review round.csv --no-browser": "rarevote[workbench]",
    "pull label-studio --url http://127.0.0.1:9 --project 1 --out export.json": "rarevote[live]",
    "push label-studio r.csv --export export.json --url http://127.0.0.1:9 --project 1": "rarevote[live]",
    "study theory --methods majority-vote --seeds 1 --items 80 --jobs 1 --out study": "rarevote[study]",
    "datasets fetch rte --cache empty-cache": "rarevote[study]",
}
# And what the study does once its extra is there.
STUDY = """
study synthetic --methods majority-vote --seeds 1 --tasks 40 --jobs 1 --out study
study theory --methods majority-vote --seeds 1 --items 80 --jobs 1 --out study
study speed --methods majority-vote --sizes 1000 --out study
simulate --tasks 40 --workers 8 --seed 1 --out data/rte
study paper --data data --methods majority-vote --jobs 1 --no-ablation --out study
study gold --data data --datasets rte --methods majority-vote --seeds 1 --jobs 1 --out study
study features --data sets --contenders votes,features --votes 1 --seeds 1 --jobs 1 --out study
"""


def try_verbs(program: Path, folder: Path) -> None:
    """Run every verb in a folder; those that need an extra must say which, in one line."""
    folder.mkdir()
    shutil.copy(REPOSITORY / "tests" / "io" / "platforms" / "fixtures" / "mturk_form.csv", folder / "form.csv")
    votes = (f"{item},{worker},{(item + worker) % 2}\n" for item in range(40) for worker in range(4))
    made = folder / "sets" / "made"
    made.mkdir(parents=True)
    rows = [(item, worker, (item + worker) % 2) for item in range(60) for worker in range(3)]
    (made / "labels.csv").write_text("task,worker,label\n" + "".join(f"{i},{w},{y}\n" for i, w, y in rows))
    (made / "truth.csv").write_text("task,label\n" + "".join(f"{item},{item % 3 % 2}\n" for item in range(60)))
    (made / "features.csv").write_text("task,a\n" + "".join(f"{item},{item % 7}\n" for item in range(60)))
    (folder / "toxic.csv").write_text("id,worker,toxic\n" + "".join(votes))
    for line in VERBS.split("\n"):
        if line:
            run(program, *line.split(), folder=folder)
        if "--review-out round.csv" in line:  # which an expert answers
            asked = [row.split(",")[0] for row in (folder / "round.csv").read_text().splitlines()[1:]]
            (folder / "answers.csv").write_text("task,label\n" + "".join(f"{task},1\n" for task in asked))
    for line, extra in EXTRAS.items():
        done = subprocess.run([program, *line.split()], cwd=folder, env=_bare(), capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), f"{line}: {done.stderr}"
        assert f"pip install '{extra}'" in done.stderr, f"{line}: {done.stderr}"


def run(*command: str | Path, folder: Path) -> str:
    result = subprocess.run([str(part) for part in command], cwd=folder, env=_bare(), capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def _bare() -> dict[str, str]:
    """An environment into which nothing of the checkout leaks."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "PATH", "HOME", "LANG"))}


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
        try_verbs(scripts / "rarevote", place / "verbs")
        run(scripts / "python", "-m", "pip", "install", "--quiet", f"{wheel}[study]", folder=place)
        for line in STUDY.strip().split("\n"):
            run(scripts / "rarevote", *line.split(), folder=place / "verbs")
        text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
        votes = [line.strip("|").replace("|", ",").replace(" ", "") for line in TABLE.findall(text)[0].splitlines()]
        for number, (language, code) in enumerate(BLOCK.findall(text)):
            folder = place / f"block-{number}"
            folder.mkdir()
            (folder / "votes.csv").write_text("\n".join([votes[0], *votes[2:]]) + "\n", encoding="utf-8")
            if language == "bash":
                run("bash", "-euc", f'PATH="{scripts}:$PATH"\n{code}', folder=folder)
            elif language == "python":
                run(scripts / "python", "-c", code, folder=folder)
        print(f"{wheel.name}: installs alone; every verb and every block of the README runs")


if __name__ == "__main__":
    main()
