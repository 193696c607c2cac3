"""The files behind an audit: their fingerprint, their location in the plan, and reading them again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rarevote.audit.audit import Audit
from rarevote.audit.journal import journal_path
from rarevote.audit.locks import lock_path
from rarevote.audit.plan_file import FORMAT, Plan, read_text, to_text
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import some_names
from rarevote.errors import InputError, ParameterError, shown
from rarevote.io.json_text import parse_json
from rarevote.io.read.crowd import Crowd, read
from rarevote.io.read.detect import is_stream, refuse_address, refuse_endless
from rarevote.io.read.options import DEFAULTS, ReadOptions
from rarevote.io.read.paths import files_below, found_paths
from rarevote.io.read.scores import ScoredItems, read_scores

# Options of reading that also apply to a table of scores.
_OF_SCORES = ("columns", "show", "gold_column")
_INSTEAD = "an audit reads its labels again: save them to a local file"


def files_sha256(inputs: Sequence[str | Path]) -> str:
    """SHA-256 of a file, as ``sha256sum`` prints; for several files, that of their hashes, one per line, in order.

    Raises:
        InputError: a file does not exist or cannot be read.
        ParameterError: standard input, which cannot be read again.
    """
    digests = [_digest(file) for given in inputs for file in _files(str(given))]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()


def _files(given: str) -> list[Path]:
    if is_stream(given):
        title = "standard input" if given == "-" else given
        raise ParameterError(f"{title} cannot be read again; {_INSTEAD}")
    refuse_address(given, _INSTEAD)
    found = [file for path in found_paths(given) for file in (files_below(path) if path.is_dir() else [path])]
    for file in found:
        refuse_endless(file)
    return found


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def source_record(labels: Sequence[str], reading: Mapping[str, Any], form: str, plan: Path) -> dict[str, Any]:
    """What the plan records about the files; paths are relative to its folder, so that all can be moved together."""
    for given in labels:
        if Path(given).is_dir() and Path(given).resolve() in plan.resolve().parents:
            raise ParameterError(f"{plan}: is in the folder of the labels, {given}; put the plan elsewhere")
    kept = dict(reading)
    if kept.get("items") is not None:
        kept["items"] = _seen_from(plan, str(kept["items"]))
    return {"labels": [_seen_from(plan, given) for given in labels], "reading": kept, "review_as": form}


def score_record(
    tables: Sequence[str], reading: Mapping[str, Any], form: str, plan: Path, score: str
) -> dict[str, Any]:
    """:func:`source_record` for a table of scores."""
    kept = {name: reading.get(name) for name in _OF_SCORES}
    return {**source_record(tables, kept, form, plan), "score": score}


def read_scored(tables: Sequence[str], score: str, reading: Mapping[str, Any]) -> ScoredItems:
    """A table of scores, read with these options."""
    given = {name: value for name, value in reading.items() if name in _OF_SCORES and value is not None}
    given["show"] = [name for text in given.get("show", ()) for name in text.split(",")]
    return read_scores(tables, score, **given)


def _crowd_of(plan: Plan, places: Sequence[str], options: Mapping[str, Any]) -> Crowd:
    """The population of an audit, read as at its start."""
    strange = [name for name in options if not hasattr(DEFAULTS, name)]
    if strange:
        raise InputError(
            f"the plan has options of reading that are not known ({some_names(strange)}): use the version of rarevote "
            "that wrote it, or a newer one"
        )
    if plan.scored:
        return read_scored(places, (plan.source or {})["score"], options).crowd
    return read(list(places), ReadOptions(**options))


def _seen_from(plan: Path, given: str) -> str:
    try:
        return Path(os.path.relpath(given, plan.parent)).as_posix()
    except ValueError:  # on another drive of Windows
        return str(Path(given).absolute())


def read_again(audit: Audit, plan: Path) -> Crowd:
    """The labels that the audit was started with.

    Raises:
        InputError: they have changed, do not exist, or the plan does not say where they are.
    """
    source = audit.plan.source or {}
    if "labels" not in source:
        raise InputError(f"{plan}: the audit was not started by `rarevote audit start` and names no labels")
    labels, options = [str(plan.parent / one) for one in source["labels"]], _reading(source, plan)
    try:
        audit.check_labels(labels_sha256(labels, options.get("items")))
    except InputError as error:
        raise InputError(f"{plan}: {error} (labels: {', '.join(labels)})") from None
    try:
        return _crowd_of(audit.plan, labels, options)
    except (TypeError, AttributeError) as error:  # options of other types than ours
        raise InputError(f"{plan}: the labels cannot be read as the plan says: {error}") from None


def labels_sha256(labels: Sequence[str | Path], items: str | Path | None) -> str:
    """SHA-256 of the data of an audit: the labels, and the list of items if one was given."""
    return files_sha256([*labels, *([] if items is None else [items])])


def _reading(source: Mapping[str, Any], plan: Path) -> dict[str, Any]:
    """How labels were read at the start; empty if the plan does not say."""
    given = source.get("reading") or {}
    options: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
    if options.get("items") is not None:
        options["items"] = str(plan.parent / options["items"])
    return options


def audit_of_labels(plan: Path, labels: Sequence[str | Path]) -> Audit:
    """The audit of these labels.

    Raises:
        InputError: the plan cannot be read, or belongs to other labels.
    """
    audit = Audit.load(plan)
    try:
        audit.check_labels(labels_sha256(labels, _reading(audit.plan.source or {}, plan).get("items")))
    except InputError as error:
        raise InputError(f"{plan}: {error}") from None
    return audit


@dataclass(frozen=True, eq=False)
class LabelsAtHand:
    """Labels to compare a plan with.

    Attributes:
        sha256: of the files.
        votes: the votes, read as at the start; None if they are not those of the plan or cannot be read.
        options: how they were read, if not by default.
        fault: why they cannot be read with the options of the plan.
    """

    sha256: str
    votes: Annotations | None = None
    options: str = ""
    fault: str | None = None


def labels_at_hand(plan: Plan, path: Path, labels: Sequence[str | Path] | None) -> LabelsAtHand | None:
    """The labels of a plan, to compare their items with it.

    Args:
        path: path of the plan; paths of labels are relative to its folder.
        labels: path of the labels; None for the path in the plan.

    Returns:
        None if the plan does not say where they are, or some do not exist.

    Raises:
        InputError: a given file cannot be read.
    """
    source = plan.source or {}
    try:
        given = _reading(source, path)
        places = [str(path.parent / one) for one in source["labels"]] if labels is None else list(map(str, labels))
        digest = labels_sha256(places, given.get("items"))
    except (InputError, ParameterError, KeyError, TypeError, AttributeError, OSError):
        if labels is not None:
            raise
        return None
    if digest != plan.labels_sha256:
        return LabelsAtHand(digest)
    try:
        options = ReadOptions(**given)
        votes = _crowd_of(plan, places, given).annotations
    except (InputError, ParameterError, TypeError, AttributeError, ValueError) as error:
        return LabelsAtHand(digest, fault=f"the labels cannot be read as the plan says: {error}")
    return LabelsAtHand(digest, votes, options=_given(plan, options))


def _given(plan: Plan, options: ReadOptions) -> str:
    """Options that are not the default; columns to show do not matter for the items."""
    said = [f"score={shown((plan.source or {})['score'])}"] if plan.scored else []
    said += [
        f"{one.name}={shown(getattr(options, one.name))}"
        for one in fields(options)
        if one.name != "show" and getattr(options, one.name) != getattr(DEFAULTS, one.name)
    ]
    return ", ".join(said)


def files_behind(plan: Path) -> list[Path]:
    """The journal of answers beside a plan or a list, and the labels and the list of items that a plan names."""
    try:
        source = parse_json(read_text(plan))["source"]
        items = (source.get("reading") or {}).get("items")
        named = [*source["labels"], *([] if items is None else [items])]
        return [journal_path(plan), *(plan.parent / one for one in named)]
    except (InputError, ValueError, KeyError, TypeError, AttributeError):
        return [journal_path(plan)]  # a list, or a plan that cannot be read


def side_files(plan: Path) -> dict[str, Path]:
    """The files that are written beside a plan or a list, by what they are; they may not exist yet."""
    return {"the answers": journal_path(plan), "the lock": lock_path(plan)}


def earlier_audits(plan: Path, labels_sha256: str) -> list[Audit]:
    """Audits of the same labels, with drawn tasks, whose plans are in the same folder.

    Raises:
        InputError: a plan cannot be read.
    """
    found = []
    for path in sorted(plan.parent.glob("*.json")):
        if is_plan(path) and labels_sha256 in read_text(path):
            try:
                found.append(Audit.load(path))
            except InputError as error:
                raise InputError(f"{path}, an earlier audit of these labels: {error}") from None
    return [audit for audit in found if audit.plan.rounds]


def is_plan(path: Path) -> bool:
    """Whether a file starts like a plan."""
    begin = to_text({"format": FORMAT})[:-2].encode()
    try:
        with path.open("rb") as handle:
            return handle.read(len(begin)) == begin
    except OSError:  # a folder, or not readable: not a plan
        return False
