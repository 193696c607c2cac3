"""``rarevote datasets``: the benchmark datasets, where they come from, and how to get them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from rarevote.cli.options.output import json_option, quiet_option
from rarevote.cli.options.verb import PATH, Verbs, argument, examples, file_option, one_of
from rarevote.cli.show import aligned, say, tell
from rarevote.crowd.steps import counting
from rarevote.errors import ParameterError

cache_option = file_option(
    "--cache", metavar="FOLDER", help="Where datasets are kept. Default: RAREVOTE_CACHE, or the user's cache."
)

data_option = file_option(
    "--data",
    metavar="FOLDER",
    help="A folder to look in first; its other datasets are listed too.",
)


def _dataset_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Datasets whose names begin with the typed text, for the shell's completion."""
    from rarevote.study.datasets import list_datasets

    return [info.slug for info in list_datasets() if info.slug.startswith(incomplete)]


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    help="Benchmark datasets: list, fetch, import.",
    epilog=examples(
        "rarevote datasets list",
        "rarevote datasets show trec",
        "rarevote datasets fetch dog rte",
        "rarevote datasets import cifar10h cifar10h-raw.csv",
    ),
)
@data_option
@json_option
@click.pass_context
def datasets(context: click.Context, data: Path | None, as_json: bool) -> None:
    """List the benchmark datasets, with size, imbalance and how to get each."""
    if context.invoked_subcommand is not None:
        return
    _tell_list(data, as_json)


@datasets.verb("rarevote datasets list", "rarevote datasets list --data my-crowds --json", name="list")
@data_option
@json_option
@click.pass_context
def list_all(context: click.Context, data: Path | None, as_json: bool) -> None:
    """List the datasets, with size, imbalance and how to get each; the word "list" can be omitted."""
    before = context.parent.params if context.parent else {}  # options before the word
    _tell_list(data or before.get("data"), as_json or before.get("as_json", False))


def _tell_list(data: Path | None, as_json: bool) -> None:
    from rarevote.study.datasets import datasets_of_folder, list_datasets, locate

    found = [*list_datasets(), *datasets_of_folder(data)]
    if as_json:
        entries = [
            {**asdict(info), "access": info.access, "here": str(locate(info, data=data) or "")} for info in found
        ]
        tell(json.dumps(entries))
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
    tell(aligned(header, rows))
    say(
        "\nDatasets of one group share items or workers and are not independent evidence. "
        "Details of one: rarevote datasets show trec"
    )


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


@datasets.verb("rarevote datasets show trec", "rarevote datasets show trec --json")
@argument("name", help="Name of a dataset.", shell_complete=_dataset_names)
@json_option
def show(name: str, as_json: bool) -> None:
    """Show all information about one dataset: sizes, source, licence as stated, overlap with others."""
    from rarevote.study.datasets import find_dataset, locate

    info = find_dataset(name)
    if as_json:
        here = locate(info)
        tell(json.dumps({**asdict(info), "access": info.access, "here": str(here) if here else None}))
        return
    for field, value in asdict(info).items():
        if field not in ("labels", "truth") and value not in (None, ""):
            tell(f"{field:<22}{value}")
    tell(f"{'access':<22}{info.access}")
    tell(f"{'here':<22}{locate(info) or 'no'}")


@datasets.verb("rarevote datasets fetch dog", "rarevote datasets fetch dog rte --cache benchmark-data")
@argument("names", nargs=-1, required=True, help="Names of datasets.", shell_complete=_dataset_names)
@cache_option
@quiet_option
def fetch(names: tuple[str, ...], cache: Path | None) -> None:
    """Download datasets from pinned commits and check them against their checksums."""
    from rarevote.study.datasets import fetch as fetch_dataset
    from rarevote.study.datasets import find_dataset

    chosen = [find_dataset(name) for name in names]
    for info in chosen:
        total = sum(part.n_bytes for part in (info.labels, info.truth) if part is not None)
        with counting(f"fetching {info.slug}", total) as report:
            folder = fetch_dataset(info, cache=cache, progress=lambda done, _total: report(done))
        say(f"{info.slug}: {folder}")


@datasets.verb(
    "rarevote datasets import cifar10h cifar10h-raw.csv",
    "rarevote datasets import jigsaw toxicity_individual_annotations.csv --truth all_data.csv --min-votes 5",
    name="import",
)
@argument("name", help="cifar10h or jigsaw.", shell_complete=one_of("cifar10h", "jigsaw"))
@argument("file", type=PATH, help="The file of individual annotations that you have.")
@file_option("--truth", help="jigsaw: a file with the published share of toxic votes.")
@click.option("--threshold", default=0.5, help="jigsaw: share of toxic votes from which a comment is toxic.")
@click.option("--min-votes", default=1, help="jigsaw: fewest votes a comment needs.")
@cache_option
@quiet_option
def import_file(
    name: str, file: Path, truth: Path | None, threshold: float, min_votes: int, cache: Path | None
) -> None:
    """Import a dataset that cannot be downloaded, from the raw file that its owners publish."""
    from rarevote.study.datasets import import_cifar10h, import_jigsaw

    if name == "cifar10h":
        folder = import_cifar10h(file, cache)
    elif name == "jigsaw":
        folder = import_jigsaw(file, cache, truth=truth, threshold=threshold, min_votes=min_votes)
    else:
        raise ParameterError(f"only cifar10h and jigsaw can be imported, got {name!r}")
    say(f"{name}: {folder}")
