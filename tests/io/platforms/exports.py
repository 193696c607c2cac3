"""The fixtures by name, written by this project from the documented formats."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"

#: Every fixture and the platform that it must be recognised as.
PLATFORM_OF: dict[str, str | None] = {
    "label_studio.json": "label-studio",
    "label_studio_multi.json": "label-studio",
    "label_studio_regions.json": "label-studio",
    "label_studio_min.json": "label-studio",
    "label_studio.csv": "label-studio",
    "argilla_flat.json": "argilla",
    "argilla_disk": "argilla",
    "argilla_v1.jsonl": "argilla",
    "prodigy.jsonl": "prodigy",
    "prodigy_binary.jsonl": "prodigy",
    "prodigy_spans.jsonl": "prodigy",
    "doccano": "doccano",
    "doccano_slots": "doccano",
    "doccano_csv": "doccano",
    "doccano_old.jsonl": "doccano",
    "doccano_spans.jsonl": "doccano",
    "mturk.csv": "mturk",
    "mturk_items.csv": "mturk",
    "mturk_json.csv": "mturk",
    "mturk_short_rows.csv": "mturk",
    "toloka.tsv": "toloka",
    "appen.csv": "appen",
    "appen_units.jsonl": "appen",
    "label_studio_form.json": "label-studio",
    "label_studio_one.json": "label-studio",
    "prodigy_unnamed.jsonl": "prodigy",
    "prodigy_some_unnamed.jsonl": "prodigy",
    "mturk_form.csv": "mturk",
    "toloka_outputs.tsv": "toloka",
    "appen_comments.csv": "appen",
    "plain.csv": None,
    "wide_judges.csv": None,
    "wide_raters.csv": None,
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
}


def zipped(folder: Path, target: Path, extra: Iterable[tuple[str, bytes]] = ()) -> Path:
    """The files of a folder as doccano's zip, with further members."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
        for name, data in extra:
            archive.writestr(name, data)
    return target
