"""A Label Studio server: its projects, read and written through its API.

Tokens are of two kinds. A personal access token is a JWT, exchanged at ``/api/token/refresh/`` for a key that lasts
five minutes; a legacy token is sent in the header unchanged. Both come from ``LABEL_STUDIO_API_KEY``.

Our data on the server are marked: predictions have the model version "rarevote", and the ``meta``
of a task lists our columns in its data: other columns are never overwritten, and ours are not shown to an expert.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError, shown
from rarevote.io.live.connection import Connection, Secret, ServerError, UnsureError
from rarevote.io.platforms.base import MODEL_NAME
from rarevote.io.platforms.label_studio import OWN_COLUMNS, own_columns
from rarevote.io.platforms.write_back import TASK_KEY

TITLE = "Label Studio"
TOKEN_VARIABLE = "LABEL_STUDIO_API_KEY"
BATCH = 500  # predictions or tasks in one request
PAGE = 100  # tasks of one answer
_LIFE = 240.0  # seconds that a key is used; it is valid for 300
_FEW = {"fields": "task_only", "include": "id,data,meta"}  # what the server gathers four times as fast
_TRIES = 3  # tries of a whole push, if it is not known which requests succeeded

#: a caution for annotators who see our labels before they answer
PRELABELLED = (
    f"the project shows predictions of {MODEL_NAME} to annotators before they answer: votes that start from this label "
    "are not independent. Choose another model, or none, in the project's settings (Annotation)"
)

Record = dict[str, Any]


def token_from_environment() -> Secret | None:
    """The token from the environment, or None."""
    text = os.environ.get(TOKEN_VARIABLE, "").strip()
    return Secret(text) if text else None


class Token:
    """A token of Label Studio, personal or legacy.

    Args:
        secret: the token.
        clock: returns the time in seconds.
    """

    def __init__(self, secret: Secret, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._secret, self._clock = secret, clock
        self._keys: list[Secret] = []  # the last is in use
        self._until = 0.0

    @property
    def is_personal(self) -> bool:
        """Whether it is a JWT, which is exchanged for a key."""
        return _is_jwt(self._secret.text)

    def header(self, connection: Connection, *, fresh: bool) -> str:
        """The value of ``Authorization``."""
        if not self.is_personal:
            return f"Token {self._secret.text}"
        if not self._keys or fresh or self._clock() > self._until:
            self._keys.append(self._exchanged(connection))
            self._until = self._clock() + _LIFE
        return f"Bearer {self._keys[-1].text}"

    def secrets(self) -> list[str]:
        """Every text that must not be shown."""
        return [self._secret.text, *(key.text for key in self._keys)]

    def _exchanged(self, connection: Connection) -> Secret:
        try:
            answer = connection.request(
                "POST", "/api/token/refresh/", body={"refresh": self._secret.text}, signed=False
            )
        except ServerError as error:
            if error.status in (400, 401):
                raise ServerError(
                    f"{connection.url}: the personal access token is not valid, or was revoked. Create a new one in "
                    f"{TITLE} (Account & Settings, Personal Access Token) and set it in {TOKEN_VARIABLE}",
                    401,
                ) from None
            raise
        key = answer.get("access") if isinstance(answer, dict) else None
        if not isinstance(key, str):
            raise ServerError(f"{connection.url}: gave no key for the personal access token; check that it is {TITLE}")
        return Secret(key)


def _is_jwt(text: str) -> bool:
    head, *rest = text.split(".")
    if len(rest) != 2:
        return False
    try:
        return isinstance(json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))), dict)
    except (ValueError, binascii.Error):
        return False


@dataclass(frozen=True)
class Pushed:
    """The result of a push.

    Attributes:
        predictions: number of tasks that now have our prediction.
        deleted: number of removed predictions of an earlier push.
        gone: number of labels whose tasks are no longer in the project.
        patched: number of tasks whose column changed.
    """

    predictions: int
    deleted: int = 0
    gone: int = 0
    patched: int = 0


class Project:
    """One project on a server.

    Args:
        url: the address of the server: https, or http on this machine.
        number: number of the project, as in the address of its page.
        token: a personal access token or a legacy one; by default, that of ``LABEL_STUDIO_API_KEY``.

    Raises:
        ParameterError: there is no token, or a token must not be sent to this address.
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, url: str, number: int, *, token: str | Secret | None = None) -> None:
        secret = Secret(token) if isinstance(token, str) else token or token_from_environment()
        if secret is None:
            raise ParameterError(f"no token: set the environment variable {TOKEN_VARIABLE}")
        self.number = number
        self._token = Token(secret)
        self._server = Connection(url, self._token, title=TITLE)
        self._info: Record | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._server.url

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"project {self.number} at {self.url}"

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ----------------------------------------------------------------------------------------------------------------
    # reading

    @property
    def info(self) -> Record:
        """The settings of the project, as the server has them.

        Raises:
            ServerError: there is no such project, or the token does not give access to it.
        """
        if self._info is None:
            try:
                found = self._server.request("GET", f"/api/projects/{self.number}/")
            except ServerError as error:
                if error.status == 404:
                    raise ServerError(
                        f"{self.url}: there is no project {self.number}, or the token's owner is not a member of it; "
                        "the number is in the address of the project's page (/projects/NUMBER/data)",
                        404,
                    ) from None
                if error.status == 401:
                    raise self._refused_token(error) from None
                raise
            if not isinstance(found, dict) or found.get("id") != self.number:
                raise ServerError(f"{self.url}: does not respond like {TITLE}; check the address")
            self._info = found
        return self._info

    def people(self) -> dict[int, str]:
        """E-mail addresses of the users, by number; only users that the server shows to the token's owner."""
        try:
            users = self._server.request("GET", "/api/users/")
        except ServerError as error:
            if error.status in (403, 404):
                return {}  # they stay numbers
            raise
        found = {}
        for user in users if isinstance(users, list) else []:
            if isinstance(user, dict) and isinstance(user.get("id"), int):
                name = user.get("email") or user.get("username")
                if isinstance(name, str) and name.strip():
                    found[user["id"]] = name
        return found

    def counts(self) -> tuple[int, int]:
        """Number of tasks, and of annotations that were not cancelled."""
        page = self._page({"page_size": 1, **_FEW, "include": "id"})
        return _count(page, "total"), _count(page, "total_annotations")

    def tasks(self, *, since: str | None = None, whole: bool = True) -> Iterator[Record]:
        """All tasks in the order of their numbers, or only those that changed.

        Args:
            since: a time in the server's format; only tasks changed after it.
            whole: whether to include annotations; if not, only number, data and meta.
        """
        changed = [] if since is None else [_above("updated_at", "Datetime", since)]
        # The data as imported: storage addresses are not resolved for a browser.
        params = {**({"fields": "all"} if whole else _FEW), "resolve_uri": "false", "page_size": PAGE}
        last = 0
        while True:
            # By number and not by page: a task that is deleted meanwhile would push another one to the page before.
            items = [_above("id", "Number", last), *changed]
            query = {"ordering": ["tasks:id"], "filters": {"conjunction": "and", "items": items}}
            found = self._page({**params, "query": json.dumps(query)})["tasks"]
            for task in found:
                number = task.get("id") if isinstance(task, dict) else None
                if not isinstance(number, int) or number <= last or not isinstance(task.get("data"), dict):
                    raise ServerError(f"{self.url}: lists tasks that cannot be used; check that it is {TITLE}")
                last = number
                yield task
            if len(found) < PAGE:
                return

    def created_at(self, task: int) -> str | None:
        """When a task was created; None if the project has no such task."""
        found = self._server.request("GET", f"/api/tasks/{task}/", params={"resolve_uri": "false"}, expected=(404,))
        if isinstance(found, tuple) or not isinstance(found, dict) or found.get("project") != self.number:
            return None
        return str(found.get("created_at"))

    # ----------------------------------------------------------------------------------------------------------------
    # writing

    def push(
        self,
        predictions: Sequence[Record],
        *,
        column: tuple[str, Mapping[int, float]] | None = None,
        progress: Callable[[int], None] = lambda _done: None,
    ) -> Pushed:
        """Add predictions to the tasks, replacing those of an earlier push.

        An interrupted push leaves a part of them; the next push removes them first.

        Args:
            predictions: ``{"task": number, "result": [...], "score": p}`` each.
            column: a name and numbers by task: a column for the tasks' data.
            progress: called with the number of predictions so far.

        Raises:
            InputError: the data have another column with this name; nothing was changed.
        """
        existing = {int(task["id"]): task for task in self.tasks(whole=False)}
        kept = [one for one in predictions if one["task"] in existing]
        if column is not None:
            self._check_column(column[0], existing.values())
        deleted = self._replace(kept, progress)
        patched = 0 if column is None else self._patch(*column, existing)
        return Pushed(len(kept), deleted, len(predictions) - len(kept), patched)

    def shows_predictions(self) -> bool:
        """Whether annotators see our prediction when they start."""
        return bool(self.info.get("show_collab_predictions")) and self.info.get("model_version") == MODEL_NAME

    def n_predictions(self) -> int:
        """Number of our predictions in the project."""
        found = self._server.request("GET", f"/api/projects/{self.number}/model-versions/")
        count = found.get(MODEL_NAME, 0) if isinstance(found, dict) else 0
        return count if isinstance(count, int) else 0

    def add_tasks(self, records: Sequence[Record]) -> int:
        """Import tasks that the project does not have yet, by ``data.task``; returns the number of added tasks.

        If it is not known whether a request succeeded, it is not repeated: the project is read
        again.
        """
        wanted = {str(record["data"][TASK_KEY]): record for record in records}
        added: set[str] = set()
        for _ in range(_TRIES):
            there = {str(task["data"].get(TASK_KEY)) for task in self.tasks(whole=False)}
            missing = [name for name in wanted if name not in there]
            added.update(missing)
            if not missing:
                return len(added)
            try:
                for batch in _batches([wanted[name] for name in missing]):
                    self._server.request("POST", f"/api/projects/{self.number}/import", body=batch, once=True)
                return len(added)
            except UnsureError:
                continue
        raise UnsureError(f"{self.title}: tasks could not be imported, after {_TRIES} tries; the same command resumes")

    # ----------------------------------------------------------------------------------------------------------------
    # inside

    def _page(self, params: Mapping[str, Any]) -> Record:
        page = self._server.request("GET", "/api/tasks/", params={"project": self.number, **params})
        if not isinstance(page, dict) or not isinstance(page.get("tasks"), list):
            raise ServerError(f"{self.url}: does not list tasks like {TITLE}; check the address")
        return page

    def _replace(self, predictions: Sequence[Record], progress: Callable[[int], None]) -> int:
        """Remove our predictions, import these, and check their number on the server; returns how many were removed."""
        place, deleted = f"/api/projects/{self.number}", None
        for _ in range(_TRIES):
            answer = self._server.request("DELETE", f"{place}/model-versions/", body={"model_version": MODEL_NAME})
            if deleted is None:
                deleted = _deleted(answer)
            try:
                done = 0
                for batch in _batches(predictions):
                    body = [{**one, "model_version": MODEL_NAME} for one in batch]
                    answer = self._server.request("POST", f"{place}/import/predictions", body=body, once=True)
                    self._check_taken(answer, batch)
                    done += len(batch)
                    progress(done)
            except UnsureError:
                continue
            if self.n_predictions() == len(predictions):
                return deleted
        raise UnsureError(
            f"{self.title}: predictions could not be imported whole, after {_TRIES} tries; the same command resumes"
        )

    def _check_taken(self, answer: Any, batch: Sequence[Record]) -> None:
        """Check the number of predictions: the server drops those that do not match the labelling interface."""
        taken = answer.get("created") if isinstance(answer, dict) else None
        if taken != len(batch):
            question = next((entry["from_name"] for one in batch for entry in one["result"]), None)
            raise ServerError(
                f"{self.title}: accepted {taken} of {len(batch)} predictions. Check that its labelling interface "
                f"still asks {shown(question)} with these choices, then pull, aggregate and push again"
            )

    def _check_column(self, name: str, tasks: Iterable[Record]) -> None:
        for task in tasks:
            if name in task["data"] and name not in own_columns(task):
                raise InputError(
                    f"{self.title}: its data already have a column {shown(name)} that rarevote did not write (task "
                    f"{task['id']}); choose another name: --column p_CLASS=NAME"
                )

    def _patch(self, name: str, values: Mapping[int, float], tasks: Mapping[int, Record]) -> int:
        patched = 0
        for number, value in values.items():
            task = tasks.get(number)
            if task is None or task["data"].get(name) == value:
                continue
            meta = task.get("meta") if isinstance(task.get("meta"), dict) else {}
            ours = sorted({*own_columns(task), name})
            body = {"data": {**task["data"], name: value}, "meta": {**(meta or {}), OWN_COLUMNS: ours}}
            self._server.request("PATCH", f"/api/tasks/{number}/", body=body)
            patched += 1
        return patched

    def _refused_token(self, error: ServerError) -> ServerError:
        if self._token.is_personal:
            return error
        return ServerError(
            f"{self.url}: the legacy token is rejected. Such tokens are off by default: create a "
            f"personal access token (Account & Settings) and set it in {TOKEN_VARIABLE}, or ask the owner of the "
            "organization to allow legacy tokens",
            401,
        )


def _above(column: str, kind: str, value: Any) -> Record:
    """A filter of the data manager."""
    return {"filter": f"filter:tasks:{column}", "operator": "greater", "type": kind, "value": value}


def _batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    for begin in range(0, len(records), BATCH):
        yield records[begin : begin + BATCH]


def _count(page: Record, key: str) -> int:
    count = page.get(key)
    return count if isinstance(count, int) else 0


def _deleted(answer: Any) -> int:
    count = answer.get("deleted_predictions", 0) if isinstance(answer, dict) else 0
    return count if isinstance(count, int) else 0


def pushed_words(done: Pushed, project: Project) -> str:
    """The result of a push as a sentence."""
    parts = [f"{counted(done.predictions, 'prediction')} of {MODEL_NAME} in {project.title}"]
    if done.deleted:
        parts.append(f"{done.deleted:,} of an earlier push replaced")
    if done.gone:
        parts.append(f"{counted(done.gone, 'label')} skipped, because the project no longer has their tasks")
    if done.patched:
        parts.append(f"the column of {counted(done.patched, 'task')} changed")
    return "; ".join(parts)
