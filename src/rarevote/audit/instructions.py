"""Instructions for the expert: the question as the project lead words it, and what each class means.

They are part of a plan and of its certificate: a recall refers to a class as it was defined.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarevote.crowd.names import as_name_array, in_kind
from rarevote.errors import InputError, ParameterError, shown

_LONGEST = 4000


@dataclass(frozen=True)
class Instructions:
    """The text that the expert reads before the first item.

    Attributes:
        question: the question about every item; None for the default question of the workbench.
        definitions: what a class means, by its name.
    """

    question: str | None = None
    definitions: tuple[tuple[Any, str], ...] = ()

    def __post_init__(self) -> None:
        for text in (self.question or "", *(text for _, text in self.definitions)):
            if not isinstance(text, str) or len(text) > _LONGEST:
                raise ParameterError(f"a question or definition must be text of at most {_LONGEST:,} characters")

    def __bool__(self) -> bool:
        return self.question is not None or bool(self.definitions)

    def of_classes(self, classes: Iterable[Any]) -> Instructions:
        """The instructions with class names in the type of the data.

        Raises:
            ParameterError: a definition names something that is not a class.

        >>> Instructions(None, (("1", "a break"),)).of_classes([0, 1]).definitions
        ((1, 'a break'),)
        """
        known = list(classes)
        names = in_kind([name for name, _ in self.definitions], as_name_array(known)) if self.definitions else []
        for name in names:
            if name not in known:
                raise ParameterError(
                    f"--define: {name!r} is not a class; the classes are {', '.join(map(str, known[:20]))}"
                )
        texts = [text for _, text in self.definitions]
        return Instructions(self.question, tuple(zip(names, texts, strict=True)))

    def definition(self, name: Any) -> str | None:
        """The definition of a class, if there is one."""
        return next((text for known, text in self.definitions if known == name), None)

    def as_json(self) -> dict[str, Any]:
        """The record in a plan."""
        return {"question": self.question, "definitions": [[name, text] for name, text in self.definitions]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Instructions:
        """Instructions from a plan.

        Raises:
            TypeError: the record is not valid.
            ValueError: likewise.
            KeyError: likewise.
        """
        question, pairs = record["question"], record["definitions"]
        if len(record) != 2 or not isinstance(pairs, list) or not (question is None or isinstance(question, str)):
            raise ValueError("the instructions are not a question and definitions")
        if any(not isinstance(text, str) or isinstance(name, (list, dict)) for name, text in pairs):
            raise TypeError("a definition is a class and a text")
        return cls(question, tuple((name, text) for name, text in pairs))


def read_instructions(question: str | None, definitions: Sequence[str], file: Path | None) -> Instructions:
    """Instructions from the command line and from a TOML file; the command line has priority.

    The file has ``question = "..."`` and a table ``[define]`` with a text for each class.

    Raises:
        ParameterError: a definition is not ``CLASS=TEXT``.
        InputError: the file cannot be read or has other contents.
    """
    asked, meant = (None, {}) if file is None else _read_toml(file)
    for text in definitions:
        name, sign, words = text.partition("=")
        if not sign or not name.strip() or not words.strip():
            raise ParameterError(f'--define needs CLASS=TEXT, such as defect="visible break", got {text!r}')
        meant[name.strip()] = words.strip()
    return Instructions(question or asked, tuple(meant.items()))


def _read_toml(path: Path) -> tuple[str | None, dict[str, str]]:
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML ({getattr(error, 'strerror', None) or error})") from None
    question, meant = record.pop("question", None), record.pop("define", {})
    if record:
        raise InputError(
            f'{path}: {next(iter(record))!r} is not known; there are question = "..." and a table [define]'
        )
    if not (question is None or isinstance(question, str)):
        raise InputError(f"{path}: question must be text, got {shown(question)}")
    if not isinstance(meant, dict) or not all(isinstance(text, str) for text in meant.values()):
        raise InputError(f"{path}: [define] must have a text for each class")
    return question, dict(meant)
