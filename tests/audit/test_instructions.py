"""Instructions for the expert, from the command line and from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rarevote.audit.instructions import Instructions, read_instructions
from rarevote.errors import InputError, ParameterError
from tests.audit.worlds import started


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "words.toml"
    file.write_text('question = "Is it broken?"\n[define]\ndefect = "a break"\nsound = "none"\n')
    assert read_instructions(None, [], file) == Instructions(
        "Is it broken?", (("defect", "a break"), ("sound", "none"))
    )
    given = read_instructions("Really?", ["defect = a visible break"], file)
    assert given == Instructions("Really?", (("defect", "a visible break"), ("sound", "none")))
    assert read_instructions(None, [], None) == Instructions()
    assert not read_instructions(None, [], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question = 7", "question must be text, got 7"),
        ("define = 7", r"\[define\] must have a text for each class"),
        ("[define]\ndefect = 7", r"\[define\] must have a text for each class"),
        ("ask = 'a'", "'ask' is not known; there are question"),
        ("question", "cannot be read as TOML"),
    ],
)
def test_files_that_are_not_instructions(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "words.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=f"words.toml: {message}"):
        read_instructions(None, [], file)


@pytest.mark.parametrize("text", ["defect", "=a break", "defect= "])
def test_a_definition_needs_a_class_and_a_text(text: str) -> None:
    with pytest.raises(ParameterError, match="--define needs CLASS=TEXT"):
        read_instructions(None, [text], None)


def test_definitions_are_of_classes_in_their_own_type() -> None:
    assert Instructions("Why?", (("1", "a break"),)).of_classes([0, 1]).definitions == ((1, "a break"),)
    assert Instructions("Why?").of_classes([0, 1]) == Instructions("Why?")
    with pytest.raises(ParameterError, match="--define: 'crack' is not a class; the classes are defect, sound"):
        Instructions(None, (("crack", "a break"),)).of_classes(["defect", "sound"])


def test_an_audit_checks_definitions_against_its_classes() -> None:
    broken = Instructions(None, (("defect", "a break"),))
    other = Instructions(None, (("dirt", "not a break"),))
    assert started(60, instructions=broken)[0].plan.instructions == broken
    assert started(60, instructions=other, classes=["defect", "dirt", "sound"])[0].plan.instructions == other
    with pytest.raises(ParameterError, match="--define: 'dirt' is not a class; the classes are defect, not defect"):
        started(60, instructions=other)


def test_a_text_has_at_most_4000_characters() -> None:
    longest = "x" * 4000
    assert Instructions(longest, (("defect", longest),)).definition("defect") == longest
    for question, definitions in ((longest + "x", ()), (None, (("defect", longest + "x"),))):
        with pytest.raises(ParameterError, match="must be text of at most 4,000 characters"):
            Instructions(question, definitions)
