"""Every verb and sub-verb explains itself with examples, and the examples are commands that there are."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from rarevote.cli import app
from rarevote.io.read.options import ReadOptions
from tests import wheel_check
from tests.command import rarevote


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*path, name))


COMMANDS = dict(walk(app))


def examples(command: Any) -> list[list[str]]:
    """The words of each example, what a shell would do with pipes and redirections left out."""
    found = []
    for line in (command.epilog or "").splitlines():
        line = line.partition(" | ")[2] if " | " in line else line
        if line.startswith("rarevote "):
            words = shlex.split(line)
            found.append(words[1 : words.index(">") if ">" in words else None])
    return found


def parsed(words: list[str]) -> tuple[str, ...]:
    """The verb that the words are for; raises where an option or a verb is unknown, or an argument is missing."""
    path: tuple[str, ...] = ()
    while words and (*path, words[0]) in COMMANDS:
        path, words = (*path, words[0]), words[1:]
    if words and hasattr(COMMANDS[path], "commands") and not words[0].startswith("-"):
        raise LookupError(f"no such verb: {words[0]}")
    COMMANDS[path].make_context(" ".join(path), list(words), **app.context_settings)
    return path


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "rarevote")
def test_help_of_a_verb_is_what_the_verb_shows(path: tuple[str, ...]) -> None:
    shown = rarevote(*path, "--help").stdout
    assert shown.startswith("Usage: rarevote")
    assert rarevote("help", *path).stdout == shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["audt"], "No such command 'audt'. Did you mean 'audit'?"),
        (["audit", "strat"], "No such command 'strat'. Did you mean 'start'?"),
        (["check", "x"], "rarevote check has no verbs of its own, got 'x'"),
    ],
)
def test_help_of_a_verb_that_does_not_exist(words: list[str], said: str) -> None:
    assert said in rarevote("help", *words, code=2).stderr


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "rarevote")
def test_help_has_examples_that_are_commands(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert (command.epilog or "").startswith("Examples:\n"), "give the verb an epilog that begins with Examples:"
    verbs = [parsed(words) for words in examples(command)]
    assert any(verb[: len(path)] == path for verb in verbs), "an example of the verb itself"


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "rarevote")
def test_everything_is_explained(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    for parameter in command.params:
        assert parameter.help or parameter.name in ("install_completion", "show_completion"), parameter.name


def test_a_mistaken_example_would_be_noticed() -> None:
    for words in (["aggregate", "labels.csv", "--no-such-option"], ["explain", "labels.csv"], ["nonsense"]):
        with pytest.raises(Exception, match=r"(?i)no such option|missing|no such verb"):
            parsed(words)


def test_verbs_that_make_results_speak_json() -> None:
    verbs = {path: command for path, command in COMMANDS.items() if not hasattr(command, "commands")}
    silent = {path for path, command in verbs.items() if "--json" not in {o for p in command.params for o in p.opts}}
    # A page, a folder of files, studies and help are for people; groups do nothing themselves.
    assert {path[0] for path in silent} <= {"simulate", "demo", "datasets", "study", "help"}


def test_one_dataset_as_json() -> None:
    found = json.loads(rarevote("datasets", "show", "rte", "--json").stdout)
    assert (found["slug"], found["n_items"], found["n_classes"]) == ("rte", 800, 2)


@pytest.mark.parametrize(
    ("path", "parameter", "begin", "found"),
    [
        (("annotators",), "sort", "v", ["votes"]),
        (("annotators",), "method", "cc", ["cc-rasch"]),
        (("aggregate",), "review_as", "l", ["label-studio"]),
        (("report",), "keep", "", ["all", "first", "last", "error"]),
        (("convert",), "platform", "t", ["toloka"]),
        (("datasets", "show"), "name", "rt", ["rte"]),
        (("datasets", "import"), "name", "j", ["jigsaw"]),
    ],
)
def test_choices_are_completed(path: tuple[str, ...], parameter: str, begin: str, found: list[str]) -> None:
    command = COMMANDS[path]
    context = command.make_context("rarevote", [], resilient_parsing=True, **app.context_settings)
    one = next(one for one in command.params if one.name == parameter)
    assert [item.value for item in one.shell_complete(context, begin)] == found


def test_reading_has_an_option_for_each_field() -> None:
    """A field and an option are all that a new way to read takes."""
    names = {one.name for one in COMMANDS["predict",].params if getattr(one, "section", "") == "What the labels are"}
    assert names == {field.name for field in fields(ReadOptions)}


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/completions/rarevote.fish")]
)
def test_completion_is_shown_and_installed_once(shell: str, file: str, tmp_path: Path) -> None:
    environment = {"SHELL": f"/usr/bin/{shell}", "HOME": str(tmp_path)}
    assert f"_RAREVOTE_COMPLETE={shell}_complete" in rarevote("--show-completion", environment=environment).stdout
    for _ in range(2):
        said = rarevote("--install-completion", environment=environment).stdout
        assert f"{shell} completion installed in {tmp_path / file}" in said
        assert (tmp_path / file).read_text().count(f"_RAREVOTE_COMPLETE={shell}_source rarevote") == 1


def test_completion_of_another_shell_is_an_error() -> None:
    for option in ("--show-completion", "--install-completion"):
        wrong = rarevote(option, environment={"SHELL": "/bin/sh"}, code=1)
        assert "no completion for this shell (SHELL='sh'): there is bash, zsh, fish" in wrong.stderr


def test_the_wheel_is_tried_with_every_verb() -> None:
    """In an environment without extras, and those of the study with its extra; what downloads is only refused."""
    ends = {path for path, command in COMMANDS.items() if not getattr(command, "commands", {})}
    tried: set[tuple[str, ...]] = {("demo",)}
    for line in [*wheel_check.VERBS.split("\n"), *wheel_check.EXTRAS, *wheel_check.STUDY.split("\n")]:
        tried |= {tuple(line.split()[:n]) for n in (1, 2)}
    assert ends - tried == set()


@pytest.mark.parametrize("verb", [[], ["aggregate"], ["audit"], ["audit", "start"], ["study", "paper"]], ids=" ".join)
def test_the_short_help_is_the_long_one(verb: list[str]) -> None:
    """It was named in messages, and refused."""
    assert rarevote(*verb, "-h").stdout == rarevote(*verb, "--help").stdout
    wrong = rarevote(*verb, "--no-such-option", code=2)
    assert f"Try '{' '.join(['rarevote', *verb])} --help' for help." in wrong.stderr
