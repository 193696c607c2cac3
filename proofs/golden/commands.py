"""Commands over the example, simulated crowds and the fixtures: every verb, format, platform, rule and method."""

from __future__ import annotations

import csv
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.command import run_command

from proofs.golden.browser import visit
from proofs.golden.inputs import make_inputs
from proofs.golden.repeatable import REPOSITORY
from rarevote.methods.registry import METHODS

_LISTED = Path(__file__).with_name("commands.txt")

_SUB_VERBS = {
    "audit": ("start", "continue", "status", "finish", "repeat", "verify", "review"),
    "pull": ("label-studio",),
    "push": ("label-studio",),
    "datasets": ("show", "fetch", "import"),
    "study": ("paper", "synthetic", "gold", "features", "theory", "speed"),
}
# Of the fixtures that cannot be read without.
_EXPORT_OPTIONS = {
    "appen.csv": "--question relevant",
    "appen_units.jsonl": "--question relevant",
    "argilla_disk": "--question toxicity",
    "argilla_flat.json": "--question toxicity --include-predictions",
    "argilla_v1.jsonl": "--question toxicity",
    "label_studio.csv": "--question damage",
    "label_studio.json": "--question damage --include-predictions",
    "label_studio_form.json": "--question damage",
    "label_studio_min.json": "--question damage",
    "label_studio_multi.json": "--multilabel",
    "mturk.csv": "--question Answer.about",
    "mturk_form.csv": "--question damage",
    "mturk_json.csv": "--question outside",
    "prodigy_binary.jsonl": "--question SPORT",
    "toloka.tsv": "--question result",
    "wide_judges.csv": "--wide",
    "wide_raters.csv": "--wide",
}


def _cases() -> Iterator[tuple[str, list[str]]]:
    from rarevote.cli import VERBS

    yield from _listed().items()
    for verb in VERBS:
        yield f"help-{verb}", [f"{verb} --help", *(f"{verb} {sub} --help" for sub in _SUB_VERBS.get(verb, ()))]
    for method in METHODS:
        gold = " --gold labels-gold.csv" if METHODS[method].capabilities.needs_gold else ""
        if method == "rasch":
            gold = " --gold labels-truth.csv"
        kept = " --model-out kept.model" if METHODS[method].capabilities.predict else ""
        if method != "crowdfm":  # whose weights are not shipped
            yield (
                f"method-{method}",
                [f"aggregate labels.csv -m {method}{gold}{kept} --with-posterior --out result.csv"],
            )
    for path in sorted(_folder("platforms/fixtures").iterdir()):
        more = _EXPORT_OPTIONS.get(path.name, "")
        yield (
            f"fixture-{path.name}",
            [
                f"convert {path.name}",
                f"convert {path.name} {more.replace('--wide', '')} --json --out labels.csv",
                f"aggregate {path.name} {more} -m majority-vote --out result.csv",
                f"aggregate {path.name} -m majority-vote --question all --out results",
                f"aggregate {path.name} {more} -m majority-vote --out again.csv --back-out back.json",
            ],
        )
    for path in sorted(_folder("fuzz_seeds").iterdir()):
        yield (
            f"seed-{path.name}",
            [f"aggregate {path.name}", f"audit status {path.name}", f"predict {path.name} labels.csv"],
        )
    for path in sorted(_folder("recorded").glob("*.plan.json")):
        certificate = path.name.replace(".plan.", ".certificate.")
        yield (
            f"recorded-{path.name}",
            [
                f"audit status {path.name}",
                f"audit verify {path.name} {certificate} --labels audited.csv",
                f"audit verify {path.name} {certificate} --json",
            ],
        )


def _listed() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    commands: list[str] = []
    for line in _LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            commands.append(line.strip().removeprefix("rarevote").strip())
        elif line and not line.startswith("#"):
            commands = found.setdefault(line, [])
    return found


def _folder(name: str) -> Path:
    (found,) = (REPOSITORY / "tests").rglob(name)
    return found


CASES = dict(_cases())


def run(name: str, folder: Path, inputs: Path) -> dict[str, str | bytes]:
    """Run the commands of a case; what each printed and how it ended, and the files that are there in the end."""
    make_inputs(inputs)
    commands = CASES[name]
    _copy_inputs(commands, inputs, folder)
    parts: dict[str, str | bytes] = {}
    for number, command in enumerate(commands, 1):
        words = shlex.split(command)
        if words[:1] == ["!rounds"]:
            _answer_rounds(folder, words[1], inputs / words[2], parts)
        elif words[:1] == ["!answer"]:
            _answer(folder / words[1], inputs / words[2], folder / words[3])
        elif words[:1] == ["!visit"]:
            found = visit(words[2:], int(words[1]), folder)
            parts |= {f"{number} {part}": content for part, content in found.items()}
        else:
            _run_words(f"{number}", words, folder, parts)
    return parts | _files(folder, inputs)


def _copy_inputs(commands: list[str], inputs: Path, folder: Path) -> None:
    for word in {word for command in commands for word in shlex.split(command)}:
        source = inputs / word.split("/")[0]
        if word and not word.startswith(".") and source.exists():
            target = folder / source.name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target) if not target.exists() else None


def _run_words(number: str, words: list[str], folder: Path, parts: dict[str, str | bytes]) -> None:
    stdin = b""
    if "<" in words:
        stdin = (folder / words[-1]).read_bytes()
        words = words[:-2]
    if words[:1] == ["!process"]:
        command = [sys.executable, "-m", "rarevote", *words[1:]]
        done = subprocess.run(command, cwd=folder, input=stdin.decode(), capture_output=True, text=True)
    else:
        sys.argv = ["rarevote", *words]
        done = run_command(words, folder=folder, stdin=stdin)
    parts |= {
        f"{number} exit": f"{' '.join(words)}\nexit code {done.returncode}\n",
        f"{number} stdout": done.stdout,
        f"{number} stderr": done.stderr,
    }


def _answer_rounds(folder: Path, plan: str, truth: Path, parts: dict[str, str | bytes]) -> None:
    """Answer every list of an audit by the truth until none comes."""
    number = 1
    while (asked := folder / f"round-{number}.csv").exists():
        _answer(asked, truth, folder / f"answers-{number}.csv")
        words = f"audit continue {plan} --answers answers-{number}.csv --who anna --review-out round-{number + 1}.csv"
        _run_words(f"round {number}", words.split(), folder, parts)
        number += 1


def _answer(asked: Path, truth: Path, answers: Path) -> None:
    """Write what the truth says of the items of a list; an item that it does not name stays open."""
    said = {row["task"]: row["label"] for row in _rows(truth)}
    lines = ["task,label", *(f"{row['task']},{said.get(row['task'], '')}" for row in _rows(asked))]
    answers.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _files(folder: Path, inputs: Path) -> dict[str, str | bytes]:
    """Every file that is not an input as it was."""
    found: dict[str, str | bytes] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder), path.read_bytes()
        given = inputs / name
        if not (given.is_file() and given.read_bytes() == content):
            found[f"file {name.as_posix()}"] = content
    return found
