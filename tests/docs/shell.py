"""Commands of the documentation in a real shell, with ``rarevote`` answered by the process that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

from tests.command import run_command

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


def in_shell(code: str, scratch: Path) -> CompletedProcess[str]:
    """Run ``code`` in bash here, stopping at the first failure; ``scratch`` is an empty folder for the calls."""
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
                print(_answer(Path(line.rstrip("\n"))), file=answers, flush=True)
        shell.wait()
    return CompletedProcess(code, shell.returncode, out.read_text("utf-8"), err.read_text("utf-8"))


def shell_environment() -> dict[str, str]:
    """Variables with this Python, and the ``rarevote`` installed with it, first on the path."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _answer(call: Path) -> int:
    folder, temporary, *words = (call / "words").read_text("utf-8").split("\0")[:-1]
    done = run_command(
        words,
        folder=Path(folder),
        stdin=(call / "stdin").read_bytes(),
        environment={"TMPDIR": temporary} if temporary else {},
    )
    (call / "stdout").write_text(done.stdout, "utf-8")
    (call / "stderr").write_text(done.stderr, "utf-8")
    return done.returncode
