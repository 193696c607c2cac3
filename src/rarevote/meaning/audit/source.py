"""The files behind an audit: their fingerprint, where the plan says they are, and reading them again."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, ParameterError
from rarevote.io.json_text import parse_json
from rarevote.io.read.crowd import Crowd, ReadOptions, read
from rarevote.io.read.detect import is_stream, refuse_address
from rarevote.io.read.sources import is_temporary
from rarevote.meaning.audit.audit import Audit
from rarevote.meaning.audit.journal import journal_path
from rarevote.meaning.audit.plan_file import FORMAT, read_text, to_text

_INSTEAD = "an audit comes back to its labels: keep them in a file here"


def files_sha256(inputs: Sequence[str | Path]) -> str:
    """SHA-256 of a file, as ``sha256sum`` says; of several, that of theirs, one a line, in order.

    Raises:
        InputError: a file is not there or cannot be read.
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
    path = Path(given)
    if path.is_dir():
        found = sorted(path.rglob("*"))
        return [one for one in found if one.is_file() and not any(map(is_temporary, one.relative_to(path).parts))]
    if path.exists():
        return [path]
    matches = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
    if not matches:
        raise InputError(f"{given}: no such file")
    return [file for match in matches for file in _files(match)]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def source_record(labels: Sequence[str], reading: Mapping[str, Any], form: str, plan: Path) -> dict[str, Any]:
    """What the plan remembers of the files; places are seen from its folder, so that all can move together."""
    for given in labels:
        if Path(given).is_dir() and Path(given).resolve() in plan.resolve().parents:
            raise ParameterError(f"{plan}: lies in the folder of the labels, {given}; put the plan somewhere else")
    return {"labels": [_seen_from(plan, given) for given in labels], "reading": dict(reading), "review_as": form}


def _seen_from(plan: Path, given: str) -> str:
    try:
        return Path(os.path.relpath(given, plan.parent)).as_posix()
    except ValueError:  # on another drive of Windows
        return str(Path(given).absolute())


def read_again(audit: Audit, plan: Path) -> Crowd:
    """The labels that the audit was started with.

    Raises:
        InputError: they have changed, are not there, or the plan does not say where they are.
    """
    source = audit.plan.source or {}
    if "labels" not in source:
        raise InputError(f"{plan}: the audit was not started by `rarevote audit start` and names no labels")
    labels = [str(plan.parent / one) for one in source["labels"]]
    try:
        audit.check_labels(files_sha256(labels))
    except InputError as error:
        raise InputError(f"{plan}: {error} (labels: {', '.join(labels)})") from None
    options: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in source["reading"].items()
    }
    return read(labels, ReadOptions(**options))


def audit_of_labels(plan: Path, labels: Sequence[str | Path]) -> Audit:
    """The audit of these labels.

    Raises:
        InputError: the plan cannot be read, or is about other labels.
    """
    audit = Audit.load(plan)
    try:
        audit.check_labels(files_sha256(labels))
    except InputError as error:
        raise InputError(f"{plan}: {error}") from None
    return audit


def labels_at_hand(plan: Path) -> str | None:
    """SHA-256 of the labels where a plan says that they are; None if it does not say, or they are not all there."""
    try:
        source = parse_json(read_text(plan)).get("source") or {}
        return files_sha256([str(plan.parent / one) for one in source["labels"]])
    except (InputError, ValueError, AttributeError, KeyError, TypeError):
        return None  # a plan that cannot be read is told as such by whoever replays it


def files_behind(plan: Path) -> list[Path]:
    """The journal of answers beside a plan or a list, and the labels that a plan names."""
    try:
        named = parse_json(read_text(plan))["source"]["labels"]
        return [journal_path(plan), *(plan.parent / one for one in named)]
    except (InputError, ValueError, KeyError, TypeError):
        return [journal_path(plan)]  # a list, or a plan that its reader refuses


def earlier_audits(plan: Path, labels_sha256: str) -> list[Audit]:
    """Audits of the same labels, with something drawn, whose plans lie in the same folder.

    Raises:
        InputError: such a plan cannot be read.
    """
    begin = to_text({"format": FORMAT})[:-2].encode()  # as plans do
    found = []
    for path in sorted(plan.parent.glob("*.json")):
        if _begins(path, begin) and labels_sha256 in read_text(path):
            try:
                found.append(Audit.load(path))
            except InputError as error:
                raise InputError(f"{path}, an earlier audit of these labels: {error}") from None
    return [audit for audit in found if audit.plan.rounds]


def _begins(path: Path, begin: bytes) -> bool:
    try:
        with path.open("rb") as handle:
            return handle.read(len(begin)) == begin
    except OSError:  # a folder, or not ours to read: no plan of ours
        return False
