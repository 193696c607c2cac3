"""Tables of docs/benchmarks.md and docs/install-size.md, from docs/evidence."""

from __future__ import annotations

from benchmarks.evidence import EVIDENCE, read
from benchmarks.pages import table


def rivals_table() -> str:
    """Seconds of ours and of another library for the same fit on the same votes, in one run."""
    return table(
        ["fit", "votes", "against", "theirs, s", "ours, s", "times faster", "an iteration"],
        [
            [
                row["measure"],
                f"{int(row['annotations']):,}",
                row["rival"],
                row["seconds_rival"],
                row["seconds"],
                row["ratio"],
                row.get("iteration_ratio", ""),
            ]
            for row in read("rivals")
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
            for row in read("netease")
            if row["wanted"]
        ],
    )


def passes_table() -> str:
    """What a pass, a start and a whole command cost, each beside what it is measured by."""
    found = [(row["measure"], row["value"], row["wanted"]) for row in read("foundation") if row["wanted"]]
    found += [
        (row["measure"], row["value"], f"at most {row['at_most']}")
        for row in read("files")
        if row["at_most"] and "DuckDB alone" in row["measure"]
    ]
    found += [
        (f"{int(row['annotations']):,} votes from Parquet, now / before", row["ratio"], row["wanted"])
        for row in read("before")
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
    means = [row for row in read("anchored_datasets") if row["dataset"].startswith("mean")]
    return table(["", *columns.values()], [[f"`{row['method']}`", *(row[name] for name in columns)] for row in means])


def probabilities_table() -> str:
    """What the reported probability and the posterior are worth on the real datasets, by method."""
    columns = {
        "log_loss": "log loss of `p`",
        "calibration_error": "calibration error of `p`",
        "posterior_log_loss": "log loss of the posterior",
        "posterior_calibration_error": "calibration error of the posterior",
    }
    means = [row for row in read("probabilities") if row["dataset"].startswith("mean")]
    return table(["", *columns.values()], [[f"`{row['method']}`", *(row[name] for name in columns)] for row in means])


def growth_table() -> str:
    """CPU seconds and peak memory of every verb by size of the crowd, before and after."""
    found = {(row["votes"], row["verb"], row["code"]): row for row in read("growth")}
    crowds = list(dict.fromkeys(votes for votes, _, _ in found))
    verbs = list(dict.fromkeys(verb for _, verb, _ in found if not verb.startswith("part: ")))
    rows = []
    for votes in crowds:
        for verb in verbs:
            pair = [found.get((votes, verb, code)) for code in ("before", "after")]
            if any(pair):
                seconds, memory = ([one[name] if one else "" for one in pair] for name in ("cpu_seconds", "peak_mb"))
                rows.append([votes, verb, *seconds, *memory])
    head = ["votes", "verb", "before, CPU s", "after, CPU s", "before, MB", "after, MB"]
    return table(head, rows)


def size_table() -> str:
    """What a plain installation takes, largest parts first."""
    return table(["part", "MB"], [[row["part"], row["mb"]] for row in read("install_size")])


def workbench_table() -> str:
    """The workbench under kills, with many items and over a long review."""
    return table(["measured", ""], [[row["figure"], row["value"]] for row in read("workbench")])


def evidence_table() -> str:
    """Every file of figures: when, at which commit and by which command it was made."""
    rows = []
    for path in sorted(EVIDENCE.glob("*.csv")):
        found = read(path.stem)
        last = max(found, key=lambda row: row["date"])
        command = " ".join(word for word in last["command"].split()[:3])
        rows.append(
            [f"[{path.stem}](evidence/{path.name})", str(len(found)), last["date"], last["commit"], f"`{command}`"]
        )
    return table(["figures", "rows", "measured", "commit", "by"], rows)
