"""A whole audit by the command line, from labels to a certificate that others can check; and what it refuses."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rarevote import simulate_crowd
from rarevote.audit import Audit
from rarevote.audit.source import labels_sha256, source_record
from tests.command import rarevote, rows

CLASSES = ("sound", "defect")


@pytest.fixture(autouse=True)
def _one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of tests the operating system rolls the dice; what the method reports is quicker than sampling."""
    monkeypatch.setattr("rarevote.decide.sampled.MAX_VOTES", 0)
    monkeypatch.setattr("rarevote.audit.opening.secrets.randbits", lambda _bits: 1)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Labels of 300 items, a third of them defects, and what an expert says of each."""
    made = simulate_crowd(
        300, 40, imbalance=2, votes_per_task=10, p_good=1, p_majority=0, p_minority=0, p_bad=0, hard_share=0.1,
        random_state=0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("crowd") / "labels.csv"
    tasks, workers, labels = made.arrays
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["task", "worker", "label", "text"])
        for task, worker, label in zip(tasks, workers, labels, strict=True):
            writer.writerow([f"t{task}", f"w{worker}", CLASSES[label], f"part {task}"])
    return path, {f"t{task}": CLASSES[code] for task, code in enumerate(made.truth.tolist())}


@pytest.fixture
def folder(crowd: tuple[Path, dict[str, str]], tmp_path: Path) -> Path:
    shutil.copy(crowd[0], tmp_path / "labels.csv")
    return tmp_path


@pytest.fixture
def truth(crowd: tuple[Path, dict[str, str]]) -> dict[str, str]:
    return crowd[1]


def start(folder: Path, *more: str, find: str = "defect=0.9", code: int = 0, list_: str = "round-1.csv") -> Any:
    return rarevote(
        "audit", "start", "labels.csv", "--find", find, "--flag-cost", "3", "--plan", "audit.json", "--review-out",
        list_, *more, folder=folder, code=code,
    )  # fmt: skip


def go_on(folder: Path, answers: str, list_: str, *more: str, code: int = 0) -> Any:
    words = ["audit", "continue", "audit.json", "--answers", answers, "--review-out", list_, *more]
    return rarevote(*words, folder=folder, code=code)


def table(path: Path) -> list[dict[str, str]]:
    return rows(path.read_text(encoding="utf-8"))


def answer(folder: Path, number: int, said: dict[str, str]) -> str:
    """The list of a round filled in, as a file."""
    name = f"answers-{number}.csv"
    lines = [f"{row['task']},{said.get(row['task'], '')}" for row in table(folder / f"round-{number}.csv")]
    (folder / name).write_text("\n".join(["task,label", *lines]) + "\n", encoding="utf-8")
    return name


def run_to_the_end(folder: Path, truth: dict[str, str]) -> int:
    """Answer every list until none comes; the number of items answered."""
    number, n_answered = 1, 0
    while (folder / f"round-{number}.csv").exists():
        n_answered += len(table(folder / f"round-{number}.csv"))
        go_on(folder, answer(folder, number, truth), f"round-{number + 1}.csv")
        number += 1
    return n_answered


def test_a_whole_audit(folder: Path, truth: dict[str, str]) -> None:
    begun = start(folder, "--show", "text")
    assert "300 items" in begun.stderr
    assert "No audit can certify 90% of them with 95% confidence" in begun.stderr
    assert begun.stdout == ""
    review = table(folder / "round-1.csv")
    assert list(review[0]) == ["task", "text", "label"]
    assert all(row["text"] == f"part {row['task'][1:]}" and row["label"] == "" for row in review)
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    drawn = plan["rounds"][0]["tasks"]
    listed = [row["task"] for row in review]
    assert sorted(listed) == sorted(drawn)
    assert listed != drawn
    assert plan["labels_sha256"] == hashlib.sha256((folder / "labels.csv").read_bytes()).hexdigest()
    assert plan["source"]["labels"] == ["labels.csv"]

    n_answered = run_to_the_end(folder, truth)
    state = json.loads(rarevote("audit", "status", "audit.json", "--json", folder=folder).stdout)
    assert (state["reviewed"], state["pending"], state["certified"]) == (n_answered, 0, True)
    assert "CERTIFIED: flag" in rarevote("audit", "status", "audit.json", folder=folder).stdout

    done = rarevote(
        "audit", "finish", "audit.json", "--out", "result.csv", "--certificate", "certificate.json", folder=folder
    )
    assert "CERTIFIED: flag" in done.stderr
    assert done.stdout == ""
    result = {row["task"]: row for row in table(folder / "result.csv")}
    assert list(result) == sorted(truth)
    assert list(result["t0"]) == ["task", "label", "decision", "text"]
    flagged = {task for task, row in result.items() if row["label"] == "defect"}
    defects = {task for task, label in truth.items() if label == "defect"}
    assert len(flagged & defects) >= 0.9 * len(defects)
    assert len(flagged) == state["flagged"] < 300
    assert all(row["label"] == truth[task] for task, row in result.items() if row["decision"] == "expert")
    assert sum(row["decision"] == "expert" for row in result.values()) == n_answered

    checked = rarevote("audit", "verify", "audit.json", "certificate.json", folder=folder)
    assert "follows" in checked.stderr
    _every_change_is_found(folder, defects)


def _every_change_is_found(folder: Path, defects: set[str]) -> None:
    """Any change of plan or certificate is found and named."""
    text = (folder / "audit.json").read_text(encoding="utf-8")
    changed = {name: json.loads(text) for name in ("answer", "order", "weight", "seed", "target")}
    first = {name: plan["rounds"][0] for name, plan in changed.items()}
    place = next(i for i, task in enumerate(first["answer"]["tasks"]) if task in defects)
    first["answer"]["answers"][place]["label"] = "sound"
    first["order"]["tasks"][:2] = first["order"]["tasks"][1::-1]
    first["weight"]["w"][0] += 10**9
    changed["seed"]["seed"] = "00000000000000ff"
    changed["target"]["target"] = "4/5"
    # The same contents in other spacing are the same plan.
    (folder / "spaced.json").write_text(json.dumps(json.loads(text), indent=1), encoding="utf-8")
    rarevote("audit", "verify", "spaced.json", "certificate.json", folder=folder)
    for name, plan in changed.items():
        (folder / f"{name}.json").write_text(json.dumps(plan), encoding="utf-8")
        said = rarevote("audit", "verify", f"{name}.json", "certificate.json", folder=folder, code=1)
        assert "does not follow" in said.stderr, name
    claim = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    (folder / "better.json").write_text(json.dumps({**claim, "target": "19/20"}), encoding="utf-8")
    said = rarevote("audit", "verify", "audit.json", "better.json", "--json", folder=folder, code=1)
    assert "the target" in said.stderr
    assert json.loads(said.stdout)["follows"] is False


def test_start_twice_is_refused(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    before = (folder / "audit.json").read_bytes()
    said = start(folder, code=1)
    assert "already exists" in said.stderr
    assert "never overwritten" in said.stderr
    assert (folder / "audit.json").read_bytes() == before
    # Under another name it is another audit, and says that there was one before.
    go_on(folder, answer(folder, 1, truth), "round-2.csv")
    rarevote(
        "audit", "start", "labels.csv", "--find", "defect=0.9", "--flag-cost", "3", "--plan", "again.json",
        "--review-out", "again.csv", folder=folder,
    )  # fmt: skip
    earlier = json.loads((folder / "again.json").read_text(encoding="utf-8"))["earlier"]
    n_first = len(table(folder / "round-1.csv"))
    assert [(one["class"], one["reviews"]) for one in earlier] == [("defect", n_first)]


def test_answers_that_cannot_be(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    before = (folder / "audit.json").read_bytes()
    task = table(folder / "round-1.csv")[0]["task"]
    for text, words in (
        ("task,label\nnobody,defect\n", "task 'nobody' is not in this audit"),
        (f"task,label\n{task},broken\n", "'broken' is not a class; the classes are defect, sound"),
        ("task,label\n", "no rows"),
        ("task,label\n,defect\n", "1 row has no task"),
    ):
        (folder / "bad.csv").write_text(text, encoding="utf-8")
        said = go_on(folder, "bad.csv", "round-2.csv", code=1)
        assert "bad.csv" in said.stderr
        assert words in said.stderr
        assert (folder / "audit.json").read_bytes() == before
        assert not (folder / "round-2.csv").exists()
    said = go_on(folder, "round-1.csv", "round-1.csv", code=2)
    assert "is the input round-1.csv" in said.stderr
    go_on(folder, answer(folder, 1, truth), "round-2.csv")
    other = CLASSES[truth[task] == "sound"]
    (folder / "bad.csv").write_text(f"task,label\n{task},{other}\n", encoding="utf-8")
    assert "answers are final" in go_on(folder, "bad.csv", "round-3.csv", code=1).stderr


def test_gaps_are_asked_again_and_closed_as_the_worst_case(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    asked = [row["task"] for row in table(folder / "round-1.csv")]
    disputed, blank, unsure = asked[:3]
    lines = [f"{task},{truth[task]}" for task in asked[3:]]
    lines += [f"{disputed},defect", f"{disputed},sound", f"{blank},", f"{unsure},unsure", lines[0]]
    (folder / "answers.csv").write_text("\n".join(["task,label", *lines]), encoding="utf-8")
    said = go_on(folder, "answers.csv", "round-2.csv")
    assert f"two different labels for {disputed}" in said.stderr
    assert "3 drawn items not answered yet" in said.stderr
    assert {row["task"] for row in table(folder / "round-2.csv")} == {disputed, blank, unsure}
    closed = go_on(folder, "answers.csv", "round-3.csv", "--worst-case", "--json")
    state = json.loads(closed.stdout)
    assert (state["worst_cases"], state["reviewed"]) == (3, len(asked) - 3)
    assert not {disputed, blank, unsure} & {row["task"] for row in table(folder / "round-3.csv")}


def test_the_budget_is_kept(folder: Path, truth: dict[str, str]) -> None:
    start(folder, "--budget", "7", "--aim", "estimate")
    assert len(table(folder / "round-1.csv")) == 7
    said = go_on(folder, answer(folder, 1, truth), "round-2.csv")
    assert "the review budget is used up" in said.stderr
    assert not (folder / "round-2.csv").exists()


def test_changed_labels_are_noticed(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    before = (folder / "audit.json").read_bytes()
    with (folder / "labels.csv").open("a", encoding="utf-8") as handle:
        handle.write("t0,w0,defect,part 0\n")
    said = go_on(folder, answer(folder, 1, truth), "round-2.csv", code=1)
    assert "the labels have changed since the audit started" in said.stderr
    assert "labels.csv" in said.stderr
    finish = ["audit", "finish", "audit.json", "--out", "result.csv", "--certificate", "certificate.json"]
    assert "have changed" in rarevote(*finish, folder=folder, code=1).stderr
    assert (folder / "audit.json").read_bytes() == before
    assert not (folder / "result.csv").exists()
    (folder / "labels.csv").unlink()
    assert "labels.csv: no such file" in go_on(folder, "answers-1.csv", "round-2.csv", code=1).stderr


def test_a_plan_of_a_newer_version(folder: Path) -> None:
    start(folder)
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    (folder / "audit.json").write_text(json.dumps({**plan, "version": 3}), encoding="utf-8")
    said = rarevote("audit", "status", "audit.json", folder=folder, code=1)
    assert "audit.json: the plan has version 3; this rarevote reads versions 1 and 2" in said.stderr


def test_gold_leaves_the_population(folder: Path, truth: dict[str, str]) -> None:
    known = dict(list(truth.items())[:30])
    text = "\n".join(["task,label", *(f"{task},{label}" for task, label in known.items())])
    (folder / "known.csv").write_text(text, encoding="utf-8")
    start(folder, "--gold", "known.csv")
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert plan["gold_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert dict(plan["gold"]) == known
    assert {task for one in plan["strata"] for task in one["tasks"]} == truth.keys() - known.keys()
    rarevote("audit", "finish", "audit.json", "--out", "r.csv", "--certificate", "c.json", folder=folder)
    assert {row["task"]: row["label"] for row in table(folder / "r.csv") if row["decision"] == "gold"} == known
    claim = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    assert claim["gold_positives"] == sum(label == "defect" for label in known.values())
    # Positives of the gold count as found, but nothing was reviewed: everything stays flagged.
    assert (claim["certified"], claim["flagged"]) == (False, 270)


def test_lists_for_platforms_are_blind_too(folder: Path) -> None:
    start(folder, "--review-as", "label-studio", "--show", "text", list_="tasks.json")
    records = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert sorted(one["data"]["task"] for one in records) == sorted(plan["rounds"][0]["tasks"])
    assert all(one == {"data": {"task": f"t{n}", "text": f"part {n}"}} for one in records
               for n in [one["data"]["task"][1:]])  # fmt: skip
    (folder / "audit.json").unlink()
    start(folder, "--review-as", "argilla", list_="records.json")
    records = json.loads((folder / "records.json").read_text(encoding="utf-8"))
    assert all(one["fields"] == {"task": one["id"]} and not one["metadata"] for one in records)


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--find", "defect"], 2, "--find must be CLASS=RECALL"),
        (["--find", "broken=0.9"], 2, "'broken' is not a class; the classes are defect, sound"),
        (["--find", "defect=1.2"], 2, "target must be a recall above 0 and at most 1"),
        (["--find", "defect=much"], 2, "target must be a share"),
        (["--find", "defect=0.90000000000000001"], 2, "more than 9 digits"),
        (["--confidence", "1"], 2, "confidence must lie between 0 and 1"),
        (["--aim", "fame"], 2, "--aim must be certificate, estimate"),
        (["--budget", "0"], 2, "budget must be a whole number of at least 1"),
        (["--review-as", "paper"], 2, "--review-as must be table"),
        (["--review-out", "list.pdf"], 1, "cannot write .pdf"),
        (["--flag-cost", "0.01"], 1, "more reviews would cost more"),
    ],
)
def test_what_cannot_be_started_leaves_nothing(folder: Path, more: list[str], code: int, words: str) -> None:
    said = start(folder, *more, code=code)
    assert words in said.stderr
    assert {path.name for path in folder.iterdir()} == {"labels.csv"}


def test_standard_input_cannot_be_audited(folder: Path) -> None:
    said = rarevote(
        "audit", "start", "-", "--find", "defect=0.9", "--plan", "audit.json", "--review-out", "r.csv", folder=folder,
        code=2,
    )  # fmt: skip
    assert "standard input cannot be read again" in said.stderr


def test_labels_and_plan_move_together(folder: Path, truth: dict[str, str], tmp_path: Path) -> None:
    for name in ("data", "audits", "nobody.json"):
        (folder / name).mkdir()
    (folder / "labels.csv").rename(folder / "data" / "labels.csv")
    words = ["--find", "defect=0.9", "--flag-cost", "3", "--review-out", "round-1.csv", "--plan"]
    said = rarevote("audit", "start", "data", *words, "data/audit.json", folder=folder, code=2)
    assert "is in the input folder data" in said.stderr
    rarevote("audit", "start", "data/labels.csv", *words, "audits/audit.json", folder=folder)
    answers = folder / answer(folder, 1, truth)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("data", "audits"):
        (folder / name).rename(moved / name)
    plan = moved / "audits" / "audit.json"
    rarevote("audit", "continue", plan, "--answers", answers, "--review-out", moved / "round-2.csv")
    assert json.loads(rarevote("audit", "status", plan, "--json").stdout)["reviewed"] == len(table(answers))


def test_numbers_stay_numbers(folder: Path, truth: dict[str, str]) -> None:
    """Labels in JSON lines with numbers for names; the answers come as text, as spreadsheets give them."""
    code = {name: number for number, name in enumerate(CLASSES)}
    votes = [
        {"task": int(row["task"][1:]), "worker": row["worker"], "label": code[row["label"]]}
        for row in table(folder / "labels.csv")
    ]
    (folder / "labels.ndjson").write_text("\n".join(map(json.dumps, votes)), encoding="utf-8")
    rarevote(
        "audit", "start", "labels.ndjson", "--find", "1=9/10", "--flag-cost", "3", "--plan", "audit.json",
        "--review-out", "round-1.csv", folder=folder,
    )  # fmt: skip
    said = {task[1:]: str(code[label]) for task, label in truth.items()}
    go_on(folder, answer(folder, 1, said), "round-2.csv")
    rarevote("audit", "finish", "audit.json", "--out", "r.ndjson", "--certificate", "c.json", folder=folder)
    rarevote("audit", "verify", "audit.json", "c.json", folder=folder)
    result = [json.loads(line) for line in (folder / "r.ndjson").read_text(encoding="utf-8").splitlines()]
    by_expert = {row["task"]: row["label"] for row in result if row["decision"] == "expert"}
    reviewed = [row["task"] for row in table(folder / "round-1.csv")]
    assert by_expert == {int(task): int(said[task]) for task in reviewed}


def test_a_lost_list_is_written_again(folder: Path) -> None:
    start(folder)
    first = (folder / "round-1.csv").read_bytes()
    rarevote("audit", "continue", "audit.json", "--review-out", "again.csv", folder=folder)
    assert (folder / "again.csv").read_bytes() == first


def test_answers_in_the_journal_count(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    asked = [row["task"] for row in table(folder / "round-1.csv")]
    entry = {"who": "anna", "when": "2026-01-01T00:00:00+00:00"}
    lines = [json.dumps({"task": task, "label": truth[task], **entry}) for task in asked]
    (folder / "audit.json.answers.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    state = json.loads(rarevote("audit", "status", "audit.json", "--json", folder=folder).stdout)
    assert state["reviewed"] == len(asked)
    rarevote("audit", "finish", "audit.json", "--out", "r.csv", "--certificate", "c.json", folder=folder)
    rarevote("audit", "verify", "audit.json", "c.json", folder=folder)
    kept = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["rounds"][0]["answers"]
    assert {one["who"] for one in kept} == {"anna"}


# --------------------------------------------------------------------------------------------------------------------
# lists and answers of platforms, experts by name, repeats, the page


def label_studio_result(label: str) -> list[dict[str, Any]]:
    return [{"from_name": "quality", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]


def as_export(folder: Path) -> None:
    """The labels as an export of Label Studio, with data of their own, a task of them called as ours."""
    tasks: dict[str, dict[str, Any]] = {}
    for row in table(folder / "labels.csv"):
        number = int(row["task"][1:])
        record = tasks.setdefault(
            row["task"],
            {"id": number, "data": {"text": row["text"], "size": {"mm": number}, "task": f"rail {number}"},
             "annotations": [], "predictions": []},
        )  # fmt: skip
        answer = {"completed_by": {"email": row["worker"]}, "result": label_studio_result(row["label"])}
        record["annotations"].append(answer)
    (folder / "export.json").write_text(json.dumps(list(tasks.values())), encoding="utf-8")


def test_label_studio_there_and_back(folder: Path, truth: dict[str, str]) -> None:
    as_export(folder)
    command = [
        "audit", "start", "export.json", "--find", "defect=0.9", "--flag-cost", "3", "--plan", "audit.json",
        "--review-out", "tasks.json", "--review-as", "label-studio",
    ]  # fmt: skip
    rarevote(*command, folder=folder)
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    for one in tasks:
        # The task's own data as they were, and nothing of what anybody said.
        number = int(one["data"]["task"])
        own = {"text": f"part {number}", "size": {"mm": number}, "show:task": f"rail {number}"}
        assert one == {"data": {"task": str(number), **own}}
    # An import gives ids of its own. Anna answers all but one, which bob skips; two are ground truth to her.
    done: list[dict[str, Any]] = [
        {
            "id": 9000 + i,
            **one,
            "annotations": [
                {
                    "completed_by": {"email": "anna"},
                    "ground_truth": i in (1, 2),
                    "result": label_studio_result(truth[f"t{one['data']['task']}"]),
                }
            ],
        }
        for i, one in enumerate(tasks)
    ]
    done[0]["annotations"] = [{"completed_by": {"email": "bob"}, "was_cancelled": True, "result": []}]
    (folder / "reviewed.json").write_text(json.dumps(done), encoding="utf-8")
    state = json.loads(go_on(folder, "reviewed.json", "next.json", "--json").stdout)
    assert state["pending"] == 1
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    said = dict(zip(plan["rounds"][0]["tasks"], plan["rounds"][0]["answers"], strict=True))
    assert said.pop(tasks[0]["data"]["task"]) is None
    assert {task: answer["label"] for task, answer in said.items()} == {task: truth[f"t{task}"] for task in said}
    assert [answer["who"] for answer in said.values()].count("anna") == len(tasks) - 3
    again = json.loads((folder / "next.json").read_text(encoding="utf-8"))
    assert [one["data"]["task"] for one in again] == [tasks[0]["data"]["task"]]


def test_argilla_there_and_back(folder: Path, truth: dict[str, str]) -> None:
    start(folder, "--review-as", "argilla", "--show", "text", list_="records.json")
    records = json.loads((folder / "records.json").read_text(encoding="utf-8"))
    assert all(one["fields"] == {"text": f"part {one['id'][1:]}"} for one in records)
    for one in records:
        one["responses"] = {"quality": [{"value": truth[one["id"]], "user_id": "anna"}]}
    (folder / "reviewed.json").write_text(json.dumps(records), encoding="utf-8")
    state = json.loads(go_on(folder, "reviewed.json", "next.json", "--json").stdout)
    assert state["reviewed"] == len(records)
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert {answer["who"] for answer in plan["rounds"][0]["answers"]} == {"anna"}


def test_a_table_from_an_export_shows_its_data(folder: Path) -> None:
    as_export(folder)
    command = ["audit", "start", "export.json", "--find", "defect=0.9", "--plan", "audit.json", "--flag-cost", "3"]
    rarevote(*command, "--review-out", "list.csv", folder=folder)
    first = table(folder / "list.csv")[0]
    number = first["task"]
    assert first == {
        "task": number, "text": f"part {number}", "size": json.dumps({"mm": int(number)}),
        "show:task": f"rail {number}", "label": "",
    }  # fmt: skip


def test_experts_are_named_and_shown_items_again(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    go_on(folder, answer(folder, 1, truth), "round-2.csv", "--who", "anna")
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert {one["who"] for one in plan["rounds"][0]["answers"]} == {"anna"}
    repeat = ["audit", "repeat", "audit.json"]
    assert "give either --review-out" in rarevote(*repeat, folder=folder, code=2).stderr
    assert "--share must be" in rarevote(*repeat, "--review-out", "a.csv", "--share", "0", folder=folder, code=2).stderr
    rarevote(*repeat, "--review-out", "again.csv", "--share", "0.1", folder=folder)
    again = [row["task"] for row in table(folder / "again.csv")]
    answered = plan["rounds"][0]["tasks"]
    assert len(again) == -(-len(answered) // 10)
    assert set(again) <= set(answered)
    # The first answer of the second time is another one.
    lines = [f"{task},{truth[task]}" for task in again[1:]] + [f"{again[0]},{CLASSES[truth[again[0]] == 'sound']}"]
    (folder / "second.csv").write_text("\n".join(["task,label", *lines]), encoding="utf-8")
    said = rarevote(*repeat, "--answers", "second.csv", "--who", "anna", folder=folder)
    assert f"1 of {len(again)} item" in said.stderr
    assert "got another answer" in rarevote("audit", "status", "audit.json", folder=folder).stdout
    # A task that nobody has answered has nothing to be repeated.
    other = next(task for task in truth if task not in answered)
    (folder / "second.csv").write_text(f"task,label\n{other},sound\n", encoding="utf-8")
    refused = rarevote(*repeat, "--answers", "second.csv", folder=folder, code=1)
    assert f"second.csv: task '{other}' has no first answer" in refused.stderr


def test_finish_writes_a_page_and_verify_looks_at_the_labels(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    go_on(folder, answer(folder, 1, truth), "round-2.csv")
    done = rarevote("audit", "finish", "audit.json", "--out", "r.csv", "--certificate", "c.json", folder=folder)
    assert "wrote c.html" in done.stderr
    page = (folder / "c.html").read_text(encoding="utf-8")
    assert "What was proved" in page
    assert json.loads((folder / "c.json").read_text(encoding="utf-8"))["plan_sha256"] in page
    same = ["audit", "finish", "audit.json", "--out", "r.csv", "--certificate", "c.json", "--page"]
    assert "ends in .html" in rarevote(*same, "c.pdf", folder=folder, code=1).stderr
    check = ["audit", "verify", "audit.json", "c.json"]
    said = rarevote(*check, folder=folder).stderr
    assert "c.json follows from audit.json: it covers 300 items (300 with votes, 0 without); it was" in said
    assert (
        "planned with a cost of 3 reviews for each flagged item, instead of 1; the labels are those of the audit, and"
        in said
    )
    assert "it covers all their items" in said
    original = (folder / "labels.csv").read_bytes()
    (folder / "kept.csv").write_bytes(original)
    (folder / "labels.csv").write_bytes(original.replace(b"sound", b"defect", 1))
    assert "these labels" in rarevote(*check, folder=folder, code=1).stderr
    rarevote(*check, "--labels", "kept.csv", folder=folder)
    (folder / "labels.csv").unlink()
    assert "were not compared" in rarevote(*check, folder=folder).stderr


# --------------------------------------------------------------------------------------------------------------------
# items without votes


def add_unvoted(folder: Path, n: int = 40) -> list[str]:
    """Items that got an abstention and no vote."""
    names = [f"u{i}" for i in range(n)]
    with (folder / "labels.csv").open("a", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([name, "w1", "?", f"part {name}"] for name in names)
    return names


def test_items_without_votes_are_audited_and_named_everywhere(folder: Path, truth: dict[str, str]) -> None:
    unvoted = add_unvoted(folder)
    said = start(folder, "--abstain", "?")
    words = "340 items (300 with votes, 40 without)"
    assert words in said.stderr
    plan = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert sorted(plan["strata"][-1]["tasks"]) == sorted(unvoted)
    assert (plan["score"], plan["population"]["unvoted"]) == ("posterior", 40)
    run_to_the_end(folder, truth | dict.fromkeys(unvoted, "sound"))
    state = json.loads(rarevote("audit", "status", "audit.json", "--json", folder=folder).stdout)
    assert (state["items"], state["voted"], state["unvoted"], state["left_out"]) == (340, 300, 40, 0)
    assert f"Population: {words}." in rarevote("audit", "status", "audit.json", folder=folder).stdout
    finish(folder)
    claim = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    assert (claim["population"], claim["voted"], claim["unvoted"]) == (words, 300, 40)
    assert words in (folder / "c.html").read_text(encoding="utf-8")
    assert f"it covers {words}" in rarevote("audit", "verify", "audit.json", "c.json", folder=folder).stderr
    result = {row["task"]: row for row in table(folder / "r.csv")}
    assert len(result) == 340
    for task in unvoted:
        # Seen by the expert, flagged unseen, or without a label: nobody said what it is.
        assert (result[task]["decision"], result[task]["label"]) in (
            ("expert", "sound"), ("audit", "defect"), ("no votes", "")
        )  # fmt: skip


def test_items_without_votes_that_are_left_out_are_named_everywhere(folder: Path, truth: dict[str, str]) -> None:
    unvoted = add_unvoted(folder)
    words = "300 items with votes (40 without votes left out)"
    assert words in start(folder, "--abstain", "?", "--only-voted-items").stderr
    run_to_the_end(folder, truth)
    assert words in rarevote("audit", "status", "audit.json", folder=folder).stdout
    plan = finish(folder)
    assert plan["population"] == {"voted": 300, "unvoted": 0, "left_out": 40, "only_voted_items": True}
    claim = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    assert "among items with votes" in claim["claim"]
    assert (claim["population"], claim["left_out"], claim["only_voted_items"]) == (words, 40, True)
    page = (folder / "c.html").read_text(encoding="utf-8")
    assert words in page
    assert "among items with votes" in page
    said = rarevote("audit", "verify", "audit.json", "c.json", folder=folder).stderr
    assert f"it covers {words}" in said
    assert "it covers all their items except 40 without votes" in said
    result = {row["task"]: row for row in table(folder / "r.csv")}
    assert {(result[task]["decision"], result[task]["label"]) for task in unvoted} == {("left out", "")}
    # A plan that leaves them out and does not say so.
    forge(folder, {**plan, "population": {"voted": 300, "unvoted": 0, "left_out": 0, "only_voted_items": False}})
    assert "40 items in these labels but neither" in rarevote(*VERIFY, folder=folder, code=1).stderr


# --------------------------------------------------------------------------------------------------------------------
# forgeries: plan and certificate by the same hand


def finish(folder: Path) -> dict[str, Any]:
    rarevote("audit", "finish", "audit.json", "--out", "r.csv", "--certificate", "c.json", folder=folder)
    plan: dict[str, Any] = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    return plan


def forge(folder: Path, plan: dict[str, Any]) -> None:
    """Write a plan and the certificate that follows from it."""
    (folder / "forged.json").write_text(json.dumps(plan), encoding="utf-8")
    claim = Audit.from_json(json.dumps(plan)).certificate()
    (folder / "claim.json").write_text(json.dumps(claim), encoding="utf-8")


VERIFY = ["audit", "verify", "forged.json", "claim.json"]


def test_an_audit_of_some_items_is_not_one_of_the_labels(folder: Path, truth: dict[str, str]) -> None:
    """The items that the crowd overlooks are left out of the population; the plan names the whole file's hash."""
    start(folder)
    whole = finish(folder)
    kept = {task for task, label in truth.items() if label == "sound" or int(task[1:]) % 3}
    scores = {task: one["p0"] for one in whole["strata"] for task in one["tasks"] if task in kept}
    audit = Audit.start(
        scores, list(scores.values()), name="defect", target=0.9, classes=["defect", "sound"], seed=1, flag_cost=3.0,
        labels_sha256=whole["labels_sha256"], source=whole["source"],
    )  # fmt: skip
    while review := audit.round():
        audit.answer({task: truth[task] for task in review})
    forge(folder, json.loads(audit.to_json()))
    for more in (["--labels", "labels.csv"], []):
        said = rarevote(*VERIFY, *more, folder=folder, code=1)
        n_left_out = len(truth) - len(kept)
        assert f"{n_left_out} items in these labels but neither in the strata nor in the gold" in said.stderr
    # A plan that hides how the labels were read is compared with them as they are read by default.
    forge(folder, {**json.loads(audit.to_json()), "source": None})
    assert "but neither in the strata" in rarevote(*VERIFY, "--labels", "labels.csv", folder=folder, code=1).stderr
    # Without the labels the verdict names the number of items.
    (folder / "labels.csv").unlink()
    assert f"it covers {len(kept)} items" in rarevote(*VERIFY, folder=folder).stderr


def test_gold_that_is_no_item_of_the_labels(folder: Path) -> None:
    """Positives that were made up would count as found."""
    start(folder)
    plan = finish(folder)
    forge(folder, {**plan, "rounds": [], "gold": [["made up", "defect"]]})
    said = rarevote(*VERIFY, folder=folder, code=1)
    assert "1 item in the plan but not in these labels, such as made up" in said.stderr


def test_labels_are_read_as_the_plan_says_and_the_verdict_says_how(folder: Path) -> None:
    start(folder)
    plan = finish(folder)
    plan["source"]["reading"]["abstain"] = ["nothing"]
    forge(folder, plan)
    assert "read with abstain=('nothing',)" in rarevote(*VERIFY, folder=folder).stderr
    plan["source"]["reading"] = {"columns": {"task": "nowhere"}}
    forge(folder, plan)
    assert "the labels cannot be read as the plan says" in rarevote(*VERIFY, folder=folder, code=1).stderr


def test_forged_bets_end_with_code_one(folder: Path, truth: dict[str, str]) -> None:
    start(folder)
    go_on(folder, answer(folder, 1, truth), "round-2.csv")
    plan = finish(folder)
    forge(folder, plan)
    rarevote(*VERIFY, folder=folder)
    plan["rounds"][0]["gamma"] = [0.98] * len(plan["rounds"][0]["gamma"])
    forge(folder, plan)
    said = rarevote(*VERIFY, "--json", folder=folder, code=1)
    assert "round 1 of the plan was not planned from the answers before it" in said.stderr
    assert json.loads(said.stdout)["follows"] is False
    heavy = {**plan["rounds"][0], "w": [2**63 // 3000] * len(plan["rounds"][0]["w"])}
    (folder / "forged.json").write_text(json.dumps({**plan, "rounds": [heavy]}), encoding="utf-8")
    assert "weights are whole numbers from 1 to 2^32" in rarevote(*VERIFY, folder=folder, code=1).stderr
    text = json.dumps(plan).replace('"seed":', '"seed": "00000000000000ff", "seed":', 1)
    (folder / "forged.json").write_text(text, encoding="utf-8")
    assert "the key 'seed' occurs twice" in rarevote(*VERIFY, folder=folder, code=1).stderr
    later = rarevote("audit", "status", "forged.json", folder=folder, code=1)
    assert "forged.json: the plan cannot be read as JSON" in later.stderr


def test_a_list_of_items_is_part_of_what_the_audit_is_about(tmp_path: Path) -> None:
    """Its place is seen from the plan, and a changed list is a changed population."""
    (tmp_path / "data").mkdir()
    (tmp_path / "labels.csv").write_text("task,worker,label\na,w,x\n", encoding="utf-8")
    items = tmp_path / "data" / "items.csv"
    items.write_text("task\na\nb\n", encoding="utf-8")
    plan = tmp_path / "audits" / "audit.json"
    record = source_record([str(tmp_path / "labels.csv")], {"items": str(items), "keep": "all"}, "table", plan)
    assert record["reading"] == {"items": "../data/items.csv", "keep": "all"}
    before = labels_sha256([tmp_path / "labels.csv"], items)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "labels.csv", items)]
    assert before == hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()
    items.write_text("task\na\n", encoding="utf-8")
    assert labels_sha256([tmp_path / "labels.csv"], items) != before
    assert labels_sha256([tmp_path / "labels.csv"], None) == digests[0]
