"""``rarevote datasets``: the benchmark datasets, where they come from, and how to get them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rarevote.cli.options.common import Json, Quiet, examples, one_of
from rarevote.cli.show import aligned, counting, say
from rarevote.errors import ParameterError

app = typer.Typer(
    name="datasets",
    add_completion=False,
    help="Benchmark datasets: list, fetch, import.",
    epilog=examples(
        "rarevote datasets",
        "rarevote datasets show trec",
        "rarevote datasets fetch dog rte",
        "rarevote datasets import cifar10h cifar10h-raw.csv",
    ),
)

CacheFolder = Annotated[
    Path | None, typer.Option("--cache", help="Where datasets are kept. Default: RAREVOTE_CACHE, or the user's cache.")
]
DataFolder = Annotated[Path | None, typer.Option("--data", help="A folder of datasets to look in first.")]


@app.callback(invoke_without_command=True)
def list_all(context: typer.Context, data: DataFolder = None, as_json: Json = False) -> None:
    """The benchmark datasets, with size, imbalance and how to get each."""
    if context.invoked_subcommand is not None:
        return
    from rarevote.study.datasets import list_datasets, locate

    found = list_datasets()
    if as_json:
        entries = [
            {**asdict(info), "access": info.access, "here": str(locate(info, data=data) or "")} for info in found
        ]
        typer.echo(json.dumps(entries))
        return

    rows = [
        [
            info.slug,
            _count(info.n_items),
            _count(info.n_workers),
            str(info.n_classes),
            _count(info.n_annotations),
            f"{info.imbalance:.2f}",
            f"{info.annotations_per_item:.2f}",
            info.source_group,
            "here" if locate(info, data=data) else info.access,
        ]
        for info in found
    ]
    header = ["dataset", "items", "workers", "classes", "votes", "imbalance", "votes/item", "group", "access"]
    typer.echo(aligned(header, rows))
    say(
        "\nDatasets of one group share items or workers and are not independent evidence. "
        "Details of one: rarevote datasets show NAME"
    )


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def dataset_names(incomplete: str) -> list[str]:
    """Datasets that begin so, for the shell's completion."""
    from rarevote.study.datasets import list_datasets

    return [info.slug for info in list_datasets() if info.slug.startswith(incomplete)]


@app.command("show", epilog=examples("rarevote datasets show trec", "rarevote datasets show trec --json"))
def show(
    name: Annotated[str, typer.Argument(help="Name of a dataset.", autocompletion=dataset_names)],
    as_json: Json = False,
) -> None:
    """Everything known about one dataset: sizes, source, licence as stated, overlap with others."""
    from rarevote.study.datasets import find_dataset, locate

    info = find_dataset(name)
    if as_json:
        here = locate(info)
        typer.echo(json.dumps({**asdict(info), "access": info.access, "here": str(here) if here else None}))
        return
    for field, value in asdict(info).items():
        if field not in ("labels", "truth") and value not in (None, ""):
            typer.echo(f"{field:<22}{value}")
    typer.echo(f"{'access':<22}{info.access}")
    typer.echo(f"{'here':<22}{locate(info) or 'no'}")


@app.command(epilog=examples("rarevote datasets fetch dog", "rarevote datasets fetch dog rte --cache benchmark-data"))
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names of datasets.", autocompletion=dataset_names)],
    cache: CacheFolder = None,
    quiet: Quiet = False,
) -> None:
    """Download datasets from pinned commits and check them against their checksums."""
    from rarevote.study.datasets import fetch as fetch_dataset
    from rarevote.study.datasets import find_dataset

    chosen = [find_dataset(name) for name in names]
    for info in chosen:
        total = sum(part.n_bytes for part in (info.labels, info.truth) if part is not None)
        with counting(f"fetching {info.slug}", total, quiet=quiet) as report:
            folder = fetch_dataset(info, cache=cache, progress=_without_total(report))
        if not quiet:
            say(f"{info.slug}: {folder}")


def _without_total(report: Callable[[int], None]) -> Callable[[int, int], None]:
    return lambda done, _total: report(done)


@app.command(
    "import",
    epilog=examples(
        "rarevote datasets import cifar10h cifar10h-raw.csv",
        "rarevote datasets import jigsaw toxicity_individual_annotations.csv --truth all_data.csv --min-votes 5",
    ),
)
def import_file(
    name: Annotated[str, typer.Argument(help="cifar10h or jigsaw.", autocompletion=one_of("cifar10h", "jigsaw"))],
    file: Annotated[Path, typer.Argument(help="The file of individual annotations that you have.")],
    truth: Annotated[Path | None, typer.Option(help="jigsaw: a file with the published share of toxic votes.")] = None,
    threshold: Annotated[float, typer.Option(help="jigsaw: share of toxic votes from which a comment is toxic.")] = 0.5,
    min_votes: Annotated[int, typer.Option(help="jigsaw: fewest votes a comment needs.")] = 1,
    cache: CacheFolder = None,
    quiet: Quiet = False,
) -> None:
    """Add a dataset that cannot be downloaded from the raw file that its owners publish."""
    from rarevote.study.datasets import import_cifar10h, import_jigsaw

    if name == "cifar10h":
        folder = import_cifar10h(file, cache)
    elif name == "jigsaw":
        folder = import_jigsaw(file, cache, truth=truth, threshold=threshold, min_votes=min_votes)
    else:
        raise ParameterError(f"only cifar10h and jigsaw can be imported, got {name!r}")
    if not quiet:
        say(f"{name}: {folder}")
