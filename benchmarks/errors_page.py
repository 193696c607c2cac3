"""Examples of docs/errors.md: every error with a message that the command line gives, its cause and what to do.

Each example is a command that is run here; what it prints is what the page shows.
"""

from __future__ import annotations

import builtins
import importlib.abc
import inspect
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import tests.command

import rarevote
import rarevote.cli
from rarevote import errors
from rarevote.cli import show

VOTES = "task,worker,label\n" + "".join(
    f"t{task},{worker},{'defect' if (task * 3 + number) % 5 == 0 else 'sound'}\n"
    for task in range(6)
    for number, worker in enumerate(("ana", "bo", "cy"))
)
FILES: dict[str, str | bytes] = {
    "votes.csv": VOTES,
    "more.json": '[{"task": "t0", "worker": "ana", "label": "sound"}]',
    "empty.csv": "",
    "picture.csv": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "cut.json": '[{"task": "t0", "worker": "ana", "label": "sound"}, {"task": "t0", "wor',
    "cut.csv.gz": b"\x1f\x8b\x08\0\0\0\0\0\0\x03KI",
    "deep.json": '[{"task":' * 1500 + "1" + "}]" * 1500,
    "ragged.csv": "task,worker,label\nt0,ana,sound\nt0,bo,sound,rather\n",
    "strange.csv": "a,b,c\n1,2,3\n1,4,5\n",
    "two.csv": "task,worker,rating,answer\nt0,ana,1,yes\n",
    "hole.csv": "task,worker,label\nt0,ana,sound\nt0,bo,\n",
    "many.csv": "task,worker,label\n" + "".join(f"t{i},w{i % 300},c{i % 700}\n" for i in range(2100)),
    "truth.csv": "task,label\nt0,sound\nt1,defect\n",
    "other-truth.csv": "task,label\nx1,sound\nx2,defect\n",
    "labels.csv": "task,label,p:defect,p:sound\nt0,sound,0.02,0.98\nt1,defect,0.9,0.1\n",
    "plan.json": '{"rarevote": "audit"}',
    "damaged.xlsx": b"PK\x03\x04 half a file",
    "damaged.arrow": b"ARROW1\0\0 half a file",
    "some.model": b"PK\x03\x04 half a file",
    "some.safetensors": b"\xff\xff\xff\xff\xff\xff\xff\xff",
}


@dataclass(frozen=True)
class Example:
    """A command that fails, or warns.

    Attributes:
        kind: the class of the error or warning; empty for what is not raised but ends a command all the same.
        command: the words after ``rarevote``; or a function, where only Python can do it.
        cause: why.
        remedy: what to do.
        within: a circumstance in which it is run, such as a library that is absent.
        shown: what to type in Python, for a function.
        cut: what is said by a library and by another version of it otherwise: the page has dots in its place.
    """

    kind: str
    command: str | Callable[[], Any]
    cause: str
    remedy: str
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    shown: str = ""
    cut: str = ""


class _Absent(importlib.abc.MetaPathFinder):
    """Finds no library of one name, wherever it is installed."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] == self.module:
            raise ModuleNotFoundError(f"No module named '{self.module}'", name=self.module)


@contextmanager
def _absent(module: str) -> Iterator[None]:
    loaded = [name for name in sys.modules if name.partition(".")[0] == module]
    with mock.patch.dict(sys.modules), mock.patch.object(sys, "meta_path", [_Absent(module), *sys.meta_path]):
        for name in loaded:
            del sys.modules[name]
        yield


def without(module: str) -> Callable[[], AbstractContextManager[Any]]:
    """A circumstance: a library is not installed."""
    return lambda: _absent(module)


def _raising(place: str, error: BaseException) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch(place, side_effect=error)


EXAMPLES: tuple[Example, ...] = (
    # the data given
    Example("InputError", "aggregate nothing.csv", "There is no file of that name here.",
            "Check the name and the folder that you are in; a name with spaces needs quotes."),
    Example("InputError", "aggregate empty.csv", "The export or copy failed, or was stopped.", "Export it again."),
    Example("InputError", "aggregate picture.csv", "The content of the file decides, not its name.",
            "Use the table that belongs to the pictures."),
    Example("InputError", "aggregate labels.csv", "A result has one label and the probabilities of the classes for "
            "each item; read as votes, every class would be an annotator. It is recognised by its columns.",
            "Pass the votes that it was made from."),
    Example("InputError", "aggregate cut.json", "The file was cut off while it was written or copied.",
            "Copy it again, and compare its size with that of the original."),
    Example("InputError", "aggregate cut.csv.gz", "The compressed file is damaged or incomplete.", "Copy it again.",
            cut=r"(?<=cut off: ).*(?=\))"),
    Example("InputError", "audit status deep.json", "The JSON is nested more deeply than any plan.",
            "Check which program wrote it: this is not a plan."),
    Example("InputError", "aggregate damaged.xlsx", "The file is damaged, or is not a spreadsheet.",
            "Open it in a spreadsheet program and save it again, or save it as `.csv`.", cut=r"(?<=\().*(?=\))"),
    Example("InputError", "aggregate damaged.arrow", "The Arrow or Feather file is damaged; such files are checked "
            "before they are read.", "Write it again.", cut=r"(?<=\().*(?=\))"),
    Example("InputError", "aggregate ragged.csv", "A cell contains the delimiter and has no quotes around it.",
            "Put the cell in quotes, or export with another delimiter."),
    Example("InputError", "aggregate votes.csv more.json", "All files of a command are read as one table.",
            "Name files of one kind, or convert the others first."),
    Example("InputError", "aggregate votes.csv votes.csv --keep error",
            "A person answered an item twice, or a file was given twice.",
            "Choose which answer counts with `--keep`, or leave out the second file."),
    Example("InputError", "convert votes.csv", "The file is a plain table, or the export of an unknown platform.",
            "`rarevote aggregate` reads plain tables; `--from` names a platform."),
    Example("InputError", "aggregate votes.csv -m majority-vote --truth other-truth.csv",
            "The truth is about other items, or writes their ids differently.", "Compare the ids of the two files."),
    Example("InputError", "explain votes.csv -m majority-vote --task t99", "No item has this id.",
            "Copy the id from the result."),
    Example("InputError", "aggregate votes.csv --out result.txt",
            "The ending of the name sets the format, and this ending is unknown.", "Use one of the endings listed."),
    Example("InputError", "aggregate votes.csv --out nowhere/result.csv", "The folder of an output file is not "
            "created, because a typing error would create a wrong one.", "Create the folder, or correct the name."),
    Example("InputError", "predict some.model votes.csv", "The file is damaged, or is not a model.",
            "Write it again with `--model-out`.", cut=r"(?<=\().*(?=\))"),
    Example("InputError", "audit status plan.json", "The plan was changed, or the file is not a plan.",
            "Restore it from a copy: an audit needs its original plan."),
    Example("InputError", "aggregate -",
            "Standard input, compressed files and spreadsheets are copied to the temporary folder.",
            "Free some space, or set `TMPDIR` to a folder with more.",
            within=_raising("shutil.copyfileobj", OSError(28, "No space left on device"))),
    # columns, missing values, weights
    Example("ColumnsError", "aggregate strange.csv",
            "No column has a usual name for a task, a worker or a label.",
            "Name them with `--columns`; use `--wide` for a table with one column per annotator."),
    Example("ColumnsError", "aggregate two.csv", "Several columns could be the label.", "Choose one with `--columns`."),
    Example("ColumnsError", "aggregate votes.csv --show text", "The column to copy is not in the file.",
            "Check its name, including upper and lower case."),
    Example("MissingValuesError", "aggregate hole.csv", "A row has no task, no worker or no label.",
            "Fill it in, or leave such rows out with `--missing drop`; a note gives their number."),
    Example("WeightsError", "aggregate votes.csv -m crowdfm --set weights=some.safetensors",
            "The weights file is damaged, belongs to another network, or is missing.", "Download it again."),
    # parameters
    Example("ParameterError", "aggregate votes.csv -m majority", "No method has this name.",
            "`rarevote methods` lists them."),
    Example("ParameterError", "aggregate votes.csv --set iterations=5", "The method has no such parameter.",
            "Use one of those listed."),
    Example("ParameterError", "aggregate votes.csv --rare crack", "No class has this name.",
            "Use a class of the data, or add one with `--class`."),
    Example("ParameterError", "aggregate votes.csv --min-recall defect=90", "A recall is a share between 0 and 1.",
            "Write 0.9 instead of 90."),
    Example("ParameterError", "aggregate votes.csv --decide balanced --min-recall defect=0.9",
            "Two decision rules were given.", "Choose one."),
    Example("ParameterError", "aggregate votes.csv -m majority-vote --gold truth.csv",
            "The method cannot learn from gold, and would ignore it.", "Choose one that can, or leave it out.",
            cut=r"(?<=cc-rasch, ).*"),
    Example("ParameterError", "aggregate votes.csv --out votes.csv", "The result would replace the votes. No output "
            "replaces a file that the command reads, under any name, and no option allows it; in Python this is an "
            "`InputError`.", "Use another file name."),
    # others
    Example("NotFittedError", lambda: rarevote.CCRasch().labels_, "The result does not exist yet.",
            "Call `fit` first.", shown="rarevote.CCRasch().labels_"),
    Example("MissingExtraError", "aggregate votes.csv --out result.xlsx", "Spreadsheets need a library that the basic "
            "installation does not have.", "Install the extra that the message names, or use another format.",
            within=without("openpyxl")),
    Example("MissingExtraError", "aggregate votes.csv --out result.arrow", "Arrow files need a further library.",
            "Install the extra.",
            within=without("pyarrow")),
    Example("MissingExtraError", "aggregate votes.csv --engine dask --out results",
            "The dask engine needs further libraries.",
            "Install the extra.", within=without("distributed")),
    Example("MissingExtraError", "audit review plan.json --no-browser", "The workbench needs further libraries.",
            "Install the extra.",
            within=without("uvicorn")),
    Example("MissingExtraError", "study theory --out study", "The experiments of the paper need further libraries.",
            "Install the extra.", within=without("joblib")),
    Example("NotEnoughMemoryError", "aggregate many.csv -m dawid-skene -q",
            "The method keeps a table of all classes by all classes for every worker, and this machine has "
            "too little memory for it; nothing was started.",
            "Merge classes that hardly differ, or use a method that needs less memory, or a larger machine.",
            within=lambda: mock.patch("rarevote.methods.memory.available_memory", return_value=1 << 28)),
    Example("RarevoteError", "aggregate votes.csv --engine dask --scheduler nonsense://x --out results",
            "No scheduler answers at this address, or it refuses the connection.",
            "Check the address, the network and the certificates.", cut=r"(?<=\().*(?=\))"),
    # warnings
    Example("RarevoteWarning", "aggregate votes.csv -m cc-rasch -q", "The votes are too few or too contradictory "
            "for a reliable answer; the result is still written. With `--strict` the exit code is 3.",
            "Check the classes that the message names before you use the labels; more annotators per item help."),
    Example("ConvergenceWarning", "aggregate votes.csv -m cc-rasch --set n_iter=2 -q",
            "The fit reached its iteration limit before it converged. With `--strict` the exit code is 3.",
            "Allow more iterations with `--set n_iter=...`."),
    # what is not an error of ours
    Example("", "aggregate votes.csv --ouput result.csv", "An option or a command is misspelt.", "`--help` lists them.",
            cut=r"(?<=No such option).*"),
    Example("", "aggregate votes.csv", "Ctrl-C was pressed, or a scheduler stopped the command. Nothing was written.",
            "Run it again.",
            within=_raising("rarevote.api.read", KeyboardInterrupt())),
    Example("", "aggregate votes.csv", "The machine or a limit (`ulimit -v`) has less memory than the data need.",
            "Use a larger machine, or `--engine dask`.", within=_raising("rarevote.api.read", MemoryError()),
            cut=r"(?<=; ).*(?= are available)"),
    Example("", "aggregate votes.csv", "This is a bug in rarevote: errors in your data have their own messages.",
            "Please report it with the output of `RAREVOTE_DEBUG=1`.",
            within=_raising("rarevote.api.read", ZeroDivisionError("division by zero"))),
)  # fmt: skip


def classes() -> dict[str, type]:
    """Every class of :mod:`rarevote.errors`, by name."""
    return {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and kind.__module__ == errors.__name__
    }


@contextmanager
def folder_of_examples() -> Iterator[Path]:
    """A folder with the files that the examples name."""
    with tempfile.TemporaryDirectory() as name:
        for file, content in FILES.items():
            data = content if isinstance(content, bytes) else content.encode()
            (Path(name) / file).write_bytes(data)
        yield Path(name)


def provoked(example: Example, folder: Path) -> tuple[str, int, str]:
    """What an example raises (its class; empty if nothing of ours), its exit code, and what it says."""
    if callable(example.command):
        try:
            example.command()
        except errors.RarevoteError as error:
            return type(error).__name__, 0, str(error)
        raise AssertionError(f"{example.shown} raises nothing")
    kinds: list[type] = []
    complain, warn = show.complain, show.warn

    def note(report: Callable[[object], None]) -> Callable[[object], None]:
        def noted(message: object) -> None:
            kinds.append(type(message))
            report(message)

        return noted

    with (
        mock.patch.multiple(rarevote.cli, complain=note(complain), warn=note(warn)),
        example.within(),
    ):
        done = tests.command.run_command(shlex.split(example.command), folder=folder, environment={"COLUMNS": "100"})
    ours = [kind for kind in kinds if issubclass(kind, (errors.RarevoteError, errors.RarevoteWarning))]
    # The class that users can name: one of another module stands for the one it refines.
    named = next((base.__name__ for kind in ours for base in kind.__mro__ if base.__module__ == errors.__name__), "")
    lines = [line for line in done.stderr.splitlines() if line.startswith(("rarevote: ", "Error: "))]
    said = "\n".join(lines).replace(f"{folder}/", "").replace(tempfile.gettempdir(), "/tmp")
    return named, done.returncode, re.sub(example.cut, "…", said) if example.cut else said


def _article(name: str) -> str:
    return "an" if name[0] in "AEIO" else "a"


def examples_of(kind: str) -> str:
    """What the page says of a class of errors: what it is, and its examples as the command line is today.

    Raises:
        AssertionError: the class has no example, or an example raises something else.
    """
    own = [example for example in EXAMPLES if example.kind == kind]
    if not own:
        raise AssertionError(f"no example for {kind}: add one to EXAMPLES")
    parts = []
    if kind:
        known = classes()[kind]
        also = [base.__name__ for base in known.__bases__ if getattr(builtins, base.__name__, None) is base]
        bases = " and ".join(f"{_article(name)} `{name}`" for name in also if name != "Exception")
        doc = (known.__doc__ or "").split("\n")[0].partition("; also")[0].rstrip(".").replace("``", "`")
        parts.append(f"`{kind}`: {doc}." + (f" It is also {bases}." if bases else ""))
    with folder_of_examples() as folder:
        for example in own:
            found, code, said = provoked(example, folder)
            if found != kind:
                raise AssertionError(f"{example.command}: {found or 'nothing of ours'} instead of {kind}: {said}")
            shown = f">>> {example.shown}" if example.shown else f"$ rarevote {example.command}"
            end = f"\n(exit code {code})" if not example.shown else ""
            parts += [f"```text\n{shown}\n{said}{end}\n```", f"{example.cause} {example.remedy}"]
    return "\n\n".join(parts)
