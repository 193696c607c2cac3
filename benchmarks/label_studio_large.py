"""Importing a large Label Studio export that is one line of JSON: seconds and peak memory.

    python -m benchmarks.label_studio_large [--gigabytes 1]

Writes docs/evidence/label_studio_large.csv. The export is made in a temporary folder and removed afterwards. The import
runs in a process of its own, so that the peak is its alone; a second process makes labels of it again (the way back).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import evidence

LIMIT_GB = 2.0

_CHILD = """
import json, sys, time
from pathlib import Path
from rarevote.io.platforms import export_annotations, read_export
from rarevote.io.platforms.write_back import write_back

begin, cpu = time.perf_counter(), time.process_time()
export = read_export(sys.argv[1], question="verdict", show=["batch"])
read, cpu = time.perf_counter() - begin, time.process_time() - cpu
crowd, gold, shown = export_annotations(export)
encode = time.perf_counter() - begin - read
back = 0.0
if len(sys.argv) > 2:
    labels = dict(zip(export.task, export.label))
    begin = time.perf_counter()
    write_back(export, labels, labels.values(), [0.9] * len(labels), sys.argv[2])
    back = time.perf_counter() - begin
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({
    "tasks": crowd.n_tasks, "votes": crowd.n_annotations, "left_out": sum(export.left_out.values()),
    "read_seconds": read, "read_cpu_seconds": cpu, "encode_seconds": encode, "write_back_seconds": back,
    "peak_gb": int(peak.split()[1]) / 1e6,
}))
"""


def make_export(path: Path, n_bytes: int, seed: int = 0) -> int:
    """Write one line of tasks in Label Studio's form until the file is that long; returns the number of tasks."""
    draw = random.Random(seed)
    words = ["Flügel", "Riss", "Naht", "surface", "裂纹", "weld", "paint", "corner", "Kante", "rust"]
    number, written = 0, 0
    with path.open("w", encoding="utf-8") as handle:
        handle.write("[")
        while written < n_bytes:
            number += 1
            text = " ".join(draw.choices(words, k=60))
            record = {
                "id": number,
                "annotations": [_annotation(draw, number, vote) for vote in range(3)],
                "file_upload": "upload.json",
                "drafts": [],
                "predictions": [],
                "data": {"text": text, "batch": f"b{number % 50}"},
                "meta": {},
                "created_at": "2026-03-01T09:00:00.000000Z",
                "project": 7,
            }
            line = (", " if number > 1 else "") + json.dumps(record, ensure_ascii=False)
            written += len(line.encode())
            handle.write(line)
        handle.write("]")
    return number


def _annotation(draw: random.Random, task: int, vote: int) -> dict[str, Any]:
    who = draw.randrange(40)
    label = "defect" if draw.random() < 0.05 else "sound"
    value = {"choices": [label]}
    result = {"id": f"r{task}-{vote}", "from_name": "verdict", "to_name": "text", "type": "choices", "value": value}
    return {
        "id": task * 3 + vote,
        "completed_by": {"id": who, "email": f"rater{who}@example.org", "first_name": "", "last_name": ""},
        "result": [result],
        "was_cancelled": draw.random() < 0.01,
        "ground_truth": False,
        "created_at": "2026-03-01T09:00:00.000000Z",
        "updated_at": "2026-03-01T09:00:05.000000Z",
        "lead_time": 5.2,
        "task": task,
    }


def measure(export: Path, back: Path | None = None) -> dict[str, Any]:
    """Import an export in a process of its own."""
    command = [sys.executable, "-c", _CHILD, str(export), *([str(back)] if back else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=evidence.REPOSITORY)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder) / "export.json"
        made = make_export(export, int(options.gigabytes * 1e9))
        rows = []
        for name, back in (("import", None), ("import and way back", Path(folder) / "back.json")):
            figures = {key: round(value, 3) for key, value in measure(export, back).items()}
            assert figures["tasks"] <= made
            row = {"measurement": name, "file_gb": round(export.stat().st_size / 1e9, 3), "lines": 1, **figures}
            rows.append({**row, "limit_gb": LIMIT_GB, "met": figures["peak_gb"] < LIMIT_GB})
            print(row, file=sys.stderr)
    evidence.write("label_studio_large", rows)


if __name__ == "__main__":
    main()
