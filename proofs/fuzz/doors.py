"""The doors: what is called, and the whole files that are altered before they are handed in.

Every door calls what a user calls, with a file. What is read must also be right, as far as that can be known: tables of
text and JSON are read again in plain Python, every table a second time and through another format
(:mod:`proofs.fuzz.oracles`); an altered plan must not certify more than an honest audit; probabilities are such, a
resumed fit ends, an answer of the workbench carries its headers.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks import evidence

import rarevote
from proofs.fuzz.folders import Folders, some_crowds
from proofs.fuzz.mutate import zipped
from proofs.fuzz.oracles import (
    WrongAnswerError,
    check_costs,
    check_journal,
    check_labels,
    check_majority,
    check_result,
    check_rows,
    plain_votes,
    read_and_compare,
)
from proofs.fuzz.typed_files import TypedFiles, some_files
from proofs.plan_fuzz import honest_set
from rarevote import DawidSkene
from rarevote.audit import Audit
from rarevote.audit.journal import journal_path
from rarevote.audit.verify import verify, verify_files
from rarevote.decide.costs import cost_matrix
from rarevote.io import platforms as registry
from rarevote.io.read.answers import read_answers, read_review_list
from rarevote.io.read.crowd import read_each
from rarevote.io.read.results import read_result
from rarevote.io.read.votes import read_truth_file
from rarevote.io.write.columns import write_columns
from rarevote.methods.crowdfm.estimator import load_weights
from rarevote.methods.crowdfm.network import _expected_shapes
from rarevote.methods.crowdfm.weights import read_tensors

FIXTURES = evidence.REPOSITORY / "tests" / "io" / "platforms" / "fixtures"
TABLES = (".csv", ".tsv", ".json", ".ndjson", ".parquet", ".arrow", ".xlsx", ".csv.gz")
PLATFORMS = tuple(name.replace("-", "_") for name in registry.PLATFORMS)
_CLASSES = np.array(["defect", "sound"], dtype=object)
_ITERATIONS_KEPT = 4


class Seed(NamedTuple):
    """A whole file: the ending of its name, and its bytes."""

    ending: str
    content: bytes


@dataclass(frozen=True)
class Door:
    """One way in.

    Attributes:
        name: of the door.
        enter: takes the path of a file; raises an error of ours, or gives back whatever.
        seeds: whole files that it takes.
    """

    name: str
    enter: Callable[[Path], Any]
    seeds: list[Seed]


class House(ExitStack):
    """The doors of the package, made when they are asked for; what they hold open is closed at the end of the block.

    Args:
        folder: for temporary files.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._makers: dict[str, Callable[[], Door]] = {
            **{ending[1:]: self._table_maker(ending) for ending in TABLES},
            "csv.zst": self._zstd,
            "zip": self._zip,
            **{name: self._platform_maker(name) for name in PLATFORMS},
            "wide": self._wide,
            "frames": self._frames,
            "folders": self._folders,
            "typed files": self._typed_files,
            "aggregate": self._aggregate,
            "gold": self._gold,
            "truth": self._truth_file,
            "costs": self._costs,
            "result": self._result,
            "answers": self._answers,
            "review_list": self._review_list,
            "model": self._model,
            "weights": self._weights,
            "crowdfm": self._crowdfm,
            "checkpoint": self._checkpoint,
            "plan": self._plan,
            "journal": self._journal,
            "certificate": self._certificate,
            "workbench": self._workbench,
        }

    @property
    def names(self) -> list[str]:
        """All doors."""
        return list(self._makers)

    def door(self, name: str) -> Door:
        """One of them."""
        return self._makers[name]()

    # -- what several doors need -------------------------------------------------------------------------------------

    @cached_property
    def _crowd(self) -> Any:
        return rarevote.simulate_crowd(30, 6, votes_per_task=3, random_state=1)

    @cached_property
    def _votes(self) -> dict[str, Any]:
        task, worker, label = (np.asarray(column) for column in self._crowd.arrays)
        return {
            "task": np.array([f"t{i}" for i in task], dtype=object),
            "worker": np.array([f"w{i}" for i in worker], dtype=object),
            "label": _CLASSES[::-1][label],
        }

    @cached_property
    def _truth(self) -> dict[str, Any]:
        names = np.array([f"t{i}" for i in range(30)], dtype=object)
        return {"task": names, "label": _CLASSES[::-1][np.asarray(self._crowd.truth)]}

    def _written(self, columns: dict[str, Any], *endings: str) -> list[Seed]:
        found = []
        for ending in endings:
            path = self._folder / f"seed{ending}"
            write_columns(columns, path)
            content = path.read_bytes()
            if ending == ".xlsx":
                content = _timeless(content)
            # A header of gzip holds the time: without it the seed is the same every time.
            found.append(
                Seed(ending, gzip.compress(gzip.decompress(content), mtime=0) if ending == ".csv.gz" else content)
            )
        return found

    @cached_property
    def _fitted(self) -> Any:
        return rarevote.fit(tuple(self._votes.values()), "dawid-skene")

    @cached_property
    def _audit(self) -> Audit:
        scores = self._fitted.probabilities[:, 0]
        audit = Audit.start(
            self._fitted.annotations.tasks.tolist(),
            scores,
            name="defect",
            target=0.5,
            seed=1,
            classes=_CLASSES.tolist(),
        )
        truth = dict(zip(self._truth["task"].tolist(), self._truth["label"].tolist(), strict=True))
        when = "2026-11-17T00:00:00Z"
        audit.answer({task: truth[task] for task in audit.round(10)}, who="anna", when=when)
        return audit

    def _plan_text(self) -> bytes:
        record = json.loads(self._audit.to_json())
        return json.dumps({**record, "started": "2026-11-17T00:00:00Z"}).encode()

    # -- readers -----------------------------------------------------------------------------------------------------

    def _table_maker(self, ending: str) -> Callable[[], Door]:
        return lambda: Door(ending[1:], read_and_compare, self._written(self._votes, ending))

    def _zstd(self) -> Door:
        import zstandard

        (seed,) = self._written(self._votes, ".csv")
        return Door("csv.zst", read_and_compare, [Seed(".csv.zst", zstandard.compress(seed.content))])

    def _zip(self) -> Door:
        packing = zipfile.ZIP_DEFLATED
        files = {path.name: path.read_bytes() for path in sorted((FIXTURES / "doccano").iterdir())}
        several = zipped([(name, content, packing) for name, content in files.items()])
        export = (FIXTURES / "label_studio.json").read_bytes()
        return Door("zip", read_any, [Seed(".zip", several), Seed(".zip", zipped([("export.json", export, packing)]))])

    def _platform_maker(self, name: str) -> Callable[[], Door]:
        def made() -> Door:
            seeds = _fixtures(name)
            if name == "argilla":
                seeds.append(self._hub())
            return Door(name, read_any, seeds)

        return made

    def _hub(self) -> Seed:
        """Argilla's records as a dataset on the hub has them."""
        import pyarrow as pa
        from pyarrow import parquet

        records = json.loads((FIXTURES / "argilla_flat.json").read_bytes())
        columns = {key: [record.get(key) for record in records] for record in records for key in record}
        out = io.BytesIO()
        parquet.write_table(pa.table(columns), out)
        return Seed(".parquet", out.getvalue())

    def _wide(self) -> Door:
        return Door("wide", read_and_compare, _fixtures("wide"))

    def _frames(self) -> Door:
        from proofs.fuzz import frames

        texts = {name: column.tolist() for name, column in self._votes.items()}
        numbers = {name: [zlib.crc32(str(value).encode()) for value in column] for name, column in texts.items()}
        missing = {name: [*column[:-1], None] for name, column in texts.items()}
        return Door(
            "frames",
            frames.enter,
            [Seed(".columns", json.dumps(columns).encode()) for columns in (texts, numbers, missing)],
        )

    def _folders(self) -> Door:
        return Door("folders", Folders(self._folder / "folders").enter, [Seed(".json", text) for text in some_crowds()])

    def _typed_files(self) -> Door:
        enter = TypedFiles(self._folder / "typed").enter
        return Door("typed files", enter, [Seed(".json", text) for text in some_files()])

    def _aggregate(self) -> Door:
        """All steps: what was read, however odd, is also fitted, decided and written."""
        written = [self._folder / f"result{ending}" for ending in (".csv", ".json", ".parquet", ".xlsx", ".arrow")]

        def enter(path: Path) -> None:
            content = path.read_bytes()
            result = rarevote.fit(path, "majority-vote").decide()
            check_majority(dict(zip(result.tasks.tolist(), result.labels.tolist(), strict=True)), plain_votes(path))
            result.write(written[zlib.crc32(content) % len(written)])

        seeds = [*self._written(self._votes, ".json", ".ndjson", ".parquet"), *_fixtures("toloka"), *_fixtures("wide")]
        return Door("aggregate", enter, [*seeds, *(Seed(".jsonl", seed.content) for seed in _fixtures("prodigy"))])

    # -- what goes beside votes --------------------------------------------------------------------------------------

    def _gold(self) -> Door:
        crowd = self._fitted.crowd
        seeds = self._written(self._truth, ".csv", ".json", ".parquet", ".xlsx")
        return Door("gold", lambda path: check_labels(crowd.known(path), path), seeds)

    def _truth_file(self) -> Door:
        seeds = self._written(self._truth, ".csv", ".json", ".parquet", ".arrow")
        return Door("truth", lambda path: check_labels(read_truth_file(path), path), seeds)

    def _costs(self) -> Door:
        text = b"true,defect,sound\ndefect,0,20\nsound,1,0\n"
        names = _CLASSES.tolist()
        return Door("costs", lambda path: check_costs(cost_matrix(path, _CLASSES), path, names), [Seed(".csv", text)])

    def _result(self) -> Door:
        columns = self._fitted.decide().columns()
        seeds = self._written(columns, ".csv", ".json", ".parquet")
        return Door("result", lambda path: check_result(read_result(path), path, tuple(columns)), seeds)

    def _answers(self) -> Door:
        said = {**self._truth, "who": np.full(30, "anna", dtype=object)}
        exports = [Seed(path.suffix, path.read_bytes()) for path in (FIXTURES / "label_studio.json",)]

        def enter(path: Path) -> None:
            found = [(str(one.task), str(one.label)) for one in read_answers(path)]
            check_rows(found, path, tuple(said), lambda row: (row["task"], row["label"]))

        return Door("answers", enter, [*self._written(said, ".csv", ".json"), *exports])

    def _review_list(self) -> Door:
        columns = {**self._truth, "doubt": self._truth["label"], "text": self._truth["task"]}

        def enter(path: Path) -> None:
            found = read_review_list(path)
            rows = list(zip(found.tasks, *(found.columns.get(name, found.tasks) for name in columns), strict=True))
            check_rows(rows, path, tuple(columns), lambda row: (row["task"], *row.values()))

        return Door("review_list", enter, self._written(columns, ".csv", ".json", ".xlsx"))

    # -- what a fit leaves -------------------------------------------------------------------------------------------

    def _model(self) -> Door:
        new = (["n1", "n1", "n2"], ["w0", "w2", "w1"], ["defect", "sound", "defect"])

        def enter(path: Path) -> None:
            model = rarevote.load(path)
            probable = np.column_stack(list(model.predict_proba(new).values.values()))
            if not (np.isfinite(probable).all() and np.allclose(probable.sum(axis=1), 1.0)):
                raise WrongAnswerError(f"these are not probabilities: {probable}")

        seeds = []
        for method in ("dawid-skene", "anchored-rasch", "glad", "mace"):
            path = self._folder / "seed.model"
            rarevote.fit(tuple(self._votes.values()), method).save(path)
            seeds.append(Seed(".model", _timeless(path.read_bytes())))
        return Door("model", enter, seeds)

    def _weights(self) -> Door:
        header = {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "__metadata__": {"format": "pt"}}
        small = _safetensors(header, np.arange(4, dtype="<f4").tobytes())
        return Door("weights", read_tensors, [Seed(".safetensors", small), Seed(".zip", _torch_zip())])

    def _crowdfm(self) -> Door:
        draws, header, data = np.random.default_rng(1), {}, b""
        for name, shape in _expected_shapes(1).items():
            numbers = draws.normal(0, 0.1, shape).astype("<f4").tobytes()
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
            data += numbers
        return Door("crowdfm", load_weights, [Seed(".safetensors", _safetensors(header, data))])

    def _checkpoint(self) -> Door:
        def stop(progress: Any) -> None:
            if progress.iteration > _ITERATIONS_KEPT:
                raise InterruptedError

        votes = rarevote.read(tuple(self._votes.values()))
        folder = self._folder / "checkpoint"
        method = DawidSkene(_ITERATIONS_KEPT + 2, tol=0)

        def fit(callback: Any = None) -> Any:
            return rarevote.fit(votes, method, checkpoint=folder, checkpoint_every=_ITERATIONS_KEPT, callback=callback)

        with suppress(InterruptedError):
            fit(stop)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        round_ = files[0].parent
        known = {path.name for path in files}
        contents = [_timeless(path.read_bytes()) if path.suffix == ".npz" else path.read_bytes() for path in files]
        whole = zipped(
            [(path.name, content, zipfile.ZIP_STORED) for path, content in zip(files, contents, strict=True)]
        )

        def enter(path: Path) -> None:
            # Only the fit's own files are laid out again, by their names.
            with zipfile.ZipFile(path) as archive:
                found = {info.filename: archive.read(info) for info in archive.infolist()}
            round_.mkdir(parents=True, exist_ok=True)
            for name in known:
                (round_ / name).unlink(missing_ok=True)
                if name in found:
                    (round_ / name).write_bytes(found[name])
            if not np.isfinite(fit().probabilities).all():
                raise WrongAnswerError("probabilities are not finite")

        return Door("checkpoint", enter, [Seed(".checkpoint", whole)])

    # -- audits ------------------------------------------------------------------------------------------------------

    def _plan(self) -> Door:
        true = (self._truth["label"] == "defect").tolist()
        truth = dict(zip(self._truth["task"].tolist(), true, strict=True))

        def enter(path: Path) -> None:
            audit = Audit.load(path)
            refused = verify(audit, audit.certificate())
            if not refused and all(truth.get(task) == answer for task, answer in audit.answers.items()):
                honest = honest_set(json.loads(audit.to_json()), truth)
                if audit.certified < honest:
                    raise WrongAnswerError(f"certifies set {audit.certified}, an honest audit {honest}")
            audit.final_list()
            audit.round(3)

        return Door("plan", enter, [Seed(".json", self._plan_text())])

    def _journal(self) -> Door:
        plan = self._folder / "journal" / "audit.json"
        plan.parent.mkdir(exist_ok=True)
        audit = Audit.from_json(self._plan_text().decode())
        asked = audit.round(6)
        journal_path(plan).unlink(missing_ok=True)  # that of a door made before
        audit.save(plan)
        lines = [{"task": task, "label": "defect", "who": "anna", "when": "2026-11-17T00:00:00Z"} for task in asked]
        lines.append({**lines[0], "label": None, "undo": True})
        text = "".join(json.dumps(line) + "\n" for line in lines)

        before = dict(audit.answers)

        def enter(path: Path) -> None:
            journal_path(plan).write_bytes(path.read_bytes())
            found = Audit.load(plan)
            found.certificate()
            check_journal(found.answers, before, path.read_bytes())

        return Door("journal", enter, [Seed(".jsonl", text.encode())])

    def _certificate(self) -> Door:
        plan = self._folder / "certified.json"
        plan.write_bytes(self._plan_text())
        certificate = json.dumps(Audit.load(plan).certificate()).encode()

        def enter(path: Path) -> None:
            reasons = verify_files(plan, path)
            if not reasons and json.loads(path.read_bytes()) != json.loads(certificate):
                said, ours = json.loads(path.read_bytes()), json.loads(certificate)
                names = ("class", "target", "claim", "certified", "estimates")
                if different := [name for name in names if not equal_to_rounding(said.get(name), ours.get(name))]:
                    raise WrongAnswerError(f"accepted with another {different}")

        return Door("certificate", enter, [Seed(".json", certificate)])

    def _workbench(self) -> Door:
        from proofs.fuzz.requests import Visitor, some_requests

        visitor = self.enter_context(closing(Visitor(self._folder / "workbench", self._plan_text())))
        return Door("workbench", visitor.send, [Seed(".request", request) for request in some_requests()])


def equal_to_rounding(said: Any, ours: Any) -> bool:
    """Whether two JSON values are equal; figures can differ in their last digits, as on another machine."""
    if isinstance(said, dict) and isinstance(ours, dict):
        return said.keys() == ours.keys() and all(equal_to_rounding(said[name], ours[name]) for name in ours)
    if type(said) is float and type(ours) is float:
        return isclose(said, ours, rel_tol=2e-6, abs_tol=2e-6)
    return bool(said == ours)


def read_any(path: Path) -> Any:
    """An export's votes; of every second file, those of each question."""
    return read_and_compare(path) if zlib.crc32(path.read_bytes()) % 2 else read_each(path)


def _fixtures(name: str) -> list[Seed]:
    patterns = (f"{name}.*", f"{name}_*.*", f"{name}/*.*", f"{name}_*/*.*")
    files = sorted({path for pattern in patterns for path in FIXTURES.glob(pattern) if path.is_file()})
    return [Seed(path.suffix, path.read_bytes()) for path in files]


def _timeless(archive: bytes) -> bytes:
    """A zip file without the times in it, so that a seed is the same every time."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        members = [(info.filename, opened.read(info), info.compress_type) for info in opened.infolist()]
    stamp = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
    return zipped([(name, stamp.sub(b"2026-11-17T00:00:00Z", content), packing) for name, content, packing in members])


def _safetensors(header: Any, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _torch_zip() -> bytes:
    """A tensor as PyTorch writes it: a program of the pickle machine, byte by byte, and the numbers beside it."""

    def text(value: str) -> bytes:
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    ordered = b"ccollections\nOrderedDict\n)R"
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x06tQ"
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x02K\x03\x86K\x03K\x01\x86\x89" + ordered + b"tR"
    )
    program = b"\x80\x02" + ordered + b"(" + text("a") + tensor + b"u."
    numbers = np.arange(6, dtype="<f4").tobytes()
    members = {"data.pkl": program, "data/0": numbers, "byteorder": b"little"}
    return zipped([(f"model/{name}", content, zipfile.ZIP_STORED) for name, content in members.items()])
