"""``rarevote demo``: the point in one minute, on the example that comes with the package."""

from __future__ import annotations

from pathlib import Path

from rarevote.cli.options.verb import file_option, verb
from rarevote.cli.show import aligned, share, tell
from rarevote.crowd.words import percent

METHOD_TITLES = {
    "majority-vote": "majority vote",
    "dawid-skene": "Dawid–Skene",
    "cc-rasch": "CC-Rasch, as published",
    "anchored-rasch": "the default",
}
RARE = "defect"


@verb("rarevote demo", "rarevote demo --report rails.html")
@file_option("--report", help="Also write a report page, such as report.html.")
def demo(report: Path | None) -> None:
    """Run four methods on simulated rail inspections with rare defects: what each finds, and its false alarms."""
    from rarevote.api import fit, read
    from rarevote.scoring.ranking import flags_needed
    from rarevote.simulate.files import example_files

    files = example_files()
    crowd = read(files.labels)
    truth = crowd.known(files.truth)
    votes = crowd.annotations
    defects = sum(label == RARE for label in truth.values())
    tell(
        f"Rail inspection (simulated): {votes.n_tasks:,} images, {defects} of them with a defect "
        f"({percent(defects / len(truth))}),\n{votes.n_workers} inspectors, {votes.n_annotations:,} votes. "
        "Most inspectors overlook some defects.\n"
    )
    results = {name: fit(crowd, name, rare=RARE).decide(allow_unvoted=True) for name in METHOD_TITLES}
    default = list(results.values())[-1]
    is_rare = [truth[task] == RARE for task in default.tasks.tolist()]
    needed = flags_needed(default.fitted.probabilities[:, default.fitted.rare.code], is_rare, (0.9, 0.95))
    tell("To find 90% of the defects, look at the {:,} most suspicious images; for 95%, at {:,}.\n".format(*needed))
    rows = []
    for name, result in results.items():
        scores, flagged = result.score(truth), int((result.labels == RARE).sum())
        rows.append(
            [
                METHOD_TITLES[name],
                f"{flagged:,}",
                f"{round(scores['rare_recall'] * defects)} of {defects}",
                share(scores["rare_recall"]),
                share(scores["rare_precision"]),
                share(scores["balanced_accuracy"]),
            ]
        )
    tell(aligned(["method", "flagged", "defects found", "recall", "precision", "balanced accuracy"], rows))
    target = default.fitted.decide(min_recall={RARE: 0.9}).target
    assert target is not None
    few, many = target.flags["independent"], target.flags["shared"]
    tell(
        f"\nOnly the truth shows that {needed[0]:,} images are enough. From the votes alone, --min-recall {RARE}=0.9\n"
        f"flags {few:,} images if inspectors make errors independently (these do, as they are simulated), and\n"
        f"{many:,} if they share errors as real crowds do, which is the default."
    )
    tell(
        "\nThe majority vote misses defects; CC-Rasch finds almost all, but most of its flags are false. The default\n"
        "weights a miss by how rare the class is, up to 10 false alarms (--decide balanced:10).\n\n"
        f"Your own data: rarevote aggregate labels.csv --out result.csv\nThese data: {files.labels}"
    )
    if report is not None:
        from rarevote.page.report import check_page_path

        check_page_path(report)
        page = default.report(report, truth=truth, source="Rail inspection (simulated)").page
        tell(f"Open the page: {page.resolve()}")
