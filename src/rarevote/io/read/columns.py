"""Which column of a table holds the task, the worker, the label: by usual names, or as the caller says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rarevote.errors import ColumnsError, ParameterError

# What labelling tools, published datasets and other packages call them; compared without case and punctuation.
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
TRUTH_ALIASES: dict[str, tuple[str, ...]] = {
    "task": ALIASES["task"],
    "label": (
        "label", "truth", "gold", "goldlabel", "truelabel", "groundtruth", "true", "answer", "class", "agglabel",
    ),
}  # fmt: skip


def _plain(name: object) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def may_be(role: str, name: str) -> bool:
    """Whether a column is called as one of this role usually is."""
    return _plain(name) in ALIASES[role]


def find_columns(
    found: Sequence[str],
    columns: Mapping[str, str] | None = None,
    *,
    aliases: Mapping[str, Sequence[str]] = ALIASES,
    where: str = "the table",
) -> dict[str, str]:
    """Map each role to a column of a table.

    Args:
        found: the table's column names.
        columns: explicit choices, such as ``{"task": "image", "label": "verdict"}``.
        aliases: for each role the names to look for, best first.
        where: how messages call the table.

    Raises:
        ColumnsError: a role has no column, or several that are equally likely.
    """
    chosen = dict(columns or {})
    unknown = set(chosen) - set(aliases)
    if unknown:
        raise ParameterError(f"columns= knows {', '.join(aliases)}; got {', '.join(sorted(map(str, unknown)))}")
    for role, name in chosen.items():
        if name not in found:
            raise ColumnsError(f"{where} has no column {name!r} (for {role}); it has {_listed(found)}")
    for role, names in aliases.items():
        if role in chosen:
            continue
        if role in found:
            chosen[role] = role
            continue
        candidates = [name for name in found if _plain(name) in names and name not in chosen.values()]
        if len(candidates) > 1:
            raise ColumnsError(
                f"{where} has several columns that may be the {role}: {_listed(candidates)}. "
                f"Say which: {_how_to(aliases, {**chosen, role: candidates[0]})}"
            )
        if candidates:
            chosen[role] = candidates[0]
    lacking = [role for role in aliases if role not in chosen]
    if lacking:
        headless = ". No header line? --no-header --columns worker=1,task=2,label=3" if lacking == list(ALIASES) else ""
        raise ColumnsError(
            f"{where} has no column for {' or '.join(lacking)}; it has {_listed(found)}. "
            f"Say which: {_how_to(aliases, chosen)}{headless}"
        )
    return {role: chosen[role] for role in aliases}


def _listed(names: Sequence[str]) -> str:
    shown = [repr(str(name)) for name in names[:12]]
    return ", ".join(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "") if shown else "none"


def _how_to(aliases: Mapping[str, Sequence[str]], chosen: Mapping[str, str]) -> str:
    pairs = {role: chosen.get(role, "...") for role in aliases}
    return f"columns={pairs} (--columns {','.join(f'{role}={name}' for role, name in pairs.items())})"
