"""Tables of the how-tos on costs, recall and reviews: what docs/evidence has measured of decisions and promises."""

from __future__ import annotations

from statistics import median

from benchmarks import pages
from benchmarks.decisions import BUDGETS, ORDERS, kinds, left
from benchmarks.evidence import read


def interval_table() -> str:
    """On how many datasets the intervals of what to expect held the truth, in each world and in both."""
    rows = []
    for row in read("expectations"):
        if row["dataset"].startswith("sum of"):
            of = row["dataset"].removeprefix("sum of ")
            counts = [f"{row[name]} of {of}" for name in ("independent_covers", "shared_covers", "expected_covers")]
            told = [f"{float(row['expected_width']):.2f}", f"{row['told']} of {of}"]
            rows.append([row["method"], row["figure"], *counts, *told])
    head = ["labels of", "figure", "independent errors", "shared errors", "both", "mean width", "informative"]
    return pages.table(head, rows)


def simulated_table() -> str:
    """How many intervals held the truth on simulated crowds, by how annotators err."""
    rows = []
    for row in read("expectations_simulated"):
        if row["seed"].startswith("sum of") and not row["quality"] and not row["imbalance"]:
            of = row["seed"].removeprefix("sum of ")
            counts = [f"{row[name]} of {of}" for name in ("independent_covers", "shared_covers", "expected_covers")]
            rows.append([row["errors"] or "all", row["figure"], *counts, f"{float(row['expected_width']):.2f}"])
    return pages.table(["errors", "figure", "independent errors", "shared errors", "both", "mean width"], rows)


def verdict_text() -> str:
    """How well the expected accuracy ranks real crowds, and how right labels with each verdict are."""
    rows = {row["dataset"]: row for row in read("verdict") if not row["dataset"].startswith("mean of")}
    rank, area = rows.pop("rank correlation"), rows.pop("AUC")
    means = [row for row in read("verdict") if row["dataset"].startswith("mean of")]
    said = " and ".join(
        f"{float(row['accuracy']):.0%} in the {row['dataset'].removeprefix('mean of ')} crowds with “{row['verdict']}”"
        for row in means
    )
    return (
        f"On {len(rows)} public crowds ([figures](../evidence/verdict.csv)) the rank correlation between the expected "
        f"and the true accuracy is {rank['expected_accuracy']}; for the verdict of version 0.2, which followed the "
        f"most serious reason, it is {rank['verdict_before']}. The AUC of finding the crowds with at least 80% of the "
        f"labels right is {area['expected_accuracy']}, and {area['verdict_before']} for version 0.2. The mean share "
        f"of right labels is {said}."
    )


def promise_text() -> str:
    """How often random gold promised, and kept it."""
    rows = read("promises")
    made = [row for row in rows if int(row["promised"])]
    often = [row for row in made if int(row["promised"]) >= 100]
    kept = {row["dataset"]: int(row["kept_on_all_items"]) / int(row["promised"]) for row in often}
    worst = min(kept, key=kept.__getitem__)
    total, good = (sum(int(row[name]) for row in made) for name in ("promised", "kept_on_all_items"))
    return (
        f"Measured with {rows[0]['samples']} random samples of 5% from each of {len(rows)} real datasets: a recall of "
        f"0.9 with 80% confidence was promised {total:,} times, on {len(made)} datasets (on the others the samples "
        f"have too few items of the class). The promise was kept {good:,} times, or {good / total:.0%}. Of the "
        f"{len(often)} datasets with at least 100 promises, {worst} is the worst, with {kept[worst]:.0%} kept."
    )


def cost_table() -> str:
    """Realised cost of decisions by cost over that of the default's own labels."""
    rows = []
    for kind, own in kinds(read("decisions")).items():
        cells = [kind, str(n_crowds := sum(int(row["crowds"]) for row in own))]
        for name in ("least_cost", "shares_given"):
            ratio = median(float(row[name]) / float(row["own"]) for row in own)
            cells += [f"{ratio:.2f}", f"{sum(int(row[f'lower_{name}']) for row in own)} of {n_crowds}"]
        rows.append(cells)
    return pages.table(["crowds", "number", "cost ratio", "lower in", "ratio, class shares given", "lower in"], rows)


def label_table() -> str:
    """Recall and precision of each label of real crowds, decided by itself and in one pool."""
    rows = []
    found = {(row["crowd"], row["label"], row["way"]): row for row in read("labels") if row["votes"] == "all"}
    for (crowd, label, way), each in found.items():
        if way == "each":
            pooled = found[crowd, label, "pooled"]
            cells = [f"{crowd}, {label}", f"{each['true']} of {each['items']}"]
            for name in ("recall", "precision", "balanced_accuracy"):
                cells += [f"{float(each[name]):.2f}", f"{float(pooled[name]):.2f}"]
            rows.append(cells)
    head = ["label", "items that have it"]
    for what in ("recall", "precision", "balanced accuracy"):
        head += [what, "pooled"]
    return pages.table(head, rows)


def shared_skill_text() -> str:
    """What a skill that labels share changes."""
    rows = [row for row in read("labels") if row["way"] in ("own skill", "shared skill")]
    own = {(row["crowd"], row["label"], row["votes"]): row for row in rows if row["way"] == "own skill"}
    change = [
        float(row["balanced_accuracy"]) - float(own[row["crowd"], row["label"], row["votes"]]["balanced_accuracy"])
        for row in rows
        if row["way"] == "shared skill"
    ]
    return (
        "A model in which an annotator's skill carries over from one label to the next was measured on the same "
        f"crowds, with all votes and with three per item: it changed the balanced accuracy by {min(change):+.3f} to "
        f"{max(change):+.3f} (median {median(change):+.3f}). rarevote therefore estimates the skills for each label "
        "separately."
    )


def review_table() -> str:
    """The part of the cost that a review leaves, by how the items were chosen."""
    rows = []
    for kind, own in kinds(read("decisions")).items():
        for budget in BUDGETS:
            rows.append([kind, f"{budget:.0%}", *(f"{left(own, order, budget):.1%}" for order in ORDERS)])
    return pages.table(["crowds", "reviewed", "`--max-review`", "the least certain", "at random"], rows)


def realised_cost_table() -> str:
    """What decisions by cost really cost beside giving all items one label, and beside the default's labels."""
    table = []
    rows = read("costs")
    for miss in dict.fromkeys(row["miss"] for row in rows):
        mine = [row for row in rows if row["miss"] == miss]
        rule, own, trivial, expected, expected_trivial = (
            [min(float(row[name]) for name in names) for row in mine]
            for names in (("rule",), ("own",), ("all", "none"), ("expected_rule",), ("expected_all", "expected_none"))
        )
        worse = [a > b for a, b in zip(rule, trivial, strict=True)]
        said = [a > b for a, b in zip(expected, expected_trivial, strict=True)]
        table.append(
            [
                miss,
                f"{median(a / b for a, b in zip(rule, trivial, strict=True)):.2f}",
                f"{median(a / b for a, b in zip(own, trivial, strict=True)):.2f}",
                f"{sum(worse)} of {len(mine)}",
                f"{sum(a > b for a, b in zip(own, trivial, strict=True))} of {len(mine)}",
                f"{sum(said)}, right in {sum(a and b for a, b in zip(said, worse, strict=True))}",
            ]
        )
    head = [
        "a miss costs",
        "cost of `--cost` over that of one label for all (median)",
        "cost of the default's labels over that of one label for all (median)",
        "`--cost` is worse than one label for all",
        "the default's labels are worse",
        "warnings that `--cost` is worse",
    ]
    return pages.table(head, table)


def recall_target_table() -> str:
    """Realised recall and flags of recall targets on real crowds, by the draws that say how many items are flagged."""
    names = {
        "shared": "shared errors, curve learned without the source group",
        "shipped": "shared errors, curve as shipped (`--min-recall`)",
        "both": "both cases together, curve learned without the source group",
        "independent": "independent errors (`--errors independent`)",
    }
    rows = [row for row in read("recall_targets") if row["dataset"].startswith("mean of")]
    head = [
        "target",
        "draws of",
        "recall, mean",
        "flags per true item",
        "of an oracle",
        "flags over those of an oracle",
    ]
    shown = [
        [
            f"{float(row['target']):g}",
            names[row["way"]],
            f"{float(row['recall']):.3f}",
            *(f"{float(row[name]):.2f}" for name in ("flags_per_true", "oracle_per_true", "flags_per_oracle")),
        ]
        for row in rows
    ]
    return pages.table(head, shown)


def plan_table() -> str:
    """Accuracy by votes per item for each way to assign them; then the votes that reach what uniform has with 5."""
    rows = read("plan_replay")
    means = [row for row in rows if row["dataset"].startswith("mean of")]
    ways = list(dict.fromkeys(row["way"] for row in means))
    value = {(row["way"], float(row["votes"])): row for row in means}
    shown = [
        [
            f"{votes:g}",
            *(f"{float(value[way, votes]['accuracy']):.3f}" for way in ways),
            *(f"{float(value[way, votes]['average_precision']):.3f}" for way in ways),
        ]
        for votes in sorted({votes for _, votes in value})
        if votes % 0.5 == 0
    ]
    needed = {row["way"]: row for row in rows if row["dataset"].startswith("votes for")}

    def votes_needed(way: str, measure: str) -> str:
        found = float(needed[way][measure])
        return f"{found:.1f}" if found == found else "more than 6"

    last = [votes_needed(way, measure) for measure in ("accuracy", "average_precision") for way in ways]
    head = ["votes per item", *(f"accuracy, {way}" for way in ways), *(f"average precision, {way}" for way in ways)]
    return pages.table(head, [*shown, ["**votes needed to reach uniform with 5**", *last]])
