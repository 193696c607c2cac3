"""The text of a check, as the terminal prints it."""

from __future__ import annotations

from typing import Any

from rarevote.crowd.words import capital, counted

_SIGNS = {"stop": "!!", "care": " !", "note": "  "}


class CheckText:
    """A base class of :class:`~rarevote.Check`: ``str`` is the text for the terminal, ``repr`` the verdict."""

    def __str__(self: Any) -> str:
        from rarevote.diagnose.check import QUESTIONS

        lines: list[str] = []
        for question, title in QUESTIONS.items():
            if answers := self.answers(question):
                lines += [title, *(f"{_SIGNS[one.weight]} {one.description}" for one in answers), ""]
        lines += ["What to expect", *(f"   {capital(words)}." for words in self.worlds), ""]
        return "\n".join([*lines, f"verdict: {self.verdict}", *(f"   {words}" for words in self.reasons)])

    def __repr__(self: Any) -> str:
        return f"Check({counted(self.n_tasks, 'item')} by {self.method}: {self.verdict})"
