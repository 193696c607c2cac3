"""Input files of the cases: the shipped example, simulated crowds in every format, the fixtures of the tests."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from proofs.golden.repeatable import REPOSITORY
from rarevote import example_files, simulate_crowd, simulate_jury

_HEADER = ("task", "worker", "label", "text")
_NAMES = {2: ("sound", "defect"), 3: ("sound", "scratch", "defect")}


def make_inputs(folder: Path) -> None:
    """Write all input files into the folder, once."""
    if folder.exists():
        return
    folder.mkdir()
    shutil.copy(example_files().labels, folder / "rails.csv")
    shutil.copy(example_files().truth, folder / "rails-truth.csv")
    for found in ("platforms/fixtures", "fuzz_seeds", "recorded"):
        (source,) = (REPOSITORY / "tests").rglob(found)
        shutil.copytree(source, folder, dirs_exist_ok=True)
    (folder / "labels.csv").unlink()  # of the recorded audits, which have it under another name
    shutil.copy(next((REPOSITORY / "tests").rglob("recorded/labels.csv")), folder / "audited.csv")
    rows = _crowd(folder, "labels", simulate_crowd(300, 20, imbalance=6, votes_per_task=6, p_good=0.5, p_bad=0.0,
                                                   random_state=1))  # fmt: skip
    three = simulate_crowd(240, 20, n_classes=3, imbalance=8, votes_per_task=5, random_state=2)
    _formats(folder, rows, _crowd(folder, "three", three))
    good = simulate_crowd(300, 40, imbalance=2, votes_per_task=10, p_good=1, p_majority=0, p_minority=0, p_bad=0,
                          hard_share=0.1, random_state=0)  # fmt: skip
    _crowd(folder, "easy", good)
    _crowd(folder, "judges", simulate_jury(200, 5, together=0.9, random_state=3))
    _odd(folder, rows)


def _crowd(folder: Path, name: str, crowd: Any) -> list[tuple[str, ...]]:
    """``NAME.csv``, ``NAME-truth.csv`` and ``NAME-gold.csv``, which has every sixth task; returns the rows."""
    names = _NAMES[crowd.n_classes]
    rows: list[tuple[str, ...]] = [
        (f"t{task:03d}", f"w{worker:02d}", names[label], f"part {task}, seen by hand")
        for task, worker, label in zip(*(column.tolist() for column in crowd.arrays), strict=True)
    ]
    truth = [(f"t{task:03d}", names[code]) for task, code in enumerate(crowd.truth.tolist())]
    _csv(folder / f"{name}.csv", [_HEADER, *rows])
    _csv(folder / f"{name}-truth.csv", [("task", "label"), *truth])
    _csv(folder / f"{name}-gold.csv", [("task", "label"), *truth[::6]])
    return rows


def _csv(path: Path, rows: Iterable[Sequence[str]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        csv.writer(handle, delimiter=delimiter).writerows(rows)


def _formats(folder: Path, rows: list[tuple[str, ...]], three: list[tuple[str, ...]]) -> None:
    """The same votes in every format that is read."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.feather
    import zstandard

    frame = pd.DataFrame(rows, columns=list(_HEADER))
    frame.to_parquet(folder / "labels.parquet")
    pyarrow.feather.write_feather(pa.Table.from_pandas(frame), folder / "labels.arrow", compression="uncompressed")
    frame.to_excel(folder / "labels.xlsx", index=False)
    frame.to_json(folder / "labels.json", orient="records")
    frame.to_json(folder / "labels.ndjson", orient="records", lines=True)
    _csv(folder / "labels.tsv", [_HEADER, *rows], "\t")
    _csv(folder / "semicolon.csv", [_HEADER, *rows], ";")
    _csv(folder / "headless.csv", [row[:3] for row in rows])
    _csv(folder / "renamed.csv", [("image", "rater", "verdict", "note"), *rows])
    text = (folder / "labels.csv").read_bytes()
    (folder / "labels.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    (folder / "labels.csv.zst").write_bytes(zstandard.compress(text))
    wide = frame.pivot_table(index="task", columns="worker", values="label", aggfunc="first")
    wide.to_csv(folder / "wide.csv")
    parts = folder / "parts"
    parts.mkdir()
    _csv(parts / "a.csv", [_HEADER, *rows[:900]])
    _csv(parts / "b.csv", [_HEADER, *rows[900:]])
    _csv(folder / "new.csv", [_HEADER, *(("n" + row[0][1:], *row[1:]) for row in rows[:200])])
    _csv(folder / "new3.csv", [_HEADER, *(("n" + row[0][1:], *row[1:]) for row in three[:200])])


def _odd(folder: Path, rows: list[tuple[str, ...]]) -> None:
    """What a reader has options for: repeated pairs, abstentions, holes, items without votes, costs."""
    _csv(folder / "repeated.csv", [_HEADER, *rows, *((*row[:2], "defect", row[3]) for row in rows[:50])])
    said = [(*row[:2], "not sure" if number % 9 == 0 else row[2], row[3]) for number, row in enumerate(rows)]
    _csv(folder / "unsure.csv", [_HEADER, *said])
    _csv(
        folder / "holes.csv",
        [_HEADER, *((*row[:2], "" if n % 50 == 0 else row[2], row[3]) for n, row in enumerate(rows))],
    )
    tasks = sorted({row[0] for row in rows})
    (folder / "items.txt").write_text("\n".join([*tasks, "t900", "t901", "t902"]) + "\n", encoding="utf-8")
    _csv(folder / "costs.csv", [("", "sound", "defect"), ("sound", "0", "1"), ("defect", "20", "0")])
    _csv(folder / "formula.csv", [("task", "worker", "label"), *((f"=t{row[0]}", *row[1:3]) for row in rows[:300])])
    _csv(folder / "two-columns.csv", [("task", "worker"), *(row[:2] for row in rows[:9])])
    _csv(folder / "hostile.csv", [_HEADER, *((row[0], row[1], "defect" if row[2] == "sound" and int(row[1][1:]) % 2
                                               else "sound", row[3]) for row in rows[:400])])  # fmt: skip
    _csv(folder / "cifar.csv", [("annotator_id", "chosen_label", "true_label", "cifar10_test_test_idx"),
                                ("0", "3", "3", "10"), ("1", "5", "3", "10"), ("2", "8", "8", "2")])  # fmt: skip
    (folder / "more.txt").write_text("\n".join(f"t{n:03d}" for n in range(310)) + "\n", encoding="utf-8")
    for number, name in enumerate(("dog", "rte")):
        place = folder / "data" / name
        place.mkdir(parents=True)
        _crowd(place, "labels", simulate_crowd(80, 12, imbalance=3, votes_per_task=5, random_state=number))
        (place / "labels-truth.csv").rename(place / "truth.csv")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    (folder / "header.csv").write_text("task,worker,label\n", encoding="utf-8")
    (folder / "damaged.json").write_text('[{"task": 1, "worker"', encoding="utf-8")
    (folder / "damaged.parquet").write_bytes(b"PAR1 this is not one")
    (folder / "scores.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
