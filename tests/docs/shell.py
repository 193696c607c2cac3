"""Commands of the documentation in a real shell, with ``rarevote`` answered by the process that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

from tests.command import run_command

# What answers a call: words, folder, standard input and variables to its end.
Answering = Callable[..., CompletedProcess[str]]

# A call leaves its words (and what is piped to it, where it reads "-") in a folder, names the folder on one pipe, and
# waits at another for the answer. One call at a time: rarevote piped into rarevote would wait for itself.
RAREVOTE = """
rarevote() {
  local call; call=$(mktemp -d "$CALLS/XXXXXX"); local code
  printf '%s\\0' "$PWD" "${TMPDIR-}" "$@" > "$call/words"
  case " $* " in *" - "*) cat > "$call/stdin" ;; *) : > "$call/stdin" ;; esac
  echo "$call" >&"$ASK"
  read -r code <&"$ANSWER"
  cat "$call/stderr" >&2
  cat "$call/stdout"
  return "$code"
}
"""


class Call(NamedTuple):
    """One call of ``rarevote``, and what it printed."""

    words: list[str]
    stdout: str
    stderr: str


def calls_in(scratch: Path) -> list[Call]:
    """The calls that a shell left in ``scratch``, the first one first."""
    made = sorted(scratch.glob("*/words"), key=lambda path: path.stat().st_mtime_ns)
    return [
        Call(_words(path), *((path.parent / name).read_text("utf-8") for name in ("stdout", "stderr"))) for path in made
    ]


def in_shell(code: str, scratch: Path, run: Answering = run_command) -> CompletedProcess[str]:
    """Run ``code`` in bash here, stopping at the first failure.

    Args:
        code: the commands.
        scratch: an empty folder for the calls.
        run: answers a call of ``rarevote``.
    """
    asked, ask = os.pipe()
    answer, answered = os.pipe()
    environment = {
        **shell_environment(), "CALLS": str(scratch), "ASK": str(ask), "ANSWER": str(answer),
    }  # fmt: skip
    out, err = scratch / "stdout", scratch / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr, os.fdopen(asked) as calls:
        shell = subprocess.Popen(
            ["bash", "-euc", RAREVOTE + code], env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            pass_fds=(ask, answer),
        )  # fmt: skip
        os.close(ask)  # what is left is the shell's: when it ends, so do the calls
        os.close(answer)
        with os.fdopen(answered, "w") as answers:
            for line in calls:
                print(_answer(Path(line.rstrip("\n")), run), file=answers, flush=True)
        shell.wait()
    return CompletedProcess(code, shell.returncode, out.read_text("utf-8"), err.read_text("utf-8"))


def shell_environment() -> dict[str, str]:
    """Variables with this Python, and the ``rarevote`` installed with it, first on the path."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _words(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\0")[2:-1]


def _answer(call: Path, run: Answering) -> int:
    folder, temporary = (call / "words").read_text("utf-8").split("\0")[:2]
    done = run(
        _words(call / "words"),
        folder=Path(folder),
        stdin=(call / "stdin").read_bytes(),
        environment={"TMPDIR": temporary} if temporary else {},
    )
    (call / "stdout").write_text(done.stdout, "utf-8")
    (call / "stderr").write_text(done.stderr, "utf-8")
    return done.returncode
