"""Labels back to Prodigy: one line per item with the aggregated answer, as ``prodigy db-in`` takes them.

The line is that of the item's first answer, so that text, options and hashes are Prodigy's own; who answered and when
is taken out, and the method stands in their place. How sure the answer is, Prodigy shows from ``meta``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rarevote.io.platforms.base import Export, as_text
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.parts import ExportFiles
from rarevote.io.platforms.prodigy.reader import BINARY, CHOICE, answer_of
from rarevote.io.platforms.write_back import ItemLabels

_OF_AN_ANSWER = ("_annotator_id", "_session_id", "_timestamp", "answer", "accept", "versions")


def check(details: Mapping[str, Any]) -> None:
    """Every form of Prodigy's lines takes answers."""
    del details


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """One line for each item, and each label that was put to people with a yes or no, where it got an answer.

    An item without one is left away: ``db-in`` would take it as accepted.
    """
    part = files.only()
    seen: set[tuple[str, str]] = set()
    for number, record in walk_json(part, export.encoding):
        where = f"{part.title}: line {number:,}"
        task = as_text(record.get("_input_hash"), f"{where}: _input_hash") or ""
        asked = answer_of(record, where, export.question, multilabel=export.multilabel)
        if asked is None or asked.question != export.question:
            continue
        label = asked.asked if export.multilabel and asked.asked is not None else ""
        result = results.get(task)
        if (task, label) in seen or result is None:
            continue
        seen.add((task, label))
        kept = {key: value for key, value in record.items() if key not in _OF_AN_ANSWER}
        kept |= _answered(export, asked.asked, result)
        kept |= {"_annotator_id": model_version, "_session_id": model_version}
        if result.score is not None:
            meta = record.get("meta")
            kept["meta"] = {**(meta if isinstance(meta, Mapping) else {}), "score": result.score}
        yield kept, True


def _answered(export: Export, asked: str | None, result: ItemLabels) -> dict[str, Any]:
    """The keys of an answer: the options chosen, a yes or no, or the value of another key."""
    values = [export.values.get(label, label) for label in result.labels]
    if asked is not None:
        yes = asked in result.labels if export.multilabel else values[:1] == ["accept"]
        return {"answer": "accept" if yes else "reject"}
    if export.question == CHOICE:
        return {CHOICE: values, BINARY: "accept"}
    return {export.question: values if export.multilabel else values[0], BINARY: "accept"}
