"""Sixty typical mistakes on the command line: what is said, the exit code, and that nothing is written."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.command import rarevote
from tests.io.platforms.exports import FIXTURES

VOTES = "task,worker,label\n" + "".join(
    f"t{task},{worker},{'defect' if (task * 3 + number) % 5 == 0 else 'sound'}\n"
    for task in range(6)
    for number, worker in enumerate(("ana", "bo", "cy"))
)

#: (the words after rarevote, the exit code, what the message must say); ``M`` is for a quick method.
MISTAKES: list[tuple[str, int, tuple[str, ...]]] = [
    # files that are not there, or are something else
    ("aggregate nothing.csv --out r.csv", 1, ("nothing.csv: no such file",)),
    ("aggregate empty.csv --out r.csv", 1, ("empty.csv", "empty")),
    ("aggregate header.csv --out r.csv", 1, ("header.csv: no annotations",)),
    ("aggregate report.pdf --out r.csv", 1, ("report.pdf: this is a PDF document",)),
    ("aggregate photo.csv --out r.csv", 1, ("photo.csv: this is an image (PNG)",)),
    ("aggregate photo.jpg --out r.csv", 1, ("photo.jpg: this is an image (JPEG)",)),
    ("aggregate letter.docx --out r.csv", 1, ("letter.docx: this is a Word document",)),
    ("aggregate old.xls --out r.csv", 1, ("old Office document", "save it as .xlsx or .csv")),
    ("aggregate page.csv --out r.csv", 1, ("page.csv: this is a web page (HTML)",)),
    ("aggregate cut.json --out r.csv", 1, ("cut.json", "incomplete")),
    ("aggregate cut.csv.gz --out r.csv", 1, ("cut.csv.gz: cannot be read",)),
    ("aggregate folder --out r.csv", 1, ("folder: the folder has no",)),
    ("aggregate mixed --out r.csv", 1, ("a folder of csv and json files", "--format")),
    ("aggregate votes.csv other.json --out r.csv", 1, ("the files must have one format",)),
    ("aggregate long.csv --out r.csv", 1, ("long.csv", "line 3")),
    # columns
    ("aggregate odd.csv --out r.csv", 1,
     ("no column for task or worker or label", "--columns task=", "--wide", "--no-header")),
    ("aggregate votes.csv --columns task=image --out r.csv", 1, ("no column 'image' (for task)", "it has 'task'")),
    ("aggregate votes.csv --columns task --out r.csv", 2, ("--columns must be ROLE=NAME pairs",)),
    ("aggregate votes.csv --columns item=task --out r.csv", 2, ("--columns accepts task, worker, label",)),
    ("aggregate two.csv --out r.csv", 1, ("several columns that could be the label", "--columns")),
    ("aggregate votes.csv --show text --out r.csv", 1, ("no column 'text' to show",)),
    ("aggregate votes.csv --gold-column gold --out r.csv", 1, ("no column 'gold' with gold",)),
    ("aggregate hole.csv --out r.csv", 1, ("1 row has no label (line 3)", "--missing drop")),
    ("aggregate votes.csv votes.csv --keep error --out r.csv", 1,
     ("repeat an earlier (task, worker) pair", "--keep all, first or last")),
    ("aggregate votes.csv --keep newest --out r.csv", 2, ("keep must be all, first, last, error",)),
    ("aggregate votes.csv --missing skip --out r.csv", 2, ("missing must be error, drop",)),
    ("aggregate votes.csv --wide --columns label=label --out r.csv", 2,
     ("a wide table accepts only task",)),
    # methods and their parameters
    ("aggregate votes.csv -m majority --out r.csv", 2, ("majority", "majority-vote")),
    ("aggregate votes.csv -m gold-majority-vote --out r.csv", 2,
     ("gold-majority-vote learns from gold", "--gold FILE")),
    ("aggregate votes.csv M --gold truth.csv --out r.csv", 2,
     ("majority-vote cannot learn from gold: leave --gold out",)),
    ("aggregate votes.csv --set n_iter --out r.csv", 2, ("--set must be NAME=VALUE",)),
    ("aggregate votes.csv --set iterations=5 --out r.csv", 2, ("iterations",)),
    ("aggregate votes.csv --set n_iter=many --out r.csv", 2, ("n_iter",)),
    ("aggregate votes.csv M --checkpoint kept --out r.csv", 2,
     ("majority-vote cannot resume a fit after a crash: leave --checkpoint out",)),
    ("aggregate absent.csv M --checkpoint kept --out r.csv", 2, ("cannot resume a fit after a crash",)),
    # truth and gold
    ("aggregate votes.csv M --truth other-truth.csv --out r.csv", 1,
     ("other-truth.csv: the truth has none of the tasks", "x1", "t0")),
    ("report votes.csv M --truth other-truth.csv --out p.html", 1,
     ("other-truth.csv: the truth has none of the tasks",)),
    ("compare votes.csv --methods majority-vote --truth other-truth.csv --out r.csv", 1,
     ("the truth has none of the tasks",)),
    ("score truth.csv --truth other-truth.csv", 1, ("the truth names none of its tasks",)),
    ("aggregate votes.csv --gold other-truth.csv --out r.csv", 1, ("none of the 2 gold tasks is in the annotations",)),
    ("aggregate votes.csv M --truth votes.csv --out r.csv", 1, ("has two labels",)),
    ("aggregate votes.csv M --truth odd.csv --out r.csv", 1, ("odd.csv has no column for task", "Rename columns")),
    ("aggregate votes.csv M --truth nothing.csv --out r.csv", 1, ("nothing.csv: no such file",)),
    ("aggregate votes.csv M --rare crack --out r.csv", 2, ("crack", "defect")),
    # where results go
    ("aggregate votes.csv M --out r.txt", 1, ("r.txt: cannot write .txt; use .csv",)),
    ("aggregate votes.csv M --out nowhere/r.csv", 1, ("no folder nowhere",)),
    ("aggregate votes.csv M --out folder", 1, ("folder: cannot write",)),
    ("aggregate votes.csv M --json", 1, ("name a file for the rows with --out",)),
    ("aggregate votes.csv M --soft-out soft.csv --out r.csv", 1,
     ("soft.csv: soft labels are written as .npz or .parquet",)),
    ("aggregate votes.csv M --back-out back.json --out r.csv", 1,
     ("--back-out needs an export of Label Studio, Argilla, Prodigy, doccano",)),
    ("aggregate mturk_form.csv M --question damage --back-out back.json --out r.csv", 1,
     ("labels can be written back to", "not to mturk")),
    ("aggregate votes.csv M --max-review 5 --out r.csv", 2, ("--review-out FILE must be used together",)),
    ("aggregate votes.csv M --decide best --out r.csv", 2, ("best", "argmax")),
    ("aggregate votes.csv M --decide balanced --min-recall defect=0.9 --out r.csv", 2, ("cannot be used together",)),
    ("aggregate votes.csv M --min-recall defect --out r.csv", 2, ("--min-recall must be CLASS=RECALL",)),
    ("aggregate votes.csv M --min-recall defect=90 --out r.csv", 2, ("must be above 0 and at most 1",)),
    # exports
    ("aggregate mturk_form.csv --out r.csv", 1,
     ("Choose one: --question sure (yes, no; 24 answers) or --question damage", "--question all",
      "comments (free text)", "ua (a hidden input)", "time_spent (times)")),
    ("aggregate mturk_form.csv --question comments --out r.csv", 1,
     ("the answers to 'comments' are free text", "--free-text")),
    ("aggregate mturk_form.csv --question mood --out r.csv", 1, ("no question 'mood'; it has 'damage'",)),
    ("aggregate mturk_form.csv --question all", 2, ("--question all writes a folder", "--out")),
    ("aggregate mturk_form.csv --question all --out r.csv", 2, ("--out r.csv looks like a file",)),
    ("report mturk_form.csv --question all --out p.html", 1,
     ("one question at a time", "rarevote aggregate --question all")),
    ("aggregate prodigy_unnamed.jsonl --out r.csv", 1, ("none of the 12 answers has an annotator", "?session=NAME")),
    ("aggregate votes.csv --question damage --out r.csv", 2, ("--question needs a platform's export", "--from")),
    ("aggregate mturk_form.csv --from toloka --out r.csv", 1,
     ("this is an export of Amazon Mechanical Turk, not of Toloka: --from mturk",)),
    ("aggregate votes.csv --from crowdtool --out r.csv", 2,
     ("no platform is called 'crowdtool'; the platforms are label-studio",)),
    ("convert votes.csv --out rows.csv", 1, ("not recognised as an export", "--from NAME", "rarevote aggregate FILE")),
    ("convert mturk_form.csv --question damage --gold-out gold.csv --out rows.csv", 1, ("nothing to write",)),
    # verbs and options
    ("agregate votes.csv", 2, ("No such command 'agregate'. Did you mean 'aggregate'?",)),
    ("audit contine plan.json", 2, ("No such command 'contine'. Did you mean 'continue'?",)),
    ("aggregate", 2, ("Missing argument",)),
    ("aggregate votes.csv --ouput r.csv", 2, ("No such option",)),
    ("predict votes.csv votes.csv --out r.csv", 1, ("not a rarevote model",)),
    ("explain votes.csv M", 2, ("Missing option '--task'",)),
    ("explain votes.csv M --task t99", 1, ("t99",)),
    ("annotators votes.csv M --sort skill", 2, ("--sort must be",)),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    texts = {
        "votes.csv": VOTES,
        "truth.csv": "task,label\nt0,sound\nt1,defect\n",
        "other-truth.csv": "task,label\nx1,sound\nx2,defect\n",
        "empty.csv": "",
        "header.csv": "task,worker,label\n",
        "odd.csv": "a,b,c\n1,2,3\n1,4,5\n",
        "two.csv": "task,worker,rating,answer\nt,w,1,yes\n",
        "hole.csv": "task,worker,label\nt0,ana,sound\nt0,bo,\n",
        "long.csv": "task,worker,label\nt0,ana,sound\nt0,bo,sound,more,more\n",
        "page.csv": "<!DOCTYPE html><html><body>Please log in</body></html>",
        "cut.json": '[{"task": "t0", "worker": "ana", "label": "sound"}, {"task": "t0", "wor',
        "other.json": json.dumps([{"task": "t0", "worker": "ana", "label": "sound"}]),
        "mixed/a.csv": VOTES,
        "mixed/b.json": "[]",
        "folder/readme.md": "nothing here",
    }
    for name, text in texts.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    pictures = {
        "report.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj",
        "photo.csv": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
        "old.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100),
        "letter.docx": b"PK\x03\x04\x14\0\x06\0\x08\0" + bytes(16) + b"[Content_Types].xml" + bytes(9) + b"word/a.xml",
        "cut.csv.gz": b"\x1f\x8b\x08\0\0\0\0\0\0\x03KI",
    }  # fmt: skip
    for name, data in pictures.items():
        (place / name).write_bytes(data)
    for name in ("mturk_form.csv", "prodigy_unnamed.jsonl"):
        shutil.copy(FIXTURES / name, place / name)
    return place


def everything(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_there_are_sixty() -> None:
    assert len({words for words, _, _ in MISTAKES}) == len(MISTAKES) >= 60


@pytest.mark.parametrize(("words", "code", "said"), MISTAKES, ids=[words for words, _, _ in MISTAKES])
def test_a_mistake_is_told_and_nothing_written(folder: Path, words: str, code: int, said: tuple[str, ...]) -> None:
    before = everything(folder)
    given = shlex.split(words.replace(" M", " -m majority-vote"))
    done = rarevote(*given, folder=folder, code=code)
    message = " ".join(done.stderr.split())
    for part in said:
        assert part in message, message
    assert done.stdout == ""
    assert everything(folder) == before
    if code == 1 or "rarevote: error:" in message:
        # One sentence, without what only Python could make of it.
        assert done.stderr.count("rarevote: error:") == 1
        assert "=True" not in message
        assert "columns={" not in message
