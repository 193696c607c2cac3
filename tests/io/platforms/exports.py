"""Exports of every platform: fixtures by name, and writers of small ones, from the documented formats."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rarevote.io.platforms import PLATFORMS

FIXTURES = Path(__file__).parent / "fixtures"

#: Every fixture and the platform that it must be recognised as: its name begins with that of the platform.
PLATFORM_OF: dict[str, str | None] = {
    path.name: next((name for name in PLATFORMS if path.name.startswith(name.replace("-", "_"))), None)
    for path in sorted(FIXTURES.iterdir())
}

#: One fixture per platform and a question of it.
MAIN = {
    "label-studio": ("label_studio.json", "damage"),
    "argilla": ("argilla_flat.json", "toxicity"),
    "prodigy": ("prodigy.jsonl", "accept"),
    "doccano": ("doccano", "label"),
    "mturk": ("mturk.csv", "sentiment"),
    "toloka": ("toloka.tsv", "result"),
    "appen": ("appen.csv", "relevant"),
    "inspect-ai": ("inspect_ai.json", "value"),
    "asreview": ("asreview.csv", "asreview_label"),
}


def zipped(folder: Path, target: Path, extra: Iterable[tuple[str, bytes]] = ()) -> Path:
    """The files of a folder as doccano's zip, with further members."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
        for name, data in extra:
            archive.writestr(name, data)
    return target


VOTES = ("yes", "no", "yes")  # of annotators w0, w1 and w2 on each item that is labelled


def text_of(item: str) -> str:
    return f"text of {item}"


# Each writes an export of labelled items and of others that were skipped, drafted, rejected or not looked at.


def label_studio(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    def annotation(worker: int, vote: str | None, **more: Any) -> dict[str, Any]:
        value = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [vote]}}
        return {"completed_by": worker, "result": [] if vote is None else [value], **more}

    unlabelled: list[Callable[[], dict[str, Any]]] = [
        lambda: {"annotations": []},
        lambda: {"annotations": [annotation(0, None, was_cancelled=True)]},
        lambda: {"annotations": [annotation(0, "yes", was_cancelled=True)], "drafts": [{}]},
        lambda: {"annotations": [annotation(0, None)], "predictions": []},
        lambda: {"annotations": [annotation(1, "no", last_action="rejected")]},
        lambda: {"annotations": [], "predictions": [{"model_version": "m", "result": annotation(0, "no")["result"]}]},
    ]
    tasks = [{"annotations": [annotation(w, vote) for w, vote in enumerate(VOTES)], "id": item} for item in labelled]
    tasks += [{**unlabelled[number % len(unlabelled)](), "id": item} for number, item in enumerate(others)]
    records = [{**task, "data": {"text": text_of(str(task["id"]))}} for task in tasks]
    (path / "x.json").write_text(json.dumps(records[::-1]), encoding="utf-8")
    return path / "x.json"


def _short_rows(labelled: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    about = {"lead_time": 1.0}
    rows = [
        {"text": text_of(item), "id": item, "q": vote, "annotator": f"w{w}", "annotation_id": f"{item}-{w}", **about}
        for item in labelled
        for w, vote in enumerate(VOTES)
    ]
    empty = {"q": "", "annotator": "", "annotation_id": "", "lead_time": ""}
    return rows + [{"text": text_of(item), "id": item, **empty} for item in others]


def label_studio_min(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    (path / "x.json").write_text(json.dumps(_short_rows(labelled, others)), encoding="utf-8")
    return path / "x.json"


def written_table(path: Path, rows: Sequence[dict[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def label_studio_csv(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    return written_table(path / "x.csv", _short_rows(labelled, others))


def argilla_nested(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    answers = [{"user_id": f"w{w}", "value": vote} for w, vote in enumerate(VOTES)]
    records = [
        {"id": item, "fields": {"text": text_of(item)}, "responses": {"q": answers} if item in set(labelled) else {}}
        for item in [*others, *labelled]
    ]
    (path / "records.json").write_text(json.dumps(records), encoding="utf-8")
    return path / "records.json"


def argilla_server(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    def response(worker: int, vote: str, status: str) -> dict[str, Any]:
        return {"user_id": f"w{worker}", "status": status, "values": {"q": {"value": vote}}}

    voted = [response(w, vote, "submitted") for w, vote in enumerate(VOTES)]
    unvoted: tuple[list[dict[str, Any]], ...] = (
        [],
        [response(0, "no", "draft")],
        [response(1, "yes", "discarded"), response(0, "no", "draft")],
    )
    records = [{"id": item, "fields": {"text": text_of(item)}, "responses": voted} for item in labelled]
    records += [
        {"id": item, "fields": {"text": text_of(item)}, "responses": unvoted[number % 3]}
        for number, item in enumerate(others)
    ]
    (path / "records.json").write_text(json.dumps({"items": records}), encoding="utf-8")
    return path / "records.json"


def prodigy(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    def line(item: str, worker: int, vote: str, answer: str) -> str:
        asked = {"text": text_of(item), "options": [{"id": "yes"}, {"id": "no"}], "_input_hash": int(item)}
        return json.dumps({**asked, "accept": [vote], "answer": answer, "_annotator_id": f"w{worker}"})

    lines = [line(item, w, vote, "accept") for item in labelled for w, vote in enumerate(VOTES)]
    lines += [line(item, w, "no", ("ignore", "reject")[w]) for item in others for w in range(2)]
    (path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return path / "x.jsonl"


def doccano(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    folder = path / "members"
    folder.mkdir()
    for worker, vote in enumerate(VOTES):
        documents = [{"id": int(item), "text": text_of(item), "label": [vote]} for item in labelled]
        documents += [{"id": int(item), "text": text_of(item), "label": []} for item in others]
        (folder / f"w{worker}.jsonl").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return folder


def mturk(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    def row(item: str, worker: int, status: str, vote: str) -> dict[str, str]:
        about = {"HITId": item, "WorkerId": f"w{worker}", "AssignmentStatus": status}
        return {**about, "Input.text": text_of(item), "Answer.q": vote}

    rows = [row(item, w, "Approved", vote) for item in labelled for w, vote in enumerate(VOTES)]
    rows += [row(item, w, *given) for item in others for w, given in enumerate([("Rejected", "no"), ("Approved", "")])]
    return written_table(path / "Batch.csv", rows)


def toloka(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    def row(item: str, worker: int, status: str, vote: str) -> dict[str, str]:
        about = {"ASSIGNMENT:task_id": item, "ASSIGNMENT:worker_id": f"w{worker}", "ASSIGNMENT:status": status}
        return {**about, "INPUT:text": text_of(item), "OUTPUT:q": vote}

    rows = [row(item, w, "APPROVED", vote) for item in labelled for w, vote in enumerate(VOTES)]
    rows += [row(item, w, status, "") for item in others for w, status in enumerate(("EXPIRED", "SKIPPED"))]
    return written_table(path / "x.tsv", rows, "\t")


def appen(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    def row(item: str, worker: int, tainted: str, vote: str) -> dict[str, str]:
        return {"_unit_id": item, "_worker_id": f"w{worker}", "_tainted": tainted, "q": vote, "text": text_of(item)}

    rows = [row(item, w, "false", vote) for item in labelled for w, vote in enumerate(VOTES)]
    rows += [row(item, w, *given) for item in others for w, given in enumerate([("true", "no"), ("false", "")])]
    return written_table(path / "x.csv", rows)


def appen_units(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    given = [{"worker_id": f"w{w}", "data": {"q": vote}} for w, vote in enumerate(VOTES)]
    lines = [
        {"id": item, "data": {"text": text_of(item)}, "results": {"judgments": given if item in set(labelled) else []}}
        for item in [*others, *labelled]
    ]
    (path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path / "x.jsonl"


def inspect_ai(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    scores = {f"w{w}": {"value": {"q": vote}} for w, vote in enumerate(VOTES)}
    samples = [{"id": item, "input": text_of(item), "epoch": 1, "scores": scores} for item in labelled]
    samples += [{"id": item, "input": text_of(item), "epoch": 1, "error": {}} for item in others]
    log = {"version": 2, "eval": {}, "samples": [{**one, "metadata": {"text": one["input"]}} for one in samples]}
    (path / "x.json").write_text(json.dumps(log), encoding="utf-8")
    return path / "x.json"


def asreview(path: Path, labelled: Sequence[str], others: Sequence[str]) -> Path:
    # Several records of one project cannot be labelled twice: the rows of three projects in one table.
    def row(item: str, worker: str, label: str) -> dict[str, str]:
        about = {"record_id": item, "text": text_of(item), "asreview_group_id": item, "asreview_label": label}
        return {**about, "asreview_time": "", "asreview_user_name": worker}

    rows = [row(item, f"w{w}", vote) for item in labelled for w, vote in enumerate(VOTES)]
    return written_table(path / "x.csv", rows + [row(item, "", "") for item in others])


#: Writers of exports, each by its platform and, where there are several, what it is.
EXPORTS = {
    "label-studio": label_studio,
    "label-studio min": label_studio_min,
    "label-studio csv": label_studio_csv,
    "argilla": argilla_nested,
    "argilla server": argilla_server,
    "prodigy": prodigy,
    "doccano": doccano,
    "mturk": mturk,
    "toloka": toloka,
    "appen": appen,
    "appen json": appen_units,
    "inspect-ai": inspect_ai,
    "asreview": asreview,
}
