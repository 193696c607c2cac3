"""Every door of the house, tried with files that somebody damaged or made up.

    python -m benchmarks.fuzz [--seconds 60] [--doors csv,json] [--seed 1] [--keep FOLDER]

A door is a way in: a reader, a platform, a model, a checkpoint, a plan. Its seeds are whole files of ours; they are
altered by bytes and by what formats are made of (brackets, quotes, huge numbers, lines twice, cut off), and handed in.
Whatever comes out must be an answer or an error of ours: a foreign exception is a finding, printed with its trace and
kept in FOLDER. A crash of the process or an endless loop ends the run, the file that did it lies in FOLDER.

Writes docs/evidence/fuzz.csv, a row a door.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from rarevote.errors import RarevoteError
from rarevote.io.read.answers import read_answers
from rarevote.io.read.results import read_result
from rarevote.io.read.votes import read_truth_file
from rarevote.io.write.columns import write_columns
from rarevote.meaning.audit import Audit
from rarevote.meaning.audit.verify import verify
from rarevote.methods.crowdfm.weights import read_tensors

FIXTURES = evidence.REPOSITORY / "tests" / "io" / "platforms" / "fixtures"
SECONDS_PER_FILE = 10
# What formats are made of, and what breaks them.
PIECES = [
    *(b'"', b"'", b",", b"\t", b";", b"\n", b"\r\n", b"\0", b"{", b"}", b"[", b"]", b":", b"\\", b"=1+1", b"\xff\xfe"),
    *(b"\xef\xbb\xbf", b"null", b"true", b"NaN", b"-1e999", b"9" * 400, b"9" * 5000, b"[" * 2000, b'{"a":' * 500),
    *(b"\xc3\x28", b"\xed\xa0\x80", "ü\u2028".encode(), b"PK\x03\x04", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"),
    *(b"task", b"worker", b"label", b"1970-01-01", b"../../etc/passwd", b"<script>", b"%s%n", b" " * 300),
]

Door = Callable[[Path], Any]


def mutated(seed: bytes, draw: random.Random) -> bytes:
    """The file with one to a dozen alterations."""
    found = bytearray(seed)
    for _ in range(draw.choice([1, 1, 2, 3, 5, 12])):
        if not found:
            break
        place = draw.randrange(len(found))
        kind = draw.random()
        if kind < 0.30:
            found[place] = draw.randrange(256)
        elif kind < 0.55:
            found[place:place] = draw.choice(PIECES)
        elif kind < 0.70:
            found[place : place + draw.choice([1, 4, 30, 200])] = b""
        elif kind < 0.80:
            end = place + draw.choice([2, 20, 200])
            found[place:place] = found[place:end]
        elif kind < 0.90:
            lines = bytes(found).split(b"\n")
            number = draw.randrange(len(lines))
            lines[number : number + 1] = draw.choice([[], [lines[number]] * 2, [lines[-1]]])
            found = bytearray(b"\n".join(lines))
        else:
            piece = draw.choice(PIECES)
            found[place : place + len(piece)] = piece
    return bytes(found) if draw.random() > 0.05 else bytes(found[: draw.randrange(len(found) + 1)])


def doors(folder: Path) -> dict[str, tuple[Door, list[tuple[str, bytes]]]]:
    """By name: what is called, and whole files with the ending of their names."""
    crowd = rarevote.simulate_crowd(30, 6, votes_per_task=3, random_state=1)
    task, worker, label = (np.asarray(column) for column in crowd.arrays)
    names = np.array(["sound", "defect"], dtype=object)
    votes = {"task": np.array([f"t{i}" for i in task], dtype=object), "worker": worker, "label": names[label]}
    truth = {"task": np.array([f"t{i}" for i in range(30)], dtype=object), "label": names[crowd.truth]}

    def written(columns: dict[str, Any], ending: str) -> tuple[str, bytes]:
        path = folder / f"seed{ending}"
        write_columns(columns, path)
        return ending, path.read_bytes()

    def fixture(*patterns: str) -> list[tuple[str, bytes]]:
        files = [path for pattern in patterns for path in sorted(FIXTURES.glob(pattern)) if path.is_file()]
        return [(path.suffix, path.read_bytes()) for path in files]

    found: dict[str, tuple[Door, list[tuple[str, bytes]]]] = {}
    for ending in (".csv", ".tsv", ".json", ".ndjson", ".parquet", ".arrow", ".xlsx", ".csv.gz"):
        found[ending[1:]] = rarevote.read, [written(votes, ending)]
    for name in ("label_studio", "argilla", "prodigy", "doccano", "mturk", "toloka", "appen", "wide"):
        found[name] = rarevote.read, fixture(f"{name}*.*", f"{name}/*.*", f"{name}_*/*.*")
    found["truth"] = read_truth_file, [written(truth, ending) for ending in (".csv", ".json", ".parquet")]
    fitted = rarevote.fit((votes["task"], votes["worker"], votes["label"]))
    found["result"] = read_result, [written(fitted.decide().columns(), ending) for ending in (".csv", ".json")]
    said = {"task": truth["task"], "label": truth["label"], "who": np.full(30, "anna", dtype=object)}
    found["answers"] = read_answers, [written(said, ending) for ending in (".csv", ".json")]
    model = folder / "seed.model"
    fitted.save(model)
    found["model"] = rarevote.load, [(".model", model.read_bytes())]
    audit = fitted.audit("defect", target=0.5, seed=1)
    drawn = audit.round(10)
    audit.answer({name: str(truth["label"][truth["task"].tolist().index(name)]) for name in drawn})
    plan = audit.to_json()
    found["plan"] = (lambda path: Audit.load(path).supported), [(".json", plan.encode())]
    claimed = json.dumps(audit.certificate(), default=str) if hasattr(audit, "certificate") else plan
    found["certificate"] = (
        lambda path: verify(plan, path.read_text(encoding="utf-8", errors="replace")),
        [(".json", claimed.encode())],
    )
    found["weights"] = read_tensors, [(".safetensors", _weights())]
    return found


def _weights() -> bytes:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    return len(header).to_bytes(8, "little") + header + np.arange(4, dtype="<f4").tobytes()


def tried(name: str, door: Door, seeds: list[tuple[str, bytes]], options: Any, folder: Path) -> Iterator[str]:
    """Hand altered files in, without end; yields what came out of each, which a seed determines."""
    draw = random.Random(f"{options.seed} {name}")
    while True:
        ending, seed = draw.choice(seeds)
        path = folder / f"{name}{ending}"
        path.write_bytes(mutated(seed, draw))
        faulthandler.dump_traceback_later(SECONDS_PER_FILE, exit=True)
        try:
            door(path)
            yield "read"
        except RarevoteError as error:
            yield "refused" if len(str(error)) < 2_000 else "refused at length"
        except Exception as error:
            print(name, type(error).__name__, str(error)[:200], flush=True)
            print("    " + "\n    ".join(traceback.format_exc().splitlines()[-7:]), flush=True)
            kept = options.keep or folder
            (kept / f"finding-{name}-{type(error).__name__}{ending}").write_bytes(path.read_bytes())
            yield "foreign"
        finally:
            faulthandler.cancel_dump_traceback_later()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each door")
    parser.add_argument("--doors", help="only these; nothing is written to docs/evidence")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for files that are findings")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = doors(folder)
        for door in options.doors.split(",") if options.doors else chosen:
            end = time.monotonic() + options.seconds
            outcomes = []
            for outcome in tried(door, *chosen[door], options, folder):
                outcomes.append(outcome)
                if time.monotonic() > end:
                    break
            counts = {kind: outcomes.count(kind) for kind in ("read", "refused", "refused at length", "foreign")}
            rows.append({"door": door, "executions": len(outcomes), **counts})
            print(*rows[-1].values(), sep=", ", flush=True)
    if not options.doors:
        print(evidence.write("fuzz", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
