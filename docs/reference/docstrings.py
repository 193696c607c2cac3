"""How docstrings become pages: Sphinx roles become code, doctests and diagrams become blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(?:[^`<]*<)?~?([^`>]+)>?`")
_DOCTEST = re.compile(r"^(?P<indent>[ ]*)>>> .*\n(?:(?P=indent)\S.*\n)*", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring as the site writes it.

    >>> as_markdown("See :func:`~rarevote.api.read`.")
    'See `read`.'
    """
    text = _ROLE.sub(lambda found: f"`{found[1].removeprefix('.').rpartition('.')[2]}`", text)
    text = re.sub(r"^\s*::$\n", "", text, flags=re.MULTILINE)
    return _DOCTEST.sub(_fenced, text.rstrip() + "\n").rstrip("\n")


def _fenced(block: re.Match[str]) -> str:
    indent = block["indent"]
    return f"{indent}```pycon\n{block[0]}{indent}```\n"


class Docstrings(griffe.Extension):
    """Rewrites every docstring once it is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for every module, class, function and attribute."""
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value)
