"""No output over an input, in Python: a crowd knows the files that it came from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rarevote
from rarevote.api import Fitted
from rarevote.errors import InputError
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.result import Result

VOTES = "task,worker,label\n" + "".join(
    f"t{n},w{w},{'yes' if n % 3 == 0 or (n + w) % 7 == 0 else 'no'}\n" for n in range(12) for w in range(4)
)
GOLD = "task,label\nt0,yes\nt1,no\n"

WRITERS: dict[str, Callable[[Result, Path], Any]] = {
    "write": lambda result, path: result.write(path),
    "write_back": lambda result, path: result.write_back(path),
    "report": lambda result, path: result.report(path),
    "charts": lambda result, path: result.report("page.html", charts=path),
    "soft_labels": lambda result, path: result.soft_labels().write(path),
    "review": lambda result, path: result.review(3, path),
    "plan": lambda result, path: result.plan(3, path),
    "save": lambda result, path: result.fitted.save(path),
}


@pytest.fixture
def fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fitted:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(VOTES)
    Path("gold.csv").write_text(GOLD)
    made = rarevote.fit("votes.csv", "dawid-skene", gold="gold.csv")
    # A program may go elsewhere before it writes.
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    return made


@pytest.mark.parametrize("name", ["votes.csv", "gold.csv"])
@pytest.mark.parametrize("writer", WRITERS)
def test_results_never_replace_what_they_came_from(writer: str, name: str, fitted: Fitted, tmp_path: Path) -> None:
    for target in (tmp_path / name, Path("..") / name):
        with pytest.raises(InputError, match=r"is the input .*; an output never replaces an input"):
            WRITERS[writer](fitted.decide(), target)
    assert (tmp_path / "votes.csv").read_text() == VOTES
    assert (tmp_path / "gold.csv").read_text() == GOLD
    assert not list(Path().iterdir())


def test_a_page_never_replaces_the_truth(fitted: Fitted, tmp_path: Path) -> None:
    truth = tmp_path / "truth.html"
    truth.write_text(GOLD)
    with pytest.raises(InputError, match="is the input"):
        fitted.decide().report(truth, truth=truth)
    assert truth.read_text() == GOLD


def test_crowds_know_their_files(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    assert rarevote.read(path).files == (str(path),)
    assert rarevote.read([path, path]).files == (str(path), str(path))
    assert rarevote.read([("a", "ann", "yes"), ("a", "bob", "no")]).files == ()
    again = rarevote.read(rarevote.read(path))
    assert again.files == (str(path),)


def test_results_of_data_in_memory_go_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    votes = [tuple(line.split(",")) for line in VOTES.splitlines()[1:]]
    rarevote.fit(votes, "majority-vote").decide().write(path)
    assert path.read_text().startswith("task,label,")


# --------------------------------------------------------------------------------------------------------------------
# the rule itself


@pytest.mark.parametrize(
    ("output", "given", "refused"),
    [
        ("a.csv", ["b.csv"], False),
        ("a.csv", ["b.csv", "a.csv"], True),
        ("a.csv", ["https://host/a.csv"], False),
        ("a.csv", ["*.json"], False),
        ("a.csv", ["*.csv"], True),
        ("new.csv", ["*.csv"], True),
        ("folder/new.csv", ["*.csv"], False),
        ("folder/new.csv", ["**/*.csv"], True),
        ("folder/new.csv", ["folder"], True),
        ("folder/below/new.csv", ["folder"], True),
        ("folder/page.html", ["folder"], False),
        ("folder-2/new.csv", ["folder"], False),
        ("to-folder/new.csv", ["folder"], True),
        ("folder/out.csv", ["folder"], True),  # a link that leads out of the folder
        ("linked.csv", ["folder"], True),  # the folder has a link to it
        ("dangling.csv", ["a.csv"], False),
        ("a.csv", ["nothing.csv"], False),
        ("odd[1].csv", ["odd[1].csv"], True),
    ],
)
def test_what_is_refused(
    output: str, given: list[str], *, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("folder/below", "folder-2"):
        Path(name).mkdir(parents=True)
    for name in ("a.csv", "b.csv", "c.json", "odd[1].csv", "linked.csv", "folder/d.csv"):
        Path(name).write_text(VOTES)
    Path("to-folder").symlink_to("folder")
    Path("folder/out.csv").symlink_to("../b.csv")
    Path("folder/link.csv").symlink_to("../linked.csv")
    Path("dangling.csv").symlink_to("nowhere.csv")
    if refused:
        with pytest.raises(InputError):
            refuse_overwriting(output, given)
    else:
        refuse_overwriting(output, given)


def test_devices_are_not_files(tmp_path: Path) -> None:
    refuse_overwriting(os.devnull, [os.devnull])


def test_a_folder_with_inputs_is_not_replaced(tmp_path: Path) -> None:
    votes = tmp_path / "data" / "votes.csv"
    votes.parent.mkdir()
    votes.write_text(VOTES)
    for inputs in ([votes], [votes.parent], [tmp_path / "data" / "v*.csv"]):
        with pytest.raises(InputError, match="is in this folder"):
            refuse_overwriting(tmp_path, inputs, replaced=("",))
        refuse_overwriting(tmp_path, inputs, replaced=(".svg", ".png"))


def test_a_fit_on_dask_keeps_its_data(tmp_path: Path) -> None:
    # Its results replace `workers.parquet`, and the data of a checkpoint are removed in the end.
    engine = pytest.importorskip("rarevote.cluster").Dask
    votes = tmp_path / "data" / "workers.parquet"
    votes.parent.mkdir()
    votes.write_text(VOTES)
    for places in ({"out": tmp_path / "data"}, {"out": tmp_path / "out", "checkpoint": tmp_path}):
        with pytest.raises(InputError, match=r"is the input|is in this folder"):
            engine(**places).fit(rarevote.MajorityVote(), votes)
    assert votes.read_text() == VOTES
