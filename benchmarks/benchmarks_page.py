"""Writes the tables of docs/benchmarks.md and docs/install-size.md from docs/evidence.

``python -m benchmarks.benchmarks_page``
"""

from __future__ import annotations

import csv
from collections.abc import Callable

from benchmarks.evidence import EVIDENCE, REPOSITORY
from benchmarks.pages import filled as filled_page
from benchmarks.pages import table

DOCS = REPOSITORY / "docs"


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of an evidence file."""
    with (EVIDENCE / f"{name}.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def rivals_table() -> str:
    """Seconds of ours and of another library for the same fit on the same votes, in one run."""
    return table(
        ["fit", "votes", "against", "theirs, s", "ours, s", "times faster"],
        [
            [
                row["measure"],
                f"{int(row['annotations']):,}",
                row["rival"],
                row["seconds_rival"],
                row["seconds"],
                row["ratio"],
            ]
            for row in rows_of("rivals")
        ],
    )


def large_table() -> str:
    """A million tasks: whole fits of a frame beside crowd-kit's Dawid–Skene."""
    return table(
        ["fit", "votes", "crowd-kit's Dawid–Skene, s", "ours, s", "times faster", "of its memory"],
        [
            [
                f"{row['method']}, ids are {row['ids']}, crowd {row['seed']}",
                f"{int(row['annotations']):,}",
                row["seconds_rival"],
                row["seconds"],
                row["ratio"],
                row["memory_ratio"],
            ]
            for row in rows_of("netease")
            if row["wanted"]
        ],
    )


def passes_table() -> str:
    """What a pass, a start and a whole command cost, each beside what it is measured by."""
    found = [(row["measure"], row["value"], row["wanted"]) for row in rows_of("foundation") if row["wanted"]]
    found += [
        (row["measure"], row["value"], f"at most {row['at_most']}")
        for row in rows_of("files")
        if row["at_most"] and "DuckDB alone" in row["measure"]
    ]
    found += [
        (f"{int(row['annotations']):,} votes from Parquet, now / before", row["ratio"], row["wanted"])
        for row in rows_of("before")
        if row["wanted"]
    ]
    return table(["measure", "value", "wanted"], [list(row) for row in found])


def quality_table() -> str:
    """The default and CC-Rasch over the real datasets."""
    columns = {
        "minority_recall": "recall of the rarest class",
        "minority_precision": "its precision",
        "balanced_accuracy": "balanced accuracy",
        "log_loss": "log loss",
        "calibration_error": "calibration error",
    }
    means = [row for row in rows_of("anchored_datasets") if row["dataset"].startswith("mean")]
    return table(["", *columns.values()], [[f"`{row['method']}`", *(row[name] for name in columns)] for row in means])


def probabilities_table() -> str:
    """What the reported probability and the posterior are worth on the real datasets, by method."""
    columns = {
        "log_loss": "log loss of `p`",
        "calibration_error": "calibration error of `p`",
        "posterior_log_loss": "log loss of the posterior",
        "posterior_calibration_error": "calibration error of the posterior",
    }
    means = [row for row in rows_of("probabilities") if row["dataset"].startswith("mean")]
    return table(["", *columns.values()], [[f"`{row['method']}`", *(row[name] for name in columns)] for row in means])


def size_table() -> str:
    """What a plain installation takes, largest parts first."""
    return table(["part", "MB"], [[row["part"], row["mb"]] for row in rows_of("install_size")])


def evidence_table() -> str:
    """Every file of figures: when, at which commit and by which command it was made."""
    rows = []
    for path in sorted(EVIDENCE.glob("*.csv")):
        found = rows_of(path.stem)
        last = max(found, key=lambda row: row["date"])
        command = " ".join(word for word in last["command"].split()[:3])
        rows.append(
            [f"[{path.stem}](evidence/{path.name})", str(len(found)), last["date"], last["commit"], f"`{command}`"]
        )
    return table(["figures", "rows", "measured", "commit", "by"], rows)


BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "benchmarks.md": {
        "rivals": rivals_table,
        "large": large_table,
        "passes": passes_table,
        "quality": quality_table,
        "probabilities": probabilities_table,
        "evidence": evidence_table,
    },
    "install-size.md": {"size": size_table},
}


def filled(page: str) -> str:
    """A page with every table as the evidence has it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return filled_page(text, {name: made() for name, made in BLOCKS[page].items()}, page)


def main() -> None:
    for page in BLOCKS:
        (DOCS / page).write_text(filled(page), encoding="utf-8")


if __name__ == "__main__":
    main()
