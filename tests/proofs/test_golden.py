"""The golden run: the same code gives the same hashes, and a changed output is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from proofs.golden.__main__ import main, parts_of
from proofs.golden.repeatable import normalised
from proofs.golden.run import keep

pytestmark = pytest.mark.prove  # seconds each, and rarely breaks

CASES = ["--only", "commands", "--only", "bits"]
for name in ("in-headless", "methods-json", "numpy dawid-skene tiny 1"):
    CASES += ["--case", name]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "record"
    assert main(["record", str(path), *CASES]) == 0
    return path


def changed(record: Path, old: str, new: str) -> Path:
    """The record as if a line had been another."""
    other = record.with_name("other")
    parts_of(other).mkdir(exist_ok=True)
    (part,) = (path for path in parts_of(record).iterdir() if old.encode() in path.read_bytes())
    digest = keep(part.read_text(encoding="utf-8").replace(old, new), parts_of(other))
    other.write_text(record.read_text(encoding="utf-8").replace(part.name, digest), encoding="utf-8")
    return other


def test_the_same_code_is_equal(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(record), *CASES]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == ["commands: 2 cases, 7 parts, 0 differ, 0 differ as allowed",
                    "bits: 1 cases, 1 parts, 0 differ, 0 differ as allowed", "equal"]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("1,819 annotations", "1,818 annotations", "commands/in-headless/1 stderr"),
        ("t001,sound", "t001,defect", "commands/in-headless/file result.csv"),
        ("result.csv\nexit code 0", "result.csv\nexit code 1", "commands/in-headless/1 exit"),
        ("posterior_: float64", "posterior_: float32", "bits/numpy dawid-skene tiny 1/bits"),
    ],
)
def test_a_change_is_reported(record: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, where: str) -> None:
    other = changed(record, old, new)
    assert main(["compare", str(record), *CASES, "--with", str(other)]) == 1
    said = capsys.readouterr().out
    assert f"DIFFERS: {where}" in said
    assert said.endswith("different\n")


def test_what_was_meant_is_allowed(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = changed(record, "1,819 annotations", "1,819 votes")
    words = ["compare", str(record), *CASES, "--with", str(other), "--allow"]
    assert main([*words, "annotations|votes"]) == 0
    assert main([*words, "in-headless/1 stderr"]) == 0
    assert "1 differ as allowed" in capsys.readouterr().out
    # The line that was is not what was meant.
    assert main([*words, r"^\+"]) == 1


def test_a_case_that_is_gone_is_reported(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = record.with_name("fewer")
    other.write_text('{"commands": {}, "bits": {}}', encoding="utf-8")
    assert main(["compare", str(record), *CASES, "--with", str(other)]) == 1
    assert "+(absent)" in capsys.readouterr().out


def test_a_crash_takes_one_case_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proofs.golden import run

    monkeypatch.setitem(run._ENVIRONMENT, "PYTHONHOME", str(tmp_path))  # no process starts with it
    found = run.run_section("commands", tmp_path, ["methods", "version"])
    assert [list(parts) for parts in found.values()] == [["crash"], ["crash"]]


def test_what_cannot_repeat_gets_a_name(tmp_path: Path) -> None:
    text = f"{tmp_path}/a.csv rarevote 1.2 in 0.31 s at 127.0.0.1:8080, recall 0.31"
    assert normalised(text, tmp_path, "1.2") == (
        "<scratch>/a.csv rarevote <version> in <seconds> s at 127.0.0.1:<port>, recall 0.31"
    )
