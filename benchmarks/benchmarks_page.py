"""Tables of docs/benchmarks.md and docs/install-size.md, from docs/evidence."""

from __future__ import annotations

from benchmarks.evidence import EVIDENCE, read
from benchmarks.pages import table


def rivals_table() -> str:
    """Seconds of ours and of another library for the same fit on the same votes, on the clock and of the CPU."""
    found = {(row["measure"], row["rival"], row["unit"]): row for row in read("rivals")}
    lines = []
    for measure, rival in dict.fromkeys((measure, rival) for measure, rival, _ in found):
        clock, cpu = (found.get((measure, rival, unit), {}) for unit in ("clock", "CPU"))
        cells = [one.get(name, "") for one in (clock, cpu) for name in ("seconds_rival", "seconds", "ratio")]
        cells += [cpu.get(name, "") for name in ("iterations_rival", "iterations", "iteration_ratio")]
        lines.append([measure, f"{int((clock or cpu)['annotations']):,}", rival, *cells])
    pair = ["theirs", "ours", "ratio"]
    head = [f"{unit}: {one}" for unit in ("clock, s", "CPU, s") for one in pair]
    head += ["iterations: theirs", "iterations: ours", "CPU per iteration: ratio"]
    return table(["fit", "votes", "against", *head], lines)


def float32_table() -> str:
    """Single beside double precision on the real datasets, by method."""
    rows = [row for row in read("float32") if row["p_difference"]]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        lines.append(
            [
                f"`{method}`",
                str(len(own)),
                str(sum(int(row["labels_changed"]) for row in own)),
                *(f"{max(float(row[name]) for row in own):.1e}" for name in ("p_difference", "posterior_difference")),
            ]
        )
    head = ["", "datasets", "labels that differ", "largest difference of `p`", "of the posterior"]
    return table(head, lines)


def large_table() -> str:
    """A million tasks: whole fits of a frame beside crowd-kit's Dawid–Skene."""
    return table(
        ["fit", "votes", "crowd-kit's Dawid–Skene, s", "ours, s", "times faster", "share of its memory"],
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
