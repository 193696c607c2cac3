"""The benchmark datasets: their descriptions, where they are stored, how to get them.

>>> info = find_dataset("CF*")
>>> info.slug, info.n_items, info.access
('cf-star', 300, 'download')
>>> labels, truth = load_dataset("cf-star")        # doctest: +SKIP

A dataset on disk is a folder with its name and two CSV files of text columns: ``labels.csv`` (task, worker, label) and
``truth.csv`` (task, label). These places are searched, in this order:

1. the folder given as ``data``, else the one that ``RAREVOTE_DATA`` names;
2. the cache: the folder given as ``cache``, else ``RAREVOTE_CACHE``, else ``rarevote`` in the user's cache folder;
3. its public repository, if it has one, at a pinned commit and with checksums. This is
   not tried if ``data`` is given.

A folder in ``data`` that is not in the list is also a dataset, under its own name (:func:`datasets_of_folder`).

Two datasets of the paper can only be imported from the user's own files: :func:`import_cifar10h` and
:func:`import_jigsaw`.
"""

from __future__ import annotations

import csv
import difflib
import os
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache as cached
from importlib import resources
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, ParameterError, warn_user
from rarevote.io.read.votes import read_annotations_file, read_truth_file
from rarevote.io.write.atomic import appearing
from rarevote.study.dataset_imports import convert_cifar10h, convert_jigsaw
from rarevote.study.download import TIMEOUT, ByteProgress, download
from rarevote.study.libraries import library

COLUMNS = {"labels": ("task", "worker", "label"), "truth": ("task", "label")}
RAW_FILES = "https://raw.githubusercontent.com"

#: how to get a dataset, by its access
HOW_TO_GET = {
    "download": "rarevote datasets fetch {}",
    "import": "rarevote datasets import {} FILE",
    "folder": "a folder {} with labels.csv and truth.csv in that of --data",
}
_IMPORTED = {"cifar10h": "cifar10h-raw.csv", "jigsaw": "toxicity_individual_annotations.csv"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}


# --------------------------------------------------------------------------------------------------------------------
# the registry


@dataclass(frozen=True)
class SourceFile:
    """A raw file of a dataset at the pinned commit.

    Attributes:
        path: path in the repository.
        n_bytes: its size.
        sha256: its checksum, in hexadecimal.
        columns: its columns for task, worker and label, or for task and label.
    """

    path: str
    n_bytes: int
    sha256: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class DatasetInfo:
    """A description of a dataset, available before it is loaded; an unknown size is None.

    Attributes:
        slug: its name here and on the command line.
        paper_name: its name in the paper, empty for the variants that the paper does not use.
        n_items: number of items with at least one label.
        n_items_truth: number of items with a true label.
        n_workers: number of workers.
        n_classes: number of classes.
        n_annotations: number of labels.
        imbalance: items of the most frequent true class per item of the rarest.
        annotations_per_item: labels per item with labels.
        source_repository: the repository that it comes from.
        licence: the licence that the source states.
        source_group: datasets of one group share items, workers or both, and are not independent evidence.
        note: how it overlaps with other datasets, and cautions.
        commit: the commit that downloads are pinned to, or empty.
        format: format of the raw files, or empty.
        labels: the raw file of labels, if it can be downloaded.
        truth: the raw file of true labels, if it can be downloaded.
    """

    slug: str
    paper_name: str
    n_items: int | None
    n_items_truth: int | None
    n_workers: int | None
    n_classes: int
    n_annotations: int | None
    imbalance: float
    annotations_per_item: float
    source_repository: str
    licence: str
    source_group: str
    note: str
    commit: str
    format: str
    labels: SourceFile | None
    truth: SourceFile | None

    @property
    def access(self) -> Literal["download", "import", "folder"]:
        """How to get it: by download, by import of the user's own file, or only from a folder."""
        if self.labels and self.truth:
            return "download"
        return "import" if self.slug in _IMPORTED else "folder"


def list_datasets() -> list[DatasetInfo]:
    """All datasets: those of the paper in the order of its table, then the variants."""
    return list(_registry().values())


def find_dataset(name: str, *, data: str | Path | None = None) -> DatasetInfo:
    """The dataset with this name; also by its name in the paper, or by the name of a folder in ``data``.

    Case matters only if two names differ in case alone: the paper has a "Bird" and a "bird".

    Raises:
        ParameterError: there is no such dataset; the message names the most similar one.
    """
    known = list_datasets()
    own = own_names(data)
    if name in own:
        return describe_folder(own[name])
    for candidates in (
        [info for info in known if info.slug == name],
        [info for info in known if info.paper_name == name and name],
        [info for info in known if name.lower() in (info.slug, info.paper_name.lower()) and name],
    ):
        if len(candidates) == 1:
            return candidates[0]
    names = {text.lower(): info.slug for info in known for text in (info.paper_name, info.slug) if text}
    names |= {text.lower(): text for text in own}
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    slugs = list(dict.fromkeys(names[text] for text in near))
    hint = (
        f"did you mean {' or '.join(slugs)}?"
        if slugs
        else f"there are {', '.join([*own, *(info.slug for info in known)])}"
    )
    raise ParameterError(f"unknown dataset {name!r}: {hint}")


@cached
def _registry() -> dict[str, DatasetInfo]:
    table = (resources.files("rarevote") / "data" / "datasets.csv").read_text(encoding="utf-8")
    return {row["slug"]: _info_of_row(row) for row in csv.DictReader(table.splitlines())}


_PARSERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "int | None": lambda text: int(text) if text else None,
}


def _info_of_row(row: dict[str, str]) -> DatasetInfo:
    known = {
        entry.name: _PARSERS[str(entry.type)](row[entry.name]) for entry in fields(DatasetInfo) if entry.name in row
    }
    return DatasetInfo(**known, labels=_source(row, "labels"), truth=_source(row, "truth"))


def _source(row: dict[str, str], part: str) -> SourceFile | None:
    path, n_bytes, sha256, columns = (row[f"{part}_{name}"] for name in ("path", "bytes", "sha256", "columns"))
    return SourceFile(path, int(n_bytes), sha256, tuple(columns.split(","))) if path else None


def _info(name: str | DatasetInfo, data: str | Path | None = None) -> DatasetInfo:
    return name if isinstance(name, DatasetInfo) else find_dataset(name, data=data)


# --------------------------------------------------------------------------------------------------------------------
# datasets in a folder that are not in the registry


def own_names(data: str | Path | None = None) -> dict[str, Path]:
    """Names of the folders in ``data`` with labels.csv and truth.csv that are not in the registry."""
    place = data if data is not None else os.environ.get("RAREVOTE_DATA")
    folder = Path(place).expanduser() if place else None
    if folder is None or not folder.is_dir():
        return {}
    return {
        found.name: found for found in sorted(folder.iterdir()) if found.name not in _registry() and _is_complete(found)
    }


def datasets_of_folder(data: str | Path | None = None) -> list[DatasetInfo]:
    """Descriptions of the datasets of :func:`own_names`, with their sizes."""
    return [describe_folder(folder) for folder in own_names(data).values()]


def describe_folder(folder: Path) -> DatasetInfo:
    """The description of a dataset from its files; its group is that in index.csv beside it, else its own name.

    Raises:
        InputError: its files are not valid.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings are shown when it is loaded
        crowd, known = _load(folder)
    sizes = Counter(known.values())
    classes = set(crowd.classes.tolist()) | set(sizes)
    return DatasetInfo(
        slug=folder.name,
        paper_name="",
        n_items=crowd.n_tasks,
        n_items_truth=len(known),
        n_workers=crowd.n_workers,
        n_classes=len(classes),
        n_annotations=crowd.n_annotations,
        imbalance=max(sizes.values()) / min(sizes.values()),
        annotations_per_item=crowd.n_annotations / crowd.n_tasks,
        source_repository="",
        licence="",
        source_group=source_groups(folder.parent / "index.csv").get(folder.name, folder.name),
        note="",
        commit="",
        format="",
        labels=None,
        truth=None,
    )


def source_groups(index: Path) -> dict[str, str]:
    """The group of each dataset, if a folder of datasets has an index."""
    try:
        with index.open(newline="", encoding="utf-8") as handle:
            return {row["slug"]: row["source_group"] for row in csv.DictReader(handle)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{index}: cannot be read ({error}); it needs the columns slug and source_group") from None


# --------------------------------------------------------------------------------------------------------------------
# loading


def load_dataset(
    name: str | DatasetInfo,
    *,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    progress: ByteProgress | None = None,
) -> tuple[Any, Any]:
    """Labels and truth of a dataset as text, in crowd-kit's layout.

    Args:
        data: a folder of datasets.
        cache: the folder for downloads.
        progress: called during a download with the bytes so far and the total.

    Returns:
        With pandas installed, a DataFrame with the columns task, worker, label and a Series ``true_label`` indexed by
        task; without, a dict of these columns and a dict from task to label. Both can be passed to ``fit``. Rows are
        grouped by task, in the order of the file within each.

    Raises:
        ParameterError: the name is unknown.
        InputError: the dataset is not available, or its files are not valid.
    """
    crowd, known = load_annotations(name, data=data, cache=cache, progress=progress)
    columns = {
        "task": crowd.tasks[crowd.task_of_annotation()],
        "worker": crowd.workers[crowd.worker],
        "label": crowd.classes[crowd.label],
    }
    try:
        import pandas
    except ImportError:
        return columns, known
    index = pandas.Index(list(known), name="task")
    return pandas.DataFrame(columns), pandas.Series(list(known.values()), index=index, name="true_label")


def load_annotations(
    name: str | DatasetInfo,
    *,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    progress: ByteProgress | None = None,
) -> tuple[Annotations, dict[str, str]]:
    """A dataset as the encoded crowd and a dict from task to true label; see :func:`load_dataset`."""
    info = _info(name, data)
    folder = locate(info, data=data, cache=cache)
    if folder is None:
        if data is not None or info.access != "download":
            raise InputError(_how_to_get(info, data))
        folder = fetch(info, cache=cache, progress=progress)
    return _load(folder)


def _load(folder: Path) -> tuple[Annotations, dict[str, str]]:
    labels, truth = (folder / f"{part}.csv" for part in COLUMNS)
    crowd = read_annotations_file(labels, columns={name: name for name in COLUMNS["labels"]})
    known = read_truth_file(truth, columns={name: name for name in COLUMNS["truth"]})
    return crowd, _restricted(known, crowd, truth)


def locate(name: str | DatasetInfo, *, data: str | Path | None = None, cache: str | Path | None = None) -> Path | None:
    """The folder of a dataset on this machine, or None if it is not there; nothing is downloaded.

    Raises:
        InputError: the data folder does not exist, contains no dataset, or lacks a file of this one.
    """
    info = _info(name, data)
    named = os.environ.get("RAREVOTE_DATA")
    if data is not None or named:
        folder = Path(data if data is not None else str(named)).expanduser()
        found = _in_data_folder(folder, info, "" if data is not None else " (RAREVOTE_DATA)")
        if found is not None:
            return found
    kept = cache_folder(cache) / info.slug
    return kept if _is_complete(kept) else None


def cache_folder(cache: str | Path | None = None) -> Path:
    """The folder for downloaded and imported datasets: ``cache``, or the default if it is None."""
    given = cache if cache is not None else os.environ.get("RAREVOTE_CACHE")
    if given:
        return Path(given).expanduser() / "datasets"
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "rarevote" / "datasets"


def _restricted(known: dict[str, str], crowd: Annotations, file: Path) -> dict[str, str]:
    """The truth of the tasks that have labels; a warning says how many tasks have none."""
    labelled = set(crowd.tasks.tolist())
    used = {task: label for task, label in known.items() if task in labelled}
    if len(used) < len(known):
        unseen = next(task for task in known if task not in labelled)
        if not used:
            raise InputError(
                f"{file}: none of its {len(known):,} tasks has labels (first: {unseen!r}); check that the ids match"
            )
        warn_user(
            f"{file}: the truth of {len(known) - len(used):,} of {len(known):,} tasks is left out, because they have "
            f"no labels (first: {unseen!r})"
        )
    return used


def _missing_files(folder: Path) -> list[str]:
    return [f"{part}.csv" for part in COLUMNS if not (folder / f"{part}.csv").is_file()]


def _is_complete(folder: Path) -> bool:
    return not _missing_files(folder)


def _in_data_folder(folder: Path, info: DatasetInfo, origin: str) -> Path | None:
    layout = "expected labels.csv (task,worker,label) and truth.csv (task,label)"
    if not folder.is_dir():
        raise InputError(f"{folder}{origin}: no such folder")
    found = folder / info.slug
    if found.is_dir():
        missing = _missing_files(found)
        if missing:
            raise InputError(f"{found}{origin}: has no {' and no '.join(missing)}; {layout}")
        return found
    if not any(_is_complete(other) for other in folder.iterdir()):
        raise InputError(f"{folder}{origin}: holds none of the datasets; {layout} in {found}")
    return None


def _how_to_get(info: DatasetInfo, data: str | Path | None = None) -> str:
    place = f"neither in {data} nor in the cache" if data is not None else "not here"
    if info.access == "download":
        way = f"run rarevote datasets fetch {info.slug}, or leave out the data folder"
    elif info.access == "import":
        way = f"get {_IMPORTED[info.slug]} ({info.source_repository}) and run rarevote datasets import {info.slug} FILE"
    else:
        way = (
            f"it has no download, so put {info.slug}/labels.csv and {info.slug}/truth.csv into a folder and name that "
            "with --data or RAREVOTE_DATA"
        )
    return f"dataset {info.slug} is {place}: {way}"


# --------------------------------------------------------------------------------------------------------------------
# getting


def fetch(
    name: str | DatasetInfo,
    *,
    cache: str | Path | None = None,
    base_url: str | None = None,
    progress: ByteProgress | None = None,
    timeout: float = TIMEOUT,
) -> Path:
    """Download a dataset into the cache, unless it is already there, and return its folder.

    The folder is created with both files or not at all. Several processes can fetch the same dataset.

    Args:
        base_url: a mirror that serves ``{repository}/{commit}/{path}``, else ``RAREVOTE_MIRROR``, else the public host.
        progress: called with the bytes so far and the total.
        timeout: seconds to wait for a response of the server.

    Raises:
        ParameterError: the name is unknown.
        InputError: it has no download, or the download failed; the message says what to do.
    """
    info = _info(name)
    target = cache_folder(cache) / info.slug
    if _is_complete(target):
        return target
    if info.labels is None or info.truth is None:
        raise InputError(_how_to_get(info))
    base = (base_url or os.environ.get("RAREVOTE_MIRROR") or RAW_FILES).rstrip("/")
    total = info.labels.n_bytes + info.truth.n_bytes
    # Another process that fetched it meanwhile has the same content.
    with appearing(target, keep_if=_is_complete) as folder:
        before = 0
        for part, source in (("labels", info.labels), ("truth", info.truth)):
            raw = folder.with_name(f"{part}.raw")
            download(
                f"{base}/{quote(info.source_repository)}/{info.commit}/{quote(source.path)}",
                raw,
                n_bytes=source.n_bytes,
                sha256=source.sha256,
                part=target.with_name(f".{info.slug}-{part}-{source.sha256[:16]}.part"),
                progress=_offset(progress, before, total),
                timeout=timeout,
            )
            _normalise(raw, folder / f"{part}.csv", source.columns, COLUMNS[part], _DELIMITERS[info.format])
            before += source.n_bytes
    return target


def import_cifar10h(file: str | Path, cache: str | Path | None = None) -> Path:
    """Import CIFAR-10H into the cache from its ``cifar10h-raw.csv`` and return the folder.

    Trials that only checked attention are dropped; what remains is 10 000 images with about 51 labels each. An
    earlier import is replaced.

    Raises:
        InputError: the file is not this table.
    """
    target = cache_folder(cache) / "cifar10h"
    with appearing(target) as folder:
        convert_cifar10h(Path(file), folder)
    return target


def import_jigsaw(
    file: str | Path,
    cache: str | Path | None = None,
    *,
    truth: str | Path | None = None,
    threshold: float = 0.5,
    min_votes: int = 1,
) -> Path:
    """Import Jigsaw into the cache from its ``toxicity_individual_annotations.csv`` and return the folder.

    The truth of these data is the crowd's own: a comment is toxic (1) if at least half of its judgements say so, as its
    publishers score it. The paper seems to do the same: its majority vote (recall .916, macro-F1 .975) has not
    a single false alarm, so it is wrong only if a tie goes to 0. The comments that it used are not known; ``min_votes``
    can restrict them.

    Args:
        file: columns id, worker, toxic; others are ignored.
        cache: the folder of the cache.
        truth: a table of published shares instead, with the columns id and ``toxicity`` or ``target`` (the
            competition's all_data.csv or train.csv).
        threshold: a comment is toxic from this share on.
        min_votes: comments with fewer judgements are left out.

    Raises:
        InputError: a file is not this table.
        ParameterError: threshold or min_votes is out of range.
    """
    target = cache_folder(cache) / "jigsaw"
    with appearing(target) as folder:
        shares = None if truth is None else Path(truth)
        convert_jigsaw(Path(file), folder, truth=shares, threshold=threshold, min_votes=min_votes)
    return target


def _offset(progress: ByteProgress | None, before: int, total: int) -> ByteProgress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)


def _normalise(raw: Path, target: Path, columns: tuple[str, ...], names: tuple[str, ...], delimiter: str) -> None:
    """Write the columns of a raw file under our names, with unchanged values."""
    read_csv = library("pandas").read_csv
    try:
        table = read_csv(raw, sep=delimiter, usecols=columns, dtype=str, na_filter=False, encoding="utf-8-sig")
    except ValueError:
        raise InputError(f"{raw.name}: is not a table with the columns {', '.join(columns)}") from None
    with target.open("w", encoding="utf-8", newline="") as result:
        table[list(columns)].to_csv(result, header=names, index=False, lineterminator="\n")
