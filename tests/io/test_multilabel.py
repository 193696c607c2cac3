"""Several choices in one answer: every form of a plain table gives the problems that an export gives."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import rarevote
from rarevote.errors import ColumnsError, InputError, MissingValuesError, ParameterError, speaking_flags
from rarevote.io.read.cells import several_in, split_cells
from rarevote.io.read.crowd import Crowd, read
from tests.command import rarevote as command
from tests.command import rows

# What was answered: (item, annotator) and what they ticked; ann ticked nothing on the second item.
ANSWERS: dict[tuple[str, str], tuple[str, ...]] = {
    ("p1", "ann"): ("rust", "dent"),
    ("p1", "bob"): ("rust",),
    ("p2", "ann"): (),
    ("p2", "bob"): ("dent",),
    ("p3", "ann"): ("dent", "hole"),
    ("p3", "bob"): ("hole", "dent"),
}
CHOICES = ("dent", "hole", "rust")


def votes(crowd: Crowd) -> list[tuple[Any, Any, Any]]:
    found = crowd.annotations
    tasks = found.tasks[found.task_of_annotation()].tolist()
    return sorted(zip(tasks, found.workers[found.worker].tolist(), found.classes[found.label].tolist(), strict=True))


def expected(answers: dict[tuple[str, str], tuple[str, ...]] = ANSWERS) -> list[tuple[str, str, str]]:
    return sorted(
        (f"{item}:{choice}", worker, "yes" if choice in ticked else "no")
        for (item, worker), ticked in answers.items()
        for choice in CHOICES
    )


def as_csv(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def cells(write: Callable[[tuple[str, ...]], str]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        lines = [f"{item},{who},{write(ticked)}" for (item, who), ticked in ANSWERS.items()]
        return as_csv(folder / "votes.csv", "task,worker,label", lines)

    return written


def columns(yes: str, no: str) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        lines = [
            f"{item},{who},{','.join(yes if choice in ticked else no for choice in CHOICES)},seen by day"
            for (item, who), ticked in ANSWERS.items()
        ]
        return as_csv(folder / "votes.csv", f"task,worker,{','.join(CHOICES)},remark", lines)

    return written


def ticks(folder: Path) -> Path:
    lines = [f"{item},{who},{choice}" for (item, who), ticked in ANSWERS.items() for choice in ticked or ("",)]
    return as_csv(folder / "votes.csv", "task,worker,choice", lines)


def choice_rows(folder: Path) -> Path:
    lines = [
        f"{item},{who},{choice},{int(choice in ticked)}"
        for (item, who), ticked in ANSWERS.items()
        for choice in CHOICES
    ]
    return as_csv(folder / "votes.csv", "task,worker,choice,answer", lines)


def json_lists(folder: Path) -> Path:
    records = [{"task": item, "worker": who, "label": list(ticked)} for (item, who), ticked in ANSWERS.items()]
    (folder / "votes.json").write_text(json.dumps(records))
    return folder / "votes.json"


def parquet_lists(folder: Path) -> Path:
    import duckdb

    path = folder / "votes.parquet"
    source = str(json_lists(folder)).replace("'", "''")
    duckdb.sql(f"COPY (SELECT * FROM '{source}') TO '{path}'")
    return path


def arrow_columns(folder: Path) -> Path:
    import pyarrow
    from pyarrow import feather

    rows = [
        {"task": item, "worker": who} | {name: int(name in ticked) for name in CHOICES}
        for (item, who), ticked in ANSWERS.items()
    ]
    feather.write_feather(pyarrow.Table.from_pylist(rows), str(folder / "votes.arrow"))
    return folder / "votes.arrow"


def wide_cells(folder: Path) -> Path:
    items = sorted({item for item, _ in ANSWERS})
    lines = [f"{item},{','.join('|'.join(ANSWERS[item, who]) or '[]' for who in ('ann', 'bob'))}" for item in items]
    return as_csv(folder / "wide.csv", "item,ann,bob", lines)


FORMS: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "a|b": (cells("|".join), {}),
    "a;b": (cells(";".join), {}),
    "a, b": (cells(lambda ticked: f'"{", ".join(ticked)}"'), {}),
    "JSON lists in cells": (cells(lambda ticked: '"' + json.dumps(ticked).replace('"', '""') + '"'), {}),
    "Python's lists in cells": (cells(lambda ticked: f'"{list(ticked)}"'), {}),
    "another mark": (cells(" + ".join), {"separator": "+"}),
    "1 and 0": (columns("1", "0"), {}),
    "true and false": (columns("TRUE", "FALSE"), {}),
    "x and nothing": (columns("x", ""), {}),
    "named columns": (columns("1", "0"), {"choice_columns": ["dent", "[hr]*[et]"]}),
    "a row per tick": (ticks, {}),
    "a row per choice": (choice_rows, {}),
    "lists of JSON": (json_lists, {}),
    "lists of Parquet": (parquet_lists, {}),
    "1 and 0 of Arrow": (arrow_columns, {}),
    "wide": (wide_cells, {"wide": True}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_problems(tmp_path: Path, form: str) -> None:
    write, options = FORMS[form]
    if form == "named columns":
        options = {"choice_columns": ["dent", "*o*", "rust"]}
    crowd = read(write(tmp_path), multilabel=True, **options)
    assert votes(crowd) == expected()
    assert crowd.choices == CHOICES
    names = crowd.population.tolist()
    assert [
        f"{item}:{choice}" for item, choice in zip(crowd.shown["item"], crowd.shown["choice"], strict=True)
    ] == names
    said = '1 answer chose nothing: counted as no to every choice (nothing_ticked="ignore" skips such answers)'
    assert said in crowd.notes


@pytest.mark.parametrize("form", FORMS)
def test_nothing_ticked_may_be_no_answer(tmp_path: Path, form: str) -> None:
    write, options = FORMS[form]
    if form == "named columns":
        options = {"choice_columns": list(CHOICES)}
    crowd = read(write(tmp_path), multilabel=True, nothing_ticked="ignore", **options)
    assert votes(crowd) == expected({who: ticked for who, ticked in ANSWERS.items() if ticked})
    assert "1 answer chose nothing and is left out" in crowd.notes


def test_an_item_of_which_all_answers_are_ignored_stays_in_the_population(tmp_path: Path) -> None:
    path = as_csv(tmp_path / "votes.csv", "task,worker,label", ["p1,ann,a|b", "p1,bob,a", "p2,ann,", "p2,bob,[]"])
    crowd = read(path, multilabel=True, nothing_ticked="ignore")
    assert crowd.annotations.tasks.tolist() == ["p1:a", "p1:b"]
    assert crowd.annotations.unanswered.tolist() == ["p2:a", "p2:b"]
    assert crowd.shown["item"].tolist() == ["p1", "p1", "p2", "p2"]


def frames() -> dict[str, Any]:
    table: dict[str, Any] = {
        "task": [item for item, _ in ANSWERS],
        "worker": [who for _, who in ANSWERS],
        "label": [list(ticked) for ticked in ANSWERS.values()],
    }
    numbers = {choice: [int(choice in ticked) for ticked in ANSWERS.values()] for choice in CHOICES}
    texts = {**table, "label": ["|".join(ticked) for ticked in table["label"]]}
    wide = {"task": table["task"], "worker": table["worker"], **numbers}
    return {
        "pandas lists": pandas.DataFrame(table),
        "polars lists": polars.DataFrame(table),
        "pandas cells": pandas.DataFrame(texts),
        "polars columns": polars.DataFrame(wide),
        "mapping": table,
        "tuples": list(zip(*texts.values(), strict=True)),
    }


@pytest.mark.parametrize("kind", list(frames()))
def test_frames_and_rows_in_memory(kind: str) -> None:
    crowd = rarevote.read(frames()[kind], multilabel=True)
    assert votes(crowd) == expected()
    assert crowd.choices == CHOICES


def test_lists_without_the_option_are_refused_with_both_ways_out(tmp_path: Path) -> None:
    path = cells("|".join)(tmp_path)
    with speaking_flags(), pytest.raises(InputError) as caught:
        read(path)
    assert "several choices in one answer ('dent|hole')" in str(caught.value)
    assert ": --multilabel." in str(caught.value)
    assert ": --no-multilabel" in str(caught.value)
    # The advice that deletes empty answers is not given.
    assert "--missing drop" not in str(caught.value)
    single = read(path, multilabel=False, missing="drop")
    assert single.annotations.classes.tolist() == ["dent", "dent|hole", "hole|dent", "rust", "rust|dent"]
    with pytest.raises(InputError, match=r"is a list, not a name or a number.*multilabel=True"):
        read(json_lists(tmp_path))
    with pytest.raises(InputError, match=r"contains lists or objects.*multilabel=True"):
        read(parquet_lists(tmp_path))


def test_a_mark_within_a_name_is_left_alone(tmp_path: Path) -> None:
    # No piece comes again, so nothing says that a label is several.
    path = as_csv(tmp_path / "votes.csv", "task,worker,label", ["1,ann,in|out", "1,bob,no", "2,ann,no"])
    assert read(path).annotations.classes.tolist() == ["in|out", "no"]


def test_gold_and_shown_columns_are_of_items(tmp_path: Path) -> None:
    lines = ["p1,ann,a|b,wing 1,a", "p1,bob,a,wing 1,a", "p2,ann,,wing 2,a|c", "p2,bob,b,wing 2,a|c"]
    path = as_csv(tmp_path / "votes.csv", "task,worker,label,image,truth", lines)
    crowd = read(path, multilabel=True, show=["image"], gold_column="truth")
    assert crowd.choices == ("a", "b", "c")
    assert crowd.gold == {
        "p1:a": "yes", "p1:b": "no", "p1:c": "no", "p2:a": "yes", "p2:b": "no", "p2:c": "yes",
    }  # fmt: skip
    assert crowd.shown["image"].tolist() == ["wing 1"] * 3 + ["wing 2"] * 3


def test_choices_that_nobody_ticked_can_be_named(tmp_path: Path) -> None:
    crowd = read(cells("|".join)(tmp_path), multilabel=True, classes=["soot"])
    assert crowd.choices == (*CHOICES, "soot")
    assert crowd.annotations.n_annotations == 4 * len(ANSWERS)
    assert crowd.annotations.classes.tolist() == ["no", "yes"]


def test_blank_beside_zeros_was_not_answered(tmp_path: Path) -> None:
    path = as_csv(tmp_path / "votes.csv", "task,worker,a,b", ["1,ann,1,0", "1,bob,,1", "2,ann,0,", "2,bob,1,1"])
    assert votes(read(path, multilabel=True)) == [
        ("1:a", "ann", "yes"), ("1:b", "ann", "no"), ("1:b", "bob", "yes"), ("2:a", "ann", "no"), ("2:a", "bob", "yes"),
        ("2:b", "bob", "yes"),
    ]  # fmt: skip


def test_bad_tables(tmp_path: Path) -> None:
    path = as_csv(tmp_path / "votes.csv", "task,worker,choice,label", ["1,ann,a,yes", "1,bob,a,perhaps"])
    with pytest.raises(InputError, match=r"must be yes or no.*'perhaps'"):
        read(path, multilabel=True)
    path = as_csv(tmp_path / "votes.csv", "task,worker,choice,label", ["1,ann,a,yes", "1,bob,,no"])
    with pytest.raises(MissingValuesError, match=r"1 row without a choice \(line 3\)"):
        read(path, multilabel=True)
    path = as_csv(tmp_path / "votes.csv", "task,worker,label", ["1,ann,a|b", ",bob,a"])
    with pytest.raises(MissingValuesError, match=r"1 row has no task \(line 3\)"):
        read(path, multilabel=True)
    assert read(path, multilabel=True, missing="drop").annotations.n_annotations == 2
    path = as_csv(tmp_path / "votes.csv", "task,worker,remark", ["1,ann,fine", "1,bob,bad"])
    with pytest.raises(ColumnsError, match="cannot find the choices"):
        read(path, multilabel=True)
    with pytest.raises(ColumnsError, match="no column 'tag_"):
        read(path, multilabel=True, choice_columns=["tag_*"])
    path = as_csv(tmp_path / "votes.csv", "task,worker,label", ["a,ann,b:c|d", "a:b,ann,c|d"])
    with pytest.raises(InputError, match="'a:b:c' stands for two items or choices"):
        read(path, multilabel=True)
    with pytest.raises(ParameterError, match="nothing_ticked needs several choices"):
        read(path, nothing_ticked="no")
    with pytest.raises(ParameterError, match="nothing_ticked must be no, ignore"):
        read(path, multilabel=True, nothing_ticked="maybe")  # type: ignore[arg-type]


def test_an_export_as_rows_is_read_as_the_export_is(tmp_path: Path) -> None:
    export = Path(__file__).parent / "platforms" / "fixtures" / "label_studio_multi.json"
    command("convert", export, "--multilabel", "--out", tmp_path / "rows.csv")
    whole = read(export, multilabel=True)
    again = read(tmp_path / "rows.csv", multilabel=True)
    assert votes(again) == votes(whole)
    assert again.choices == whole.choices
    assert again.shown["item"].tolist() == whole.shown["item"].tolist()
    # Without the option the rows are problems by their names.
    assert votes(read(tmp_path / "rows.csv")) == votes(whole)


def test_exports_follow_nothing_ticked_too(tmp_path: Path) -> None:
    export = Path(__file__).parent / "platforms" / "fixtures" / "label_studio_multi.json"
    with_no, without = (read(export, multilabel=True, nothing_ticked=what) for what in ("no", "ignore"))
    assert votes(with_no) == votes(read(export, multilabel=True))
    empty = {"ida@example.org"}  # who submitted without a tick, once
    assert {who for _, who, _ in votes(with_no)} - {who for _, who, _ in votes(without)} == empty
    assert any("1 answer chose nothing: counted as no to every choice" in note for note in with_no.notes)
    assert with_no.annotations.n_annotations - without.annotations.n_annotations == len(with_no.choices)
    named = read(export, multilabel=True, classes=["weather"])
    assert "weather" in named.choices


def test_repeated_answers_follow_keep(tmp_path: Path) -> None:
    lines = ["1,ann,a|b", "1,ann,a", "1,bob,b"]
    path = as_csv(tmp_path / "votes.csv", "task,worker,label", lines)
    assert read(path, multilabel=True).annotations.n_annotations == 6
    assert votes(read(path, multilabel=True, keep="last")) == [
        ("1:a", "ann", "yes"), ("1:a", "bob", "no"), ("1:b", "ann", "no"), ("1:b", "bob", "yes"),
    ]  # fmt: skip


def test_two_real_crowds_as_one_of_two_labels(tmp_path: Path, shared_folder: Path) -> None:
    names = ("medical-cause", "medical-treat")
    lines = []
    for name in names:
        with (shared_folder / "datasets" / name / "labels.csv").open(newline="") as handle:
            lines += [f"{row['task']},{row['worker']},{name},{row['label']}" for row in csv.DictReader(handle)]
    crowd = read(as_csv(tmp_path / "votes.csv", "task,worker,choice,label", lines), multilabel=True)
    assert crowd.choices == names
    for name in names:
        own = read(shared_folder / "datasets" / name / "labels.csv").annotations
        found = crowd.by_label[name].annotations
        assert found.tasks.tolist() == own.tasks.tolist()
        for array in ("task_ptr", "worker", "label"):  # the classes no and yes stand as 0 and 1 do
            assert getattr(found, array).tolist() == getattr(own, array).tolist()


def test_the_command_reads_and_says_so(tmp_path: Path) -> None:
    path = cells("|".join)(tmp_path)
    done = command("aggregate", path, "--multilabel", "-m", "majority-vote", "--out", tmp_path / "result.csv")
    assert "one yes/no problem for each of 3 choices: dent, hole and rust" in done.stderr
    assert (
        "1 answer chose nothing: counted as no to every choice (--nothing-ticked ignore skips such answers)"
        in done.stderr
    )
    result = {row["task"]: row["label"] for row in rows((tmp_path / "result.csv").read_text())}
    assert result["p3:hole"] == "yes"
    assert result["p3:rust"] == "no"


def test_rows_that_are_the_choices_of_one_answer_are_said_to_be() -> None:
    rows = [("1", "ann", "a"), ("1", "ann", "b"), ("1", "bob", "a"), ("2", "bob", "b")]
    crowd = read(rows, multilabel=True)
    assert votes(crowd) == [
        ("1:a", "ann", "yes"), ("1:a", "bob", "yes"), ("1:b", "ann", "yes"), ("1:b", "bob", "no"), ("2:a", "bob", "no"),
        ("2:b", "bob", "yes"),
    ]  # fmt: skip
    assert "rows of one annotator on one item are the choices of one answer" in crowd.notes
    assert "rows of one annotator" not in " ".join(read(rows[1:], multilabel=True).notes)


def test_only_a_bar_is_never_part_of_a_name() -> None:
    assert several_in(["rust|dent", "rust"]) == "rust|dent"
    assert several_in(["rust; dent", "rust"]) is None
    assert split_cells(["in|out", "no"]) == ([("in", "out"), ("no",)], "|")
    assert split_cells(["in; out", "no"]) == ([("in; out",), ("no",)], None)


def test_null_in_a_json_list_is_not_a_choice() -> None:
    assert split_cells(['["rust", null]', "[null]", '[1, "dent"]']) == ([("rust",), (), ("1", "dent")], None)


def test_columns_of_choices_have_at_most_twenty_values() -> None:
    spellings = ["".join(letters) for letters in product("yY", "eE", "sS")]
    spellings += ["".join(letters) for letters in product("tT", "rR", "uU", "eE")]
    for n in (20, 21):
        column = spellings[:n]
        table = {"task": list(range(n)), "worker": ["ann"] * n, "a": column, "b": column}
        if n == 20:
            assert read(table, multilabel=True).choices == ("a", "b")
        else:
            with pytest.raises(ColumnsError, match="cannot find the choices"):
                read(table, multilabel=True)


def test_judges_of_a_wide_table_are_models_and_choices_are_not(tmp_path: Path) -> None:
    wide = as_csv(tmp_path / "wide.csv", "item,ann,gpt-4o", ["p1,a|b,a", "p2,b,a"])
    assert read(wide, multilabel=True, wide=True).models == {"gpt-4o"}
    ticked = as_csv(tmp_path / "votes.csv", "task,worker,llama,camel", ["p1,ann,1,0", "p2,ann,0,1"])
    assert read(ticked, multilabel=True).models == frozenset()


def test_choices_of_a_wide_table_are_spelled_as_in_the_file(tmp_path: Path) -> None:
    wide = as_csv(tmp_path / "wide.csv", "item,ann,bob", ["p1,1.0|2.0,2.0", "p2,1.0,1.0", "p3,2.0,1.0|2.0"])
    assert read(wide, multilabel=True, wide=True).choices == ("1.0", "2.0")
