"""The pages of the workbench: rendered on the server; a key, a click and a plain form all send the same request.

========================  ==========================================================================================
``GET /?token=...``       exchanges the token for a cookie
``GET /``                 what is to be done now: the next item, a pause, the end
``GET /item/N``           an item that is asked now, to look at it again
``GET /start``            what is asked, how many items, which keys
``GET /file/N/I``         a file that it shows: an image, a sound, a film, a PDF
``GET /frame/N/I``        a text of it that is HTML or Markdown, cleaned, for a frame that runs nothing
``GET /claims``           what is proved so far
``GET /end``              what can be made of the answers
``POST /answer``          ``item``, ``choice``, ``seen``: keep an answer
``POST /undo``            ``item``: take the last answer back
``POST /go-on``           ``unsure``: the next round
``POST /make``            ``file``: write it
``GET /made/NAME``        a file that was made
========================  ==========================================================================================
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rarevote.errors import InputError
from rarevote.page.report import asset, page_style, template
from rarevote.workbench.guard import HOSTS, Guard, Headers
from rarevote.workbench.keys import CLAIMS_KEY, HELP_KEY, UNDO_KEY, UNSURE_KEY, ZOOM_KEY, class_keys
from rarevote.workbench.markup import FRAME_POLICY
from rarevote.workbench.media import MEDIA_TYPES
from rarevote.workbench.pace import pace_words, plan_words
from rarevote.workbench.session import UNSURE, OvertakenError, ReviewSession

# Our forms have four short fields.
_MAX_BODY = 4096
_SAID_NO = "This page needs its token. Open the whole address that the command printed."
# The report has its own policy; here it is only allowed to run in isolation from our pages.
_REPORT_POLICY = "sandbox allow-scripts allow-downloads"


Form = dict[str, str]
Endpoint = Callable[[Request], Awaitable[Response]]


class Pages:
    """Answers requests about one session. Requests are processed one at a time."""

    def __init__(self, session: ReviewSession, guard: Guard) -> None:
        self._session, self._guard = session, guard
        self._templates = {
            name: template("rarevote.workbench", f"{name}.html.j2")
            for name in ("start", "item", "pause", "end", "claims", "word")
        }
        self._style = f"{page_style()}\n{asset('rarevote.workbench', 'workbench.css')}"
        self._script = asset("rarevote.workbench", "workbench.js")

    # ----------------------------------------------------------------------------------------------------------------
    # looking

    async def now(self, request: Request) -> Response:
        """The next page: an item, a pause, or the end."""
        if "token" in request.query_params:
            return self._welcome(request)
        self._check_cookie(request)
        return self._current()

    def _welcome(self, request: Request) -> Response:
        if not self._guard.lets_in(request):
            raise HTTPException(403, _SAID_NO)
        # Not a redirect: a browser that came from another site would not send a strict cookie with it.
        response = self._word("Welcome", "One moment.", forward="/start")
        self._guard.give_cookie(request, response)
        return response

    def _current(self, *, note: str = "", status: int = 200, item: int | None = None) -> Response:
        session = self._session
        number = item if item is not None else session.next_open()
        if number is not None:
            return self._item(number, note=note, status=status)
        return self._end(note=note, status=status) if session.is_over else self._pause(note=note, status=status)

    def start(self, _: Request) -> Response:
        """The start page: the question, the number of items, the keys."""
        session = self._session
        keys = list(zip(session.choices, class_keys(session.choices), strict=True))
        return self._page("start", plan=plan_words(session.progress, session.noun), class_keys=keys)

    def item(self, request: Request) -> Response:
        """The page of a current item."""
        number = request.path_params["number"]
        if not self._session.asks(number):
            return self._current(note="This item is no longer open; its answer is final.", status=404)
        return self._item(number)

    def _item(self, number: int, *, note: str = "", status: int = 200) -> Response:
        session = self._session
        first, total = session.first, len(session.tasks)
        standing = session.choice_at(number)
        return self._page(
            "item",
            status=status,
            note=note,
            number=number,
            place=number - first + 1,
            view=session.view(number),
            choices=list(enumerate(zip(session.choices, class_keys(session.choices), strict=True))),
            standing=standing,
            seen=_sent(standing),
            fixed=session.is_fixed(number),
            back=number - 1 if number > first else None,
            forward=number + 1 if number + 1 < first + total and standing is not None else None,
        )

    def _pause(self, *, note: str = "", status: int = 200) -> Response:
        return self._page("pause", status=status, note=note, unsure=self._session.next_unsure())

    def _end(self, *, note: str = "", status: int = 200) -> Response:
        session = self._session
        return self._page(
            "end",
            status=status,
            note=note,
            over=session.is_over,
            claims=session.claims(),
            files=session.files,
            unsure=session.next_unsure(),
            unanswered=sum(said is None for said in session.said),
        )

    def end(self, _: Request) -> Response:
        """The page of the files that can be created."""
        return self._end()

    def claims(self, _: Request) -> Response:
        """The page of what is proved so far."""
        claims = self._session.claims()
        if claims is None:
            raise HTTPException(404, "A review list has no proof to show; only an audit has.")
        return self._page("claims", claims=claims)

    def file(self, request: Request) -> Response:
        """A file of a current item."""
        path = self._session.file(request.path_params["number"], request.path_params["column"])
        if path is None:
            raise HTTPException(404, "There is no such file.")
        return FileResponse(path, media_type=MEDIA_TYPES[path.suffix.lower()])

    def frame(self, request: Request) -> Response:
        """A text of a current item, for a frame."""
        page = self._session.frame(request.path_params["number"], request.path_params["column"])
        if page is None:
            raise HTTPException(404, "There is no such text.")
        headers = {"content-security-policy": FRAME_POLICY, "x-frame-options": "SAMEORIGIN"}
        return HTMLResponse(page, headers=headers)

    def made(self, request: Request) -> Response:
        """A file that was created."""
        made = self._session.files.get(request.path_params["name"])
        if made is None or not made.path.is_file():
            raise HTTPException(404, "There is no such file.")
        if made.path.suffix == ".html":
            return FileResponse(made.path, headers={"content-security-policy": _REPORT_POLICY})
        return FileResponse(made.path, media_type="application/octet-stream", filename=made.path.name)

    async def style(self, _: Request) -> Response:
        """The style sheet."""
        return PlainTextResponse(self._style, media_type="text/css")

    async def script(self, _: Request) -> Response:
        """The script."""
        return PlainTextResponse(self._script, media_type="text/javascript")

    # ----------------------------------------------------------------------------------------------------------------
    # saying something

    def answer(self, form: Form) -> Response:
        """Store an answer, then show the next page."""
        number, choice = _whole(form, "item"), _choice(form, "choice", len(self._session.labels))
        if choice is None:
            raise HTTPException(400, "No class was chosen.")
        seen = _choice(form, "seen", len(self._session.labels))
        self._session.answer(number, choice, seen=seen)
        # An expert who goes through the unsure items continues with these.
        following = self._session.next_unsure(number) if seen == UNSURE else None
        return RedirectResponse("/" if following is None else f"/item/{following}", 303)

    def undo(self, form: Form) -> Response:
        """Withdraw the last answer, and show its item."""
        number = _whole(form, "item")
        self._session.undo(number)
        return RedirectResponse(f"/item/{number}", 303)

    def resume(self, form: Form) -> Response:
        """The next round."""
        self._session.resume(worst_case=form.get("unsure") == "worst-case")
        return RedirectResponse("/", 303)

    def make(self, form: Form) -> Response:
        """Write a file, then send it."""
        name = form.get("file", "")
        if name not in self._session.files:
            raise HTTPException(400, "There is no such file.")
        try:
            self._session.make(name)
        except InputError as error:
            return self._end(note=f"Not written: {error}", status=503)
        return RedirectResponse(f"/made/{name}", 303)

    # ----------------------------------------------------------------------------------------------------------------
    # access to pages

    def behind_cookie(self, page: Callable[[Request], Response]) -> Endpoint:
        """A page for a browser that has the cookie."""

        async def answered(request: Request) -> Response:
            self._check_cookie(request)
            return page(request)

        return answered

    def _check_cookie(self, request: Request) -> None:
        if not self._guard.knows(request):
            raise HTTPException(403, _SAID_NO)

    def behind_form(self, action: Callable[[Form], Response]) -> Endpoint:
        """An action for a form from one of our pages; if it fails, the item is shown again."""

        async def answered(request: Request) -> Response:
            form = await self._form(request)
            try:
                return action(form)
            except OvertakenError as error:
                note, status = str(error), 409
            except InputError as error:
                # The same item again: the next one is shown only after the answer is stored.
                note, status = f"Not saved: {error}. Fix this, then choose again.", 503
            number = _whole(form, "item") if "item" in form else 0
            return self._current(note=note, status=status, item=number if self._session.asks(number) else None)

        return answered

    async def _form(self, request: Request) -> Form:
        """The fields of a form from one of our pages."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise HTTPException(415, "This address accepts only forms.")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_BODY:
                raise HTTPException(413, "The form is too long.")
        try:
            fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=8)
        except ValueError:
            raise HTTPException(400, "This form is not from the current page. Reload the page.") from None
        form = {name: values[-1] for name, values in fields.items()}
        if not self._guard.trusts(request, form.get("token", "")):
            raise HTTPException(403, _SAID_NO)
        return form

    def _page(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        session = self._session
        last = session.last
        text = self._templates[name].render(
            about=session.about,
            noun=session.noun,
            token=self._guard.page_token,
            proves=session.proves,
            progress=session.progress,
            pace=pace_words(session.progress),
            question=session.question,
            definitions=session.definitions,
            command=shlex.join(session.command),
            first=session.first,
            last=None if last is None else (last, session.task_of(last), session.name_of(session.choice_at(last))),
            keys={"unsure": UNSURE_KEY, "undo": UNDO_KEY, "claims": CLAIMS_KEY, "help": HELP_KEY, "zoom": ZOOM_KEY},
            **values,
        )
        return HTMLResponse(text, status)

    def _word(self, title: str, words: str, *, status: int = 200, forward: str | None = None) -> HTMLResponse:
        return HTMLResponse(self._templates["word"].render(title=title, words=words, forward=forward), status)

    async def refuse(self, _: Request, error: Exception) -> Response:
        """A page that says why a request is refused."""
        assert isinstance(error, HTTPException)
        return self._word("Not available", str(error.detail), status=error.status_code)

    async def fail(self, _: Request, error: Exception) -> Response:
        """A page for an unexpected error; saved answers stay saved."""
        words = f"Unexpected {type(error).__name__}: {error}. This is a bug in rarevote; please report it."
        return self._word("Something went wrong", words, status=500)


def build_app(session: ReviewSession, guard: Guard) -> Starlette:
    """The application."""
    pages = Pages(session, guard)
    anybody = {"/": pages.now, "/style.css": pages.style, "/script.js": pages.script}
    looking = {
        "/item/{number:int}": pages.item,
        "/start": pages.start,
        "/file/{number:int}/{column:int}": pages.file,
        "/frame/{number:int}/{column:int}": pages.frame,
        "/claims": pages.claims,
        "/end": pages.end,
        "/made/{name}": pages.made,
    }
    saying = {"/answer": pages.answer, "/undo": pages.undo, "/go-on": pages.resume, "/make": pages.make}
    return Starlette(
        routes=[
            *(Route(path, page, methods=["GET"]) for path, page in anybody.items()),
            *(Route(path, pages.behind_cookie(page), methods=["GET"]) for path, page in looking.items()),
            *(Route(path, pages.behind_form(action), methods=["POST"]) for path, action in saying.items()),
        ],
        middleware=[
            Middleware(Headers, hosts=session.content.media.hosts),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS)),
        ],
        exception_handlers={HTTPException: pages.refuse, Exception: pages.fail},
    )


def _sent(choice: int | None) -> str:
    return "" if choice is None else "unsure" if choice == UNSURE else str(choice)


def _choice(form: Form, name: str, n: int) -> int | None:
    text = form.get(name, "")
    if not text:
        return None
    if text == "unsure":
        return UNSURE
    choice = _whole(form, name)
    if choice >= n:
        raise HTTPException(400, "There is no such class.")
    return choice


def _whole(form: Form, name: str) -> int:
    text = form.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise HTTPException(400, "This form is not from the current page. Reload the page.")
    return int(text)
