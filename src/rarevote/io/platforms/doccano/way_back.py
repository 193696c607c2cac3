"""Labels back to doccano: its documents, one per line, with the aggregated label, for *Import dataset* as JSONL.

Every annotator's file lists every document; each is written once. What else a document has goes with it, and doccano
keeps what it does not know as the document's metadata: so also how sure the label is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rarevote.io.platforms.base import Export, as_text
from rarevote.io.platforms.doccano.reader import QUESTIONS, documents
from rarevote.io.platforms.parts import ExportFiles
from rarevote.io.platforms.write_back import ItemLabels

_OF_ANNOTATORS = ("annotations", "annotation_approver", "user", "Comments", *QUESTIONS)


def check(details: Mapping[str, Any]) -> None:
    """Every form of doccano's files holds documents that can be imported."""
    del details


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """The documents of an export with their labels, and whether each got one."""
    seen: set[str] = set()
    for part in files.parts:
        for where, record in documents(part, export.encoding):
            task = as_text(record.get("id"), f"{where}: id") or ""
            if task in seen:
                continue
            seen.add(task)
            result = results.get(task)
            kept = {key: value for key, value in record.items() if key not in _OF_ANNOTATORS}
            kept[export.question] = [] if result is None else result.labels
            if result is not None:
                kept["labelled_by"] = model_version
                if result.score is not None:
                    kept["score"] = result.score
            yield kept, result is not None
