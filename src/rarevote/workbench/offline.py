"""A review as one file: items, media and keys in a page without a server, for a remote expert.

The file has only what the expert can see: no scores, votes or truth. Answers stay in the browser
until they are saved, as the file that :mod:`rarevote.audit.saved_answers` reads.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

from rarevote.crowd.words import counted
from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing
from rarevote.page.report import asset, content_hash, page_style, template
from rarevote.workbench.content import Field, ItemView
from rarevote.workbench.keys import HELP_KEY, UNDO_KEY, UNSURE_KEY, ZOOM_KEY, class_keys
from rarevote.workbench.markup import FRAME_STYLE
from rarevote.workbench.media import MEDIA_TYPES
from rarevote.workbench.pace import plan_words
from rarevote.workbench.session import UNSURE, ReviewSession

#: The largest size of media in one file, in bytes: larger pages open slowly, and are too large for e-mail.
MAX_MEDIA = 100 * 2**20


def write_offline(session: ReviewSession, path: Path, *, of: str, number: int) -> int:
    """Write the open items of a session as one page.

    Args:
        of: the identifier for the file of answers.
        number: the round.

    Returns:
        The number of items in it.

    Raises:
        InputError: no item is open, or the media are too large for one file.
    """
    places = [place for place, said in enumerate(session.said) if said is None or said == UNSURE]
    if not places:
        raise InputError(f"{path}: no item is open, so there is nothing to review")
    embedding = _Embedding(session)
    views = [embedding.view(session.first + place) for place in places]
    style = f"{page_style()}\n{asset('rarevote.workbench', 'workbench.css')}"
    script = asset("rarevote.workbench", "offline.js")
    keys = {"unsure": UNSURE_KEY, "undo": UNDO_KEY, "help": HELP_KEY, "zoom": ZOOM_KEY}
    choices = list(zip(session.choices, class_keys(session.choices), strict=True))
    record = {"of": of, "round": number, "who": session.who, "places": places, "file": f"{path.stem}.answers.json"}
    policy = {
        "default-src": "'none'",
        "script-src": content_hash(script),
        "style-src": f"{content_hash(style)} {content_hash(FRAME_STYLE)}",
        "img-src": "data:",
        "media-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    text = template("rarevote.workbench", "offline.html.j2").render(
        about=session.about,
        noun=session.noun,
        proves=False,
        question=session.question,
        definitions=session.definitions,
        plan=plan_words(session.progress, session.noun),
        views=views,
        choices=choices,
        keys=keys,
        style=style,
        script=script,
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        # No "<" remains that could end the element.
        record=json.dumps(record, ensure_ascii=True).replace("<", "\\u003c"),
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return len(places)


class _Embedding:
    """Views of items with embedded media."""

    def __init__(self, session: ReviewSession) -> None:
        self._session, self._n_bytes = session, 0

    def view(self, number: int) -> ItemView:
        view = self._session.view(number)
        return ItemView(view.task, tuple(self._inside(field) for field in view.fields))

    def _inside(self, field: Field) -> Field:
        """The field with an address that needs no server."""
        if field.address is None or field.kind == "link":
            return field
        if field.address.startswith("https://"):
            return replace(field, kind="link")  # an image on the web
        _, kind, number, column = field.address.split("/")
        if kind == "frame":
            return replace(field, address=self._session.frame(int(number), int(column)))
        path = self._session.file(int(number), int(column))
        if path is None:
            return replace(field, kind="text", address=None, note="the file cannot be read")
        self._n_bytes += path.stat().st_size
        if self._n_bytes > MAX_MEDIA:
            raise InputError(
                f"the media of {counted(len(self._session.tasks), 'item')} are larger than the {MAX_MEDIA >> 20} MB "
                "that one file may hold: make the files smaller, or give the expert access to the workbench "
                "through a tunnel (docs/howto/workbench.md)"
            )
        data = b64encode(path.read_bytes()).decode("ascii")
        return replace(field, address=f"data:{MEDIA_TYPES[path.suffix.lower()]};base64,{data}")
