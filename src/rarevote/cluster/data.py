"""From tables in many parts to encoded shards on disk, by dask: no machine needs all rows.

1. Every part is scanned for the workers and labels that occur; their sorted union gives the same numbers
   everywhere.
2. Every part is encoded: workers and labels become numbers, tasks keep their names.
3. Rows are shuffled once, so that all rows of a task are in one shard.
4. Every shard is compressed (see :class:`~rarevote.crowd.annotations.Annotations`) and written: votes to one file,
   names of tasks to another, which is read again only when results are written.

The driver and all workers must see the folder. It is complete once ``crowd.json`` exists.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.host import names_file, read_names, shard_file, write_names
from rarevote.cluster.parts import Parts, Rows
from rarevote.crowd.annotations import MAX_CLASSES, Annotations, Keep
from rarevote.crowd.names import (
    as_name_array,
    in_kind,
    plain_name,
    some_names,
    sort_labels,
    sort_names,
    unmatched,
    values_by_name,
)
from rarevote.errors import InputError, warn_user
from rarevote.io.arrays import save_arrays
from rarevote.io.duck import first_line
from rarevote.io.json_text import parse_json
from rarevote.io.read.cells import several_in
from rarevote.io.write.atomic import make_folder, replacing

# Annotations per shard: enough to keep a core busy for some milliseconds, few enough to distribute well.
_ANNOTATIONS_PER_SHARD = 500_000
# Every shard has sums for all workers: with fewer annotations per worker, these dominate the pass.
_ANNOTATIONS_PER_WORKER = 4
# Beyond this many, shuffling costs more than larger shards do.
_MAX_SHARDS = 20_000
_UNITED_AT_ONCE = 16
_ROW_BITS = 40  # bits of a row number; those above are the part number


@dataclass(frozen=True)
class StagedCrowd:
    """A crowd whose votes are in files: the facts for models, and the location of the rest."""

    folder: Path
    identity: str
    n_shards: int
    n_tasks: int
    n_annotations: int
    n_dropped: int
    class_names: list[Any]
    annotations_of_shard: list[int]

    @cached_property
    def workers(self) -> NDArray[Any]:
        """Names of the workers, sorted."""
        return as_name_array(read_names(_workers_file(self.folder)).tolist())

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Names of the classes, sorted."""
        return as_name_array(self.class_names)

    @property
    def n_workers(self) -> int:
        """Number of workers with at least one vote."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


@dataclass(frozen=True)
class Staging:
    """How to encode.

    Attributes:
        folder: the folder for the shards, visible to the driver and all workers.
        identity: identifies the crowd.
        n_shards: number of shards; None to choose it by the number of annotations.
        partitioned: the parts are used as shards: all rows of a task must be in one part.
        classes: classes that exist even without votes.
        abstain: answers that are not votes.
        keep: which of repeated (task, worker) pairs count.
        gold: labels that the method can learn from.
    """

    folder: Path
    identity: str = ""
    n_shards: int | None = None
    partitioned: bool = False
    classes: Sequence[Any] = ()
    abstain: Sequence[Any] = ()
    keep: Keep = "all"
    gold: Mapping[Any, Any] | None = None


def stage(client: Any, parts: Parts, how: Staging) -> StagedCrowd:
    """Encode a table in parts into shards on disk.

    Raises:
        InputError: a part cannot be read or has missing values, there are no votes, or the folder cannot be written to.
    """
    from dask.delayed import delayed

    make_folder(how.folder)
    _check_seen_by_all(client, how.folder)
    survey = _survey(client, parts, how)
    if how.gold is not None:
        how = replace(how, gold=_gold_in_kind(how.gold, survey))
    classes = _class_names(survey, how)
    workers = sort_names(survey.workers)
    write_names(_workers_file(how.folder), as_name_array(workers))
    encoded = [
        delayed(encode_part)(rows, number, how.folder, how.abstain, classes, pure=False)
        for number, rows in enumerate(parts.readers)
    ]
    if not how.partitioned:
        encoded = _shuffled(encoded, survey, how.n_shards)
    codes = {name: k for k, name in enumerate(classes)}
    gold = None if how.gold is None else delayed({task: codes[name] for task, name in how.gold.items()}, pure=False)
    written = _shards(
        client,
        [
            delayed(write_shard)(rows, number, how.folder, how.keep, gold, len(workers), len(classes), pure=False)
            for number, rows in enumerate(encoded)
        ],
    )
    if how.gold is not None:
        _check_gold(how.gold, sum(shard.n_known for shard in written))
    n_annotations = sum(shard.n_annotations for shard in written)
    crowd = StagedCrowd(
        how.folder,
        how.identity,
        len(written),
        sum(shard.n_tasks for shard in written),
        n_annotations,
        survey.n_given - n_annotations,
        list(map(plain_name, classes)),
        [shard.n_annotations for shard in written],
    )
    text = json.dumps({name: value for name, value in vars(crowd).items() if name != "folder"})
    with replacing(how.folder / "crowd.json") as temporary:
        temporary.write_text(text, encoding="utf-8")
    return crowd


def _shards(client: Any, writing: list[Any]) -> list[Any]:
    """The workers' records of the shards that they have written."""
    try:
        return list(client.gather(client.compute(writing)))
    except RuntimeError as error:
        if "P2P" not in str(error):
            raise
        # Dask's shuffle hides the cause; it stores rows on the workers' disks, and these are what fails.
        raise InputError(
            f"the dask workers could not exchange rows ({first_line(error)}). Check whether the disk of their "
            "temporary folder is full or a worker was killed; free space there, or run the same command again"
        ) from None


def staged(folder: Path) -> StagedCrowd | None:
    """The crowd that was encoded into ``folder``, or None if there is none or it is incomplete."""
    path = folder / "crowd.json"
    if not path.is_file():
        return None
    try:
        return StagedCrowd(folder, **parse_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: damaged ({error}); remove {folder} to start again") from None


def _workers_file(folder: Path) -> Path:
    return folder / "workers.parquet"


def _check_seen_by_all(client: Any, folder: Path) -> None:
    mark = folder / ".seen"
    with replacing(mark):
        pass  # an empty file
    blind = [address for address, seen in client.run(Path.is_file, mark.resolve()).items() if not seen]
    mark.unlink()
    if blind:
        raise InputError(
            f"{folder}: {len(blind)} of the dask workers cannot see this folder (first: {blind[0]}); choose one on a "
            "file system that the driver and all workers share"
        )


# --------------------------------------------------------------------------------------------------------------------
# names


class Survey(NamedTuple):
    """The workers and labels that occur in some parts."""

    workers: set[Any]
    labels: set[Any]
    silent: set[Any]
    task_kinds: set[str]
    n_given: int
    n_votes: int


def survey_part(rows: Rows, abstain: Sequence[Any]) -> Survey:
    """The workers and labels of one part."""
    voted = rows.without(abstain)
    kinds = {voted.frame["task"].dtype.name} if len(voted) else set()
    labels = set(voted.names("label"))
    silent = set(rows.names("label")) - labels
    return Survey(set(voted.names("worker")), labels, silent, kinds, rows.n_given, len(voted))


def unite(surveys: Sequence[Survey]) -> Survey:
    """The union of several surveys."""
    *sets, given, votes = zip(*surveys, strict=True)
    workers, labels, silent, kinds = (set().union(*one) for one in sets)
    return Survey(workers, labels, silent, kinds, sum(given), sum(votes))


def _survey(client: Any, parts: Parts, how: Staging) -> Survey:
    from dask.delayed import delayed

    found = [delayed(survey_part)(rows, how.abstain, pure=False) for rows in parts.readers]
    while len(found) > 1:
        found = [
            delayed(unite)(found[begin : begin + _UNITED_AT_ONCE], pure=False)
            for begin in range(0, len(found), _UNITED_AT_ONCE)
        ]
    survey: Survey = client.compute(found[0]).result()
    if not survey.n_votes:
        raise InputError(f"{parts.title}: no annotations")
    if len(survey.task_kinds) > 1:
        raise InputError(
            f"{parts.title}: tasks are whole numbers in some parts and text in others; use one type in all parts"
        )
    return survey


def _class_names(survey: Survey, how: Staging) -> list[Any]:
    voted = as_name_array(sort_labels(survey.labels))
    answers = as_name_array(sort_labels(survey.labels | survey.silent))
    for what, strange, found in (
        ("no answer is", unmatched(list(how.abstain), answers), answers),
        ("no vote is for", unmatched(list(how.classes), voted), voted),
    ):
        if strange:
            warn_user(f"{what} {some_names(map(repr, strange))}: there are {some_names(found.tolist())}")
    if (several := several_in(voted.tolist())) is not None:
        warn_user(
            f"labels such as {several!r} look like several choices in one answer; here every combination is a class. "
            "To get one yes/no problem per choice, run on a single machine"
        )
    known = dict.fromkeys([*survey.labels, *in_kind(how.classes, voted)])
    extra = [name for name in dict.fromkeys((how.gold or {}).values()) if name not in known]
    if extra:
        warn_user(f"gold has classes without votes: {', '.join(map(repr, extra[:5]))}; they are kept")
    names = sort_labels([*known, *extra])
    if len(names) > MAX_CLASSES:
        raise InputError(
            f"{len(names):,} distinct labels, more than the {MAX_CLASSES:,} supported. If the label column is free "
            "text or a number, map it to classes first."
        )
    return names


def _gold_in_kind(gold: Mapping[Any, Any], survey: Survey) -> dict[Any, Any]:
    """Gold with tasks and labels of the types in the votes."""
    (kind,) = survey.task_kinds
    one_task = np.array([0]) if kind == "int64" else np.array([""], dtype=object)
    labels = in_kind(gold.values(), as_name_array(list(survey.labels)))
    return values_by_name(zip(in_kind(gold, one_task), labels, strict=True), "task")


def _check_gold(gold: Mapping[Any, Any], n_known: int) -> None:
    if gold and not n_known:
        first = next(iter(gold))
        raise InputError(f"none of the {len(gold):,} gold tasks is in the annotations (first: {first!r}): check ids")
    if n_known < len(gold):
        warn_user(f"gold of {len(gold) - n_known:,} tasks without annotations is ignored")


# --------------------------------------------------------------------------------------------------------------------
# rows


@lru_cache(maxsize=4)
def _worker_index(path: Path, changed: int) -> Any:
    """The workers' numbers by name, once per process."""
    import pandas

    del changed  # modification time of the file: a new file with this name is a new index
    return pandas.Index(read_names(path))


def encode_part(rows: Rows, number: int, folder: Path, abstain: Sequence[Any], classes: Sequence[Any]) -> Any:
    """The votes of a part as a pandas frame: task by name, worker and label by number, and the origin of each row."""
    import pandas

    voted = rows.without(abstain)
    path = _workers_file(folder)
    workers = _worker_index(path, path.stat().st_mtime_ns)
    labels = pandas.Index(as_name_array(list(classes)))
    return pandas.DataFrame(
        {
            "task": voted.frame["task"].reset_index(drop=True),
            "worker": voted.codes("worker", workers).astype(np.uint32),
            "label": voted.codes("label", labels).astype(np.uint16),
            # Shuffling mixes the rows; this number restores their original order.
            "row": (number << _ROW_BITS) + np.arange(len(voted), dtype=np.int64),
        }
    )


def _shuffled(encoded: list[Any], survey: Survey, n_shards: int | None) -> list[Any]:
    """The same rows, grouped by task."""
    import dask.dataframe
    import pandas

    count = n_shards or shards_for(survey.n_votes, len(survey.workers))
    if count == 1 and len(encoded) == 1:
        return encoded
    (kind,) = survey.task_kinds
    dtypes = {
        "task": "int64" if kind == "int64" else "string[pyarrow]",
        "worker": "uint32",
        "label": "uint16",
        "row": "int64",
    }
    meta = pandas.DataFrame({name: pandas.Series(dtype=dtype) for name, dtype in dtypes.items()})
    frame = dask.dataframe.from_delayed(encoded, meta=meta, verify_meta=False)
    shuffled = frame.shuffle("task", npartitions=count, ignore_index=True, shuffle_method="p2p")
    return list(shuffled.to_delayed())


def shards_for(n_votes: int, n_workers: int) -> int:
    """Number of shards of a crowd: shards are large enough for its workers, and several machines can share them evenly.

    >>> [shards_for(millions * 1_000_000, 50_000) for millions in (0, 1, 2, 3, 10, 11, 1_000)]
    [1, 2, 4, 6, 20, 24, 2048]
    >>> shards_for(1_000_000_000, 500_000)
    512
    """
    per_shard = max(_ANNOTATIONS_PER_SHARD, _ANNOTATIONS_PER_WORKER * n_workers)
    count = min(max(math.ceil(n_votes / per_shard), 1), _MAX_SHARDS)
    if count == 1:
        return 1
    step = max((1 << count.bit_length()) >> 3, 2)
    return math.ceil(count / step) * step


class WrittenShard(NamedTuple):
    """The driver's record of a shard."""

    n_tasks: int
    n_annotations: int
    n_known: int


def write_shard(
    frame: Any,
    number: int,
    folder: Path,
    keep: Keep,
    gold: Mapping[Any, int] | None,
    n_workers: int,
    n_classes: int,
) -> WrittenShard:
    """Compress the rows of a shard and write them."""
    import pandas

    frame = frame.sort_values("row", ignore_index=True)
    task_codes, tasks = pandas.factorize(frame["task"])
    crowd = Annotations.from_encoded(
        {
            "task": (task_codes, as_name_array(tasks.tolist())),
            "worker": (frame["worker"].to_numpy(), np.arange(n_workers)),
            "label": (frame["label"].to_numpy(), np.arange(n_classes)),
        },
        keep=keep,
    )
    known = np.empty(0, dtype=np.int32)
    n_known = 0
    if gold is not None:
        known = np.full(crowd.n_tasks, -1, dtype=np.int32)
        place = pandas.Index(crowd.tasks).get_indexer(as_name_array(list(gold)))
        here = place >= 0
        known[place[here]] = np.fromiter(gold.values(), dtype=np.int32, count=len(gold))[here]
        n_known = int(here.sum())
    votes = {"task_ptr": crowd.task_ptr, "worker": crowd.worker, "label": crowd.label, "gold": known}
    write_names(names_file(folder, number), crowd.task_names())
    save_arrays(shard_file(folder, number), votes)
    return WrittenShard(crowd.n_tasks, crowd.n_annotations, n_known)
