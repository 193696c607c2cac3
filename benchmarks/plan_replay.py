"""What ``rarevote plan`` saves: votes of real crowds hidden and revealed, by plan and by uniform assignment.

    RAREVOTE_DATA=... python -m benchmarks.plan_replay [--keep FOLDER] [--chart]

Of every dataset with at least seven votes an item, all but two random votes of each item are hidden. Then votes are
revealed in rounds of a quarter of a vote an item, in three ways:

* ``uniform``: items take turns, in random order; a random hidden vote of the item.
* ``plan``: the items that ``plan`` lists on the votes so far, most useful first; a random hidden vote of each.
* ``plan, named``: the same items, and of those whose vote on the item is hidden the annotator whom ``plan`` puts first.

After each round the default method is fitted and its labels are compared with the truth: accuracy, balanced accuracy,
and the average precision of the rarest class. Means are over source groups, of which every one counts the same, of the
means over its datasets and random seeds. ``votes for uniform at 5`` is how many votes an item a way needs for what
uniform assignment has with five (on the mean curve, straight lines between its points). `--chart` only draws the chart
plan_replay.svg, from the figures that are there.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rarevote
from benchmarks import evidence
from benchmarks.datasets import slugs
from benchmarks.expectations import opened, rarest
from rarevote.crowd.annotations import Annotations
from rarevote.decide.review import plan_review
from rarevote.scoring.metrics import score
from rarevote.scoring.ranking import average_precision
from rarevote.study.datasets import find_dataset

WAYS = ("uniform", "plan", "plan, named")
MEASURES = ("accuracy", "balanced_accuracy", "average_precision")
START, STEP, END, GOAL = 2.0, 0.25, 6.0, 5.0
LEAST_VOTES, N_SEEDS = 7.0, 5
LEVELS = tuple(np.arange(START, END + STEP / 2, STEP).tolist())
Ints = NDArray[np.int64]
Row = dict[str, Any]


class Replay:
    """The votes of a crowd, of which some are revealed.

    Args:
        crowd: all votes.
        truth: the true class of every item, -1 where it is not known; such items are left out.
        seed: for the order of the votes.
    """

    def __init__(self, crowd: Annotations, truth: Ints, seed: int) -> None:
        task = np.repeat(np.arange(crowd.n_tasks), np.diff(crowd.task_ptr))
        kept = truth[task] >= 0
        rng = np.random.default_rng(seed)
        order = rng.permutation(int(kept.sum()))
        item = np.unique(task[kept], return_inverse=True)[1].reshape(-1)[order]
        # Votes in random order, then by item: the first two of each are seen from the start.
        by_item = np.argsort(item, kind="stable")
        self.item: Ints = item[by_item]
        self.worker: Ints = crowd.worker[kept].astype(np.int64)[order][by_item]
        self.label: Ints = crowd.label[kept].astype(np.int64)[order][by_item]
        self.truth: Ints = truth[truth >= 0]
        self.start = np.flatnonzero(np.diff(self.item, prepend=-1))
        self.rank: Ints = np.arange(len(self.item)) - self.start[self.item]
        self.turn = rng.permutation(len(self.start))[self.item]  # when an item gets its vote within a round
        self.n_classes = crowd.n_classes
        self.revealed = self.rank < START

    @property
    def n_items(self) -> int:
        return len(self.start)

    def fit(self) -> Any:
        """The default method on what is revealed."""
        rows = np.flatnonzero(self.revealed)
        columns = self.item[rows], self.worker[rows], self.label[rows]
        return rarevote.fit(rarevote.read(columns, classes=list(range(self.n_classes)))).decide()

    def reveal(self, way: str, result: Any, n_votes: int) -> None:
        """Reveal so many votes; where a plan lists too few items with hidden votes, the rest uniformly."""
        hidden = {int(i): self._hidden(int(i)) for i in np.unique(self.item[~self.revealed])}
        chosen: list[int] = []
        if way != "uniform":
            for row, annotators in self._planned(result, everybody=way == "plan, named"):
                if len(chosen) < n_votes and row in hidden:
                    votes = hidden.pop(row)
                    by_worker = {int(self.worker[vote]): vote for vote in reversed(votes)}
                    chosen.append(next((by_worker[name] for name in annotators if name in by_worker), votes[0]))
        self.revealed[chosen] = True
        closed = np.flatnonzero(~self.revealed)
        rest = closed[np.lexsort((self.turn[closed], self.rank[closed]))][: n_votes - len(chosen)]
        self.revealed[rest] = True

    def _hidden(self, item: int) -> list[int]:
        end = self.start[item + 1] if item + 1 < self.n_items else len(self.item)
        return [vote for vote in range(int(self.start[item]), int(end)) if not self.revealed[vote]]

    def _planned(self, result: Any, *, everybody: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Items and annotators as ``plan`` lists them; all annotators, in its order, if wanted."""
        crowd = result.fitted.annotations
        plan = plan_review(
            result.probabilities,
            result.codes,
            result.rule.stakes(crowd.classes, result.probabilities.mean),
            crowd,
            result.tasks,
            max_review=self.n_items,
            abilities=result._abilities if everybody else np.empty((0, 0)),
            n_annotators=crowd.n_workers if everybody else 1,
        )
        for item in plan.items:
            yield int(item.task), tuple(int(name) for name in item.annotators)

    def measured(self, result: Any) -> dict[str, float]:
        """The measures against the truth."""
        # Items are their own names, in order, and each has votes: so is the result.
        assert np.array_equal(result.tasks, np.arange(self.n_items))
        scores, rare = score(self.truth, result.codes), rarest(self.truth)
        p = result.probabilities.p[:, rare]
        return {
            "accuracy": scores.accuracy,
            "balanced_accuracy": scores.balanced_accuracy,
            "average_precision": average_precision(p, self.truth == rare),
        }


def replayed(slug: str, seed: int) -> list[Row]:
    """The measures of one dataset and seed, by way and votes an item."""
    crowd, truth = opened(slug)
    rows = []
    for way in WAYS:
        replay = Replay(crowd, truth, seed)
        result = replay.fit()
        for level in LEVELS:
            if level > START:
                replay.reveal(way, result, round(level * replay.n_items) - int(replay.revealed.sum()))
                result = replay.fit()
            rows.append({"dataset": slug, "way": way, "votes": level, "seed": seed, **replay.measured(result)})
    return rows


def needed(votes: Sequence[float], values: Sequence[float], goal: float) -> float:
    """Where a curve first reaches a value; NaN if it does not."""
    reached = next((i for i, value in enumerate(values) if value >= goal), None)
    if not reached:
        return float("nan") if reached is None else votes[0]
    part = (goal - values[reached - 1]) / (values[reached] - values[reached - 1])
    return votes[reached - 1] + part * (votes[reached] - votes[reached - 1])


def sums(rows: list[Row]) -> Iterator[Row]:
    """Means over groups, by way and votes; then how many votes each way needs for what uniform has with five."""
    groups = {row["dataset"]: find_dataset(row["dataset"]).source_group for row in rows}
    curves: dict[tuple[str, str], list[float]] = {}
    for way in WAYS:
        for level in LEVELS:
            mine = [row for row in rows if row["way"] == way and row["votes"] == level]
            name = f"mean of {len(set(groups.values()))} groups"
            mean: Row = {"dataset": name, "way": way, "votes": level, "seed": ""}
            for measure in MEASURES:
                by_group = [
                    np.mean([row[measure] for row in mine if groups[row["dataset"]] == group])
                    for group in dict.fromkeys(groups.values())
                ]
                mean[measure] = float(np.mean(by_group))
                curves.setdefault((way, measure), []).append(mean[measure])
            yield mean
    at_goal = LEVELS.index(GOAL)
    for way in WAYS:
        votes = {m: needed(LEVELS, curves[way, m], curves["uniform", m][at_goal]) for m in MEASURES}
        yield {"dataset": "votes for uniform at 5", "way": way, "votes": "", "seed": "", **votes}


def draw_chart() -> Path:
    """The mean accuracy by votes an item, one line a way."""
    from rarevote.charts.svg import to_svg
    from rarevote.study.figures import Axis, Mark, line_chart

    points = []
    for row in evidence.read("plan_replay"):
        if row["dataset"].startswith("mean of"):
            right = 100 * float(row["accuracy"])
            points.append(Mark(row["dataset"].removeprefix("mean of "), row["way"], float(row["votes"]), *[right] * 3))
    title = "Labels that are right, by votes an item"
    chart = line_chart(points, title=title, x=Axis("votes an item"), y=Axis("labels right, %"), same_y=False)
    path = evidence.EVIDENCE / "plan_replay.svg"
    path.write_text(to_svg(chart), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="a folder for what is computed, so that a run can go on")
    parser.add_argument("--datasets", help="only these; nothing is written to docs/evidence")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--chart", action="store_true", help="only draw the chart, from the figures that are there")
    options = parser.parse_args()
    if options.chart:
        print(draw_chart().relative_to(evidence.REPOSITORY))
        return
    warnings.simplefilter("ignore")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for slug in options.datasets.split(",") if options.datasets else slugs(match="exact"):
        crowd, truth = opened(slug)
        if np.diff(crowd.task_ptr)[truth >= 0].mean() < LEAST_VOTES:
            continue
        for seed in range(options.seeds):
            path = None if options.keep is None else options.keep / f"{slug}-{seed}.json"
            if path is not None and path.is_file():
                found = json.loads(path.read_text(encoding="utf-8"))
            else:
                found = replayed(slug, seed)
                if path is not None:
                    path.write_text(json.dumps(found), encoding="utf-8")
            rows += found
            at_end = [f"{row['way']} {row['accuracy']:.3f}" for row in found if row["votes"] == GOAL]
            print(slug, seed, *at_end, sep=", ", flush=True)
    # Seeds are repeats of one measurement: the evidence has their mean.
    means = []
    for key in dict.fromkeys((row["dataset"], row["way"], row["votes"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["way"], row["votes"]) == key]
        values = {measure: float(np.mean([row[measure] for row in mine])) for measure in MEASURES}
        means.append(dict(zip(("dataset", "way", "votes"), key, strict=True)) | {"seed": f"{len(mine)} seeds"} | values)
    means += sums(rows)
    rounded = [{k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in means]
    for row in rounded[-3:]:
        print(row)
    if not options.datasets:
        print(evidence.write("plan_replay", rounded).relative_to(evidence.REPOSITORY))
        print(draw_chart().relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
