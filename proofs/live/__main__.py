"""The live verbs against a real Label Studio (make prove-live; at most 15 minutes).

    python -m proofs.live [--environment .venv-live] [--kills 3] [--seed 0]

Label Studio comes from the package index into an environment of its own and starts on 127.0.0.1 with a fresh folder.
Four people sign up and annotate; their votes are pulled, aggregated and pushed, twice; push and watch are killed
(SIGKILL) at random moments and started again; an audit runs through a second project, is killed between, and ends in a
certificate that `rarevote audit verify` accepts. Writes docs/evidence/live.csv, one row a claim; ends with 1 if one
fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import evidence

from proofs.live.server import CONTROL, Person, install, listens_on, running, sign_up

REPOSITORY = Path(__file__).resolve().parents[2]
N_TASKS, N_LARGE = 30, 600
SKILLS = {"ann": 0.95, "bob": 0.9, "cy": 0.85, "dee": 0.3}


class Proof:
    """Claims that were checked, and the command line that they are about."""

    def __init__(self, url: str, folder: Path, lead: Person, dice: random.Random) -> None:
        self.url, self.folder, self.lead, self.dice = url, folder, lead, dice
        self.rows: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._begin = time.monotonic()

    def claim(self, name: str, expected: Any, found: Any) -> None:
        """A row of the evidence."""
        now = time.monotonic()
        seconds, self._begin = now - self._begin, now
        holds = expected == found
        shown = [text if len(text := str(value)) < 60 else f"{len(value)} entries" for value in (expected, found)]
        self.rows.append({"claim": name, "expected": shown[0], "found": shown[1], "holds": "yes" if holds else "no",
                          "seconds": f"{seconds:.1f}"})  # fmt: skip
        print(f"{'ok' if holds else 'FAILED'}: {name}: {shown[1]} ({seconds:.1f} s)", flush=True)

    def start(self, *words: str | Path, token: str | None = None) -> subprocess.Popen[str]:
        """The command line, in a process of its own; the token is in its environment and nowhere else."""
        program = [sys.executable, "-m", "rarevote", *map(str, words)]
        variables = {**os.environ, "LABEL_STUDIO_API_KEY": token or self.lead.token, "LABEL_STUDIO_URL": self.url,
                     "NO_COLOR": "1"}  # fmt: skip
        return subprocess.Popen(
            program, cwd=self.folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *words: str | Path, token: str | None = None, code: int = 0) -> str:
        """What it says."""
        process = self.start(*words, token=token)
        said, _ = process.communicate()
        self.said.append(said)
        assert process.returncode == code, said
        return said

    def figures(self, *words: str | Path) -> dict[str, Any]:
        """What it says as JSON, in the last of its lines that are."""
        said = [line for line in self.run(*words, "--json").splitlines() if line.startswith("{")]
        return dict(json.loads(said[-1]))

    def kill(self, *words: str | Path, when: Callable[[], bool]) -> None:
        """Start it, and kill it as soon as something holds; it may end before."""
        process = self.start(*words)
        while process.poll() is None and not when():
            time.sleep(0.01)
        title = Path(f"/proc/{process.pid}/cmdline")
        if title.exists():
            self.said.append(title.read_bytes().decode(errors="replace"))
        process.kill()
        said, _ = process.communicate()
        self.said.append(said)

    def n_predictions(self, project: int) -> int:
        """How many predictions of ours a project has, as its own counter says."""
        answer = self.lead.browser.get(f"/api/projects/{project}/model-versions/")
        answer.raise_for_status()
        return int(answer.json().get("rarevote", 0))

    def own_predictions(self, project: int) -> Counter[int]:
        """How many predictions of ours each task has."""
        answer = self.lead.browser.get("/api/predictions/", params={"project": project})
        answer.raise_for_status()
        return Counter(one["task"] for one in answer.json() if one["model_version"] == "rarevote")


def truth(text: str) -> str:
    """What a task shows is what it is: every fifth is a defect."""
    return "defect" if int(text.split()[-1]) % 5 == 0 else "sound"


def said_by(skill: float, text: str, dice: random.Random) -> str:
    right = truth(text)
    return right if dice.random() < skill else {"defect": "sound", "sound": "defect"}[right]


def people_annotate(proof: Proof, people: Mapping[str, Person], project: int) -> dict[tuple[int, str], str]:
    cast = {}
    for task in proof.lead.tasks(project):
        for name, person in people.items():
            label = said_by(SKILLS[name], task["data"]["text"], proof.dice)
            person.annotate(task["id"], label)
            cast[task["id"], person.email] = label
    return cast


def votes_in(path: Path) -> dict[tuple[int, str], str]:
    return {
        (task["id"], one["completed_by"]["email"]): one["result"][0]["value"]["choices"][0]
        for task in json.loads(path.read_text())
        for one in task["annotations"]
    }


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def pull_and_push(proof: Proof, people: Mapping[str, Person], project: int) -> None:
    cast = people_annotate(proof, people, project)
    proof.claim("four people annotate", N_TASKS * 4, len(cast))
    pull = ("pull", "label-studio", "--project", str(project), "--out", "export.json")
    proof.run(*pull)
    proof.claim("pull: every vote under its annotator's name", cast, votes_in(proof.folder / "export.json"))
    proof.run("aggregate", "export.json", "--out", "result.csv", "-q")
    push = ("push", "label-studio", "result.csv", "--export", "export.json", "--project", str(project),
            "--column", "p_defect")  # fmt: skip
    for _ in range(2):
        proof.run(*push)
    once = Counter({task["id"]: 1 for task in proof.lead.tasks(project)})
    proof.claim("pushed twice: one prediction per task", once, proof.own_predictions(project))
    results = {int(row["task"]): row for row in rows_of(proof.folder / "result.csv")}
    shown = {
        task["id"]: task["predictions"][0]["result"][0]["value"]["choices"][0] for task in proof.lead.tasks(project)
    }
    proof.claim("predictions are the labels", {task: row["label"] for task, row in results.items()}, shown)
    ordered = proof.lead.tasks(project, ordering=["-tasks:data.p_defect"])
    numbers = [task["data"]["p_defect"] for task in ordered]
    proof.claim("the server sorts by the column", sorted(numbers, reverse=True), numbers)
    first = ordered[0]["id"]
    people["ann"].annotate(first, "defect")
    said = proof.figures(*pull)
    proof.claim("a further pull fetches what changed", (False, N_TASKS * 4 + 1), (said["whole"], said["annotations"]))
    annotation = proof.lead.tasks(project)[0]["annotations"][0]["id"]
    proof.lead.browser.delete(f"/api/annotations/{annotation}/").raise_for_status()
    said = proof.figures(*pull)
    proof.claim("a deleted annotation is gone after a pull", N_TASKS * 4, said["annotations"])


def kill_push(proof: Proof, kills: int) -> int:
    """A project of more than one batch of predictions; returns its number."""
    people = {str(one["email"]): int(one["id"]) for one in proof.lead.browser.get("/api/users/").json()}
    tasks = []
    for number in range(N_LARGE):
        text = f"rail {number}"
        annotations = [
            {"result": [{**CONTROL, "value": {"choices": [said_by(skill, text, proof.dice)]}}],
             "completed_by": people[f"{name}@example.org"], "ground_truth": False}
            for name, skill in SKILLS.items()
        ]  # fmt: skip
        tasks.append({"data": {"text": text}, "annotations": annotations})
    project = proof.lead.project("large", tasks)
    proof.run("pull", "label-studio", "--project", str(project), "--out", "large.json")
    proof.run("aggregate", "large.json", "--out", "large.csv", "-q")
    push = ("push", "label-studio", "large.csv", "--export", "large.json", "--project", str(project))
    proof.run(*push)
    parts = []
    for number in range(kills):
        # While the old ones are gone and the new ones are not all there: at once, or once some are.
        least = 500 * (number % 2)
        proof.kill(*push, when=lambda least=least: least <= proof.n_predictions(project) < N_LARGE)  # type: ignore[misc]
        parts.append(proof.n_predictions(project))
        if parts[-1] < N_LARGE:
            continue
        proof.run(*push)
    proof.claim("push killed in the middle", [True] * kills, [part < N_LARGE for part in parts])
    proof.rows[-1]["found"] = f"left {parts} of {N_LARGE}"
    proof.run(*push)
    once = Counter({task["id"]: 1 for task in json.loads((proof.folder / "large.json").read_text())})
    proof.claim(f"push resumed after {kills} kills: one prediction per task", once, proof.own_predictions(project))
    return project


def kill_watch(proof: Proof, people: Mapping[str, Person], project: int, kills: int) -> None:
    review = proof.lead.project("to review")
    watch = ("watch", "label-studio", "--project", str(project), "--review-project", str(review), "--max-review", "5",
             "--every", "1s", "--out", "watched")  # fmt: skip
    result = proof.folder / "watched" / "result.csv"
    for number in range(kills):
        task = proof.dice.choice(proof.lead.tasks(project))
        people["bob"].annotate(task["id"], truth(task["data"]["text"]))
        before, until = _stamp(result), time.monotonic() + proof.dice.uniform(1.0, 6.0)
        if number % 2:  # anywhere
            proof.kill(*watch, when=lambda until=until: time.monotonic() > until)  # type: ignore[misc]
        else:  # the result is new, and neither push nor memory are
            proof.kill(*watch, when=lambda before=before: _stamp(result) != before)  # type: ignore[misc]
    proof.run(*watch, "--rounds", "2")
    once = Counter({task["id"]: 1 for task in proof.lead.tasks(project)})
    proof.claim(f"watch resumed after {kills} kills: one prediction per task", once, proof.own_predictions(project))
    proof.run("aggregate", "watched/export.json", "--out", "undisturbed.csv", "-q")
    calm, watched = (proof.folder / name for name in ("undisturbed.csv", "watched/result.csv"))
    proof.claim("its result is that of an undisturbed aggregate", calm.read_bytes(), watched.read_bytes())
    asked = [task["data"]["task"] for task in proof.lead.tasks(review)]
    proof.claim("review project: five items, none twice", (5, 5), (len(asked), len(set(asked))))
    for task in proof.lead.tasks(review):
        people["ann"].annotate(task["id"], truth(task["data"]["text"]))
    said = proof.figures(*watch, "--rounds", "1")
    proof.claim("five answers are read as gold", 5, said["answered"])


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def certify(proof: Proof, people: Mapping[str, Person], project: int) -> None:
    expert = people["ann"]
    review = proof.lead.project("audit")
    (proof.folder / "audit").mkdir()
    proof.run("pull", "label-studio", "--project", str(project), "--out", "audit/labels.json")
    proof.run("audit", "start", "audit/labels.json", "--find", "defect=0.8", "--confidence", "0.8", "--flag-cost", "2",
              "--plan", "audit/plan.json", "--review-out", "audit/round.json",
              "--review-as", "label-studio")  # fmt: skip
    watch = ("watch", "audit/plan.json", "--review-project", str(review), "--every", "1s", "--out", "proved")
    rounds = 0
    for _ in range(30):
        until = time.monotonic() + proof.dice.uniform(1.0, 5.0)
        proof.kill(*watch, when=lambda until=until: time.monotonic() > until)  # type: ignore[misc]
        said = proof.run(*watch, "--rounds", "1")
        if "The audit asks for no more reviews" in said:
            break
        rounds += 1
        for task in proof.lead.tasks(review):
            if not task["annotations"]:
                expert.annotate(task["id"], truth(task["data"]["text"]))
    asked = [task["data"]["task"] for task in proof.lead.tasks(review)]
    proof.claim("audit: no item twice in the review project", len(set(asked)), len(asked))
    seen = {key for task in proof.lead.tasks(review) for key in task["data"]}
    labels = json.loads((proof.folder / "audit" / "labels.json").read_text())
    texts = {str(task["id"]): str(task["data"]["text"]) for task in labels}
    proof.claim("audit: the expert sees neither label nor score", {"task", "text"}, seen)
    verdict = proof.figures("audit", "verify", "audit/plan.json", "proved/certificate.json")
    proof.claim("audit: the certificate follows from the plan", True, verdict["follows"])
    certificate = json.loads((proof.folder / "proved" / "certificate.json").read_text())
    proof.claim("audit: a list is certified, in rounds", True, bool(certificate["certified"]) and rounds > 1)
    proof.rows[-1]["found"] = f"{certificate['flagged']} of {N_LARGE} flagged, {len(asked)} reviews, {rounds} rounds"
    true = {str(row["task"]) for row in rows_of(proof.folder / "large.csv") if truth(texts[row["task"]]) == "defect"}
    listed = {row["task"] for row in rows_of(proof.folder / "proved" / "result.csv") if row["label"] == "defect"}
    proof.claim("audit: the recall is what is certified, or more", True, len(true & listed) >= 0.8 * len(true))
    proof.rows[-1]["found"] = f"recall {len(true & listed) / len(true):.2f}"
    names = {answer["who"] for one in json.loads((proof.folder / "audit" / "plan.json").read_text())["rounds"]
             for answer in one["answers"] if answer}  # fmt: skip
    proof.claim("audit: answers carry the expert's name", {expert.email}, names)


def legacy_token(proof: Proof, project: int) -> None:
    pull = ("pull", "label-studio", "--project", str(project), "--out", "legacy.json")
    found = proof.lead.browser.get("/api/current-user/token").json()["token"]
    proof.claim("a legacy token is refused by default, and the message says so", True,
                "legacy token is refused" in proof.run(*pull, token=found, code=1))  # fmt: skip
    proof.lead.post("/api/jwt/settings", {"api_tokens_enabled": True, "legacy_api_tokens_enabled": True})
    proof.run(*pull, token=found)
    proof.claim("a legacy token works once it is allowed", True, (proof.folder / "legacy.json").exists())
    proof.said.append(found)  # so that the search below is seen to find
    _no_token(proof, [proof.lead.token], found)


def _no_token(proof: Proof, tokens: list[str], canary: str) -> None:
    texts = [path.read_bytes().decode(errors="replace") for path in proof.folder.rglob("*") if path.is_file()]
    found = sum(token in text for token in tokens for text in [*texts, *proof.said])
    proof.claim("no token in files, output or process titles", 0, found)
    proof.claim("that search finds a text that is there", 1, sum(canary in text for text in proof.said))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=REPOSITORY / ".venv-live")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begin = time.monotonic()
    install(given.environment)
    with running(given.environment) as url, tempfile.TemporaryDirectory(prefix="prove-live-") as name:
        lead = sign_up(url, "lead@example.org")
        people = {one: sign_up(url, f"{one}@example.org") for one in SKILLS}
        proof = Proof(url, Path(name), lead, random.Random(given.seed))
        version = lead.browser.get("/api/version").json()["release"]
        proof.claim("Label Studio runs, on 127.0.0.1 only", {"127.0.0.1"}, listens_on(int(url.rpartition(":")[2])))
        proof.rows[-1]["found"] = version
        proof.rows[-1]["seconds"] = f"{time.monotonic() - begin:.1f}"
        project = lead.project("rails", [{"data": {"text": f"rail {number}"}} for number in range(N_TASKS)])
        pull_and_push(proof, people, project)
        large = kill_push(proof, given.kills)
        kill_watch(proof, people, project, given.kills)
        certify(proof, people, large)
        legacy_token(proof, project)
    proof.claim("within 15 minutes", True, time.monotonic() - begin < 15 * 60)
    proof.rows[-1]["seconds"] = f"{time.monotonic() - begin:.1f}"
    evidence.write("live", proof.rows)
    return int(any(row["holds"] == "no" for row in proof.rows))


if __name__ == "__main__":
    sys.exit(main())
