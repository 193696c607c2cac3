"""The columns of a table for task, worker and label: by usual names, or as the user says."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rarevote.errors import ColumnsError, InputError, ParameterError, how, shown
from rarevote.io.duck import folded

# Their names in labelling tools, published datasets and other packages; compared without case and punctuation.
ALIASES: dict[str, tuple[str, ...]] = {
    "task": (
        "task", "taskid", "item", "itemid", "question", "questionid", "object", "objectid", "unit", "unitid",
        "example", "exampleid", "sample", "sampleid", "instance", "instanceid", "image", "imageid", "document",
        "documentid", "docid", "record", "recordid", "hitid",
    ),
    "worker": (
        "worker", "workerid", "annotator", "annotatorid", "rater", "raterid", "user", "userid", "performer",
        "performerid", "labeler", "labeller", "labelerid", "coder", "coderid", "judge", "judgeid", "contributor",
        "contributorid", "reviewer", "reviewerid", "participant", "participantid", "completedby",
    ),
    "label": (
        "label", "labels", "answer", "response", "rating", "annotation", "judgment", "judgement", "vote", "choice",
        "class", "category", "chosenlabel",
    ),
}  # fmt: skip
_WEIGHT = re.compile(r"(?i)(^|[^a-z])(weights?|confidence|conf|certainty|sureness|trust)($|[^a-z])")
TRUTH_ALIASES: dict[str, tuple[str, ...]] = {
    "task": ALIASES["task"],
    "label": (
        "label", "truth", "gold", "goldlabel", "truelabel", "groundtruth", "true", "answer", "class", "agglabel",
    ),
}  # fmt: skip


def plain_name(name: object) -> str:
    """A name without case and punctuation, to recognise columns."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def may_be(role: str, name: str) -> bool:
    """Whether a column has a usual name of this role."""
    return plain_name(name) in ALIASES[role]


def check_column_names(frame: object, where: str = "the frame") -> None:
    """Refuse a pandas or Arrow table with duplicate column names, or with names of several levels.

    Args:
        frame: a frame, or an Arrow schema.
        where: its name in messages.

    Raises:
        ColumnsError: the names are not valid.
    """
    names: Any = getattr(frame, "columns" if hasattr(frame, "iloc") else "column_names", getattr(frame, "names", None))
    if getattr(names, "nlevels", 1) > 1:
        raise ColumnsError(
            f"{where}: the columns have names of several levels. Give each column one name, for example "
            'frame.columns = ["_".join(map(str, name)) for name in frame.columns]'
        )
    if not isinstance(names, Iterable):
        return  # polars checks its names, and anything that is not a frame is refused later
    repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
    if repeated:
        raise ColumnsError(
            f"{where} has several columns of one name: {_listed(repeated)}. Rename or drop all but one of them"
        )


def repeated_names(names: Sequence[str], *, ignore_case: bool = False) -> str:
    """The names that occur more than once in a header, for a message."""
    compared = [folded(name) for name in names] if ignore_case else names
    times = Counter(compared)
    return ", ".join(sorted({repr(name) for name, key in zip(names, compared, strict=True) if name and times[key] > 1}))


def check_file_columns(names: Sequence[str], title: str) -> None:
    """Refuse a file with columns whose names differ only in case: DuckDB confuses them, or gives them other names.

    Raises:
        InputError: it has such columns.
    """
    if repeated := repeated_names(names, ignore_case=True):
        raise InputError(f"{title}: the header names {repeated} more than once; case is ignored")


def find_columns(
    found: Sequence[str],
    columns: Mapping[str, str] | None = None,
    *,
    aliases: Mapping[str, Sequence[str]] = ALIASES,
    where: str = "the table",
    otherwise: str = "",
    choosable: bool = True,
) -> dict[str, str]:
    """Map each role to a column of a table.

    Args:
        found: the table's column names.
        columns: explicit choices, such as ``{"task": "image", "label": "verdict"}``.
        aliases: the names to search for, for each role, best first.
        where: the name of the table in messages.
        otherwise: what else the table can be, for the message about a role without a column.
        choosable: whether the user can name the columns; otherwise they must be renamed.

    Raises:
        ColumnsError: a role has no column, or several that are equally likely.
    """
    chosen = dict(columns or {})
    unknown = set(chosen) - set(aliases)
    if unknown:
        option = how("columns=", "--columns")
        raise ParameterError(f"{option} accepts {', '.join(aliases)}; got {', '.join(sorted(map(str, unknown)))}")
    for role, name in chosen.items():
        if name not in found:
            raise ColumnsError(f"{where} has no column {name!r} (for {role}); it has {_listed(found)}")
    for role, names in aliases.items():
        if role in chosen:
            continue
        if role in found:
            chosen[role] = role
            continue
        candidates = [name for name in found if plain_name(name) in names and name not in chosen.values()]
        if len(candidates) > 1:
            named = {**_only_candidates(found, aliases), **chosen, role: candidates[0]}
            advice = f"Say which: {name_columns(named)}" if choosable else f"Rename the right one to {role!r}"
            raise ColumnsError(f"{where} has several columns that could be the {role}: {_listed(candidates)}. {advice}")
        if candidates:
            chosen[role] = candidates[0]
    lacking = [role for role in aliases if role not in chosen]
    if lacking:
        named = {**dict.fromkeys(aliases, "..."), **chosen}
        advice = (
            f"Say which: {name_columns(named)}{otherwise}"
            if choosable
            else f"Rename {'a column' if len(lacking) == 1 else 'columns'} to {' and '.join(lacking)}"
        )
        raise ColumnsError(f"{where} has no column for {' or '.join(lacking)}; it has {_listed(found)}. {advice}")
    return {role: chosen[role] for role in aliases}


def _only_candidates(found: Sequence[str], aliases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For each role its column, or "..." if none or several could be it."""
    own = {role: [role] if role in found else [name for name in found if plain_name(name) in names]
           for role, names in aliases.items()}  # fmt: skip
    return {role: names[0] if len(names) == 1 else "..." for role, names in own.items()}


def preferred(columns: Mapping[str, str] | None, found: Sequence[str]) -> dict[str, str]:
    """The user's choice of columns for the votes, as far as a table of gold or truth has these columns."""
    return {role: name for role, name in (columns or {}).items() if role in TRUTH_ALIASES and name in found}


def match_columns(patterns: Sequence[str], found: Sequence[str], where: str) -> list[str]:
    """The columns given by name or by a pattern such as ``score_*``.

    Raises:
        ColumnsError: there is no such column.
    """
    named: dict[str, None] = {}
    for pattern in patterns:
        matching = [pattern] if pattern in found else [name for name in found if fnmatchcase(name, pattern)]
        if not matching:
            raise ColumnsError(f"{where} has no column {pattern!r}; it has {_listed(found)}")
        named.update(dict.fromkeys(matching))
    return list(named)


def ignored_weights(found: Iterable[str], used: Iterable[object] = ()) -> list[str]:
    """The sentence on columns that look like weights of the votes; none if there are no such columns.

    Args:
        found: the columns.
        used: the columns that are read.

    >>> ignored_weights(["task", "worker", "label", "confidence"])
    ["column 'confidence' looks like a weight of the votes and is ignored: all votes count equally"]
    """
    read = set(used)
    named = [name for name in found if name not in read and _WEIGHT.search(str(name))]
    if not named:
        return []
    are = "looks like a weight of the votes and is" if len(named) == 1 else "look like weights of the votes and are"
    columns = f"column{'s' if len(named) > 1 else ''} {_listed(named)}"
    return [f"{columns} {are} ignored: all votes count equally"]


def has_roles(found: Sequence[str], columns: Mapping[str, str] | None = None) -> bool:
    """Whether a table has a column for each role, so that it cannot be another kind of table."""
    try:
        find_columns(found, columns)
    except ColumnsError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    first = [shown(str(name)) for name in names[:12]]
    return ", ".join(first) + (f" and {len(names) - 12} more" if len(names) > 12 else "") if first else "none"


def name_columns(pairs: Mapping[str, str]) -> str:
    """What to type to say which column is which."""
    flag = shlex.quote(",".join(f"{role}={name}" for role, name in pairs.items()))
    return how(f"columns={dict(pairs)}", f"--columns {flag}")


def name_annotators(names: Sequence[str]) -> str:
    """What to type to say which columns hold votes."""
    flags = " ".join(f"--annotator-column {shlex.quote(name)}" for name in names)
    return how(f"annotator_columns={list(names)}", flags)
