"""What goes wrong between us and a server is said in words, bounded, and never shows the token."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from rarevote.cli.options.live import ServerOptions
from rarevote.errors import ParameterError
from rarevote.io.live import connection
from rarevote.io.live.connection import Secret, ServerDownError, ServerError, UnsureError, check_url
from rarevote.io.live.label_studio import Project
from tests.command import rarevote
from tests.io.live.conftest import LEGACY, PERSONAL, Site
from tests.io.live.fake import ECHO, Trouble

PLACE = "/api/projects/1/"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://labels.example.org", "must be https"),
        ("http://127.0.0.1.example.org", "must be https"),
        ("http://10.0.0.7:8080", "must be https"),
        ("ftp://labels.example.org", "not the address of a server"),
        ("labels.example.org", "not the address of a server"),
        ("https://ann:secret@labels.example.org", "remove them"),
        ("https://labels.example.org/?token=x", "not the address of a server"),
        ("http://[::1", "not an address"),
        ("https://labels.example.org:port", "not an address"),
    ],
)
def test_an_address_that_no_token_is_sent_to(url: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said) as caught:
        check_url(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://labels.example.org/tool/", "http://localhost:8080", "http://[::1]:8080"])
def test_an_address_that_is_one(url: str) -> None:
    assert check_url(url) == url.rstrip("/")


def test_a_busy_server_is_asked_again(site: Site) -> None:
    site.fake.troubles = [Trouble("GET", PLACE, 429, headers={"Retry-After": "0"}), Trouble("GET", PLACE, 503)]
    assert site.open(1).info["id"] == 1
    assert site.fake.requests.count(("GET", PLACE)) == 3


def test_how_long_a_server_asks_to_wait_is_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("rarevote.io.live.connection.time.sleep", waited.append)
    site.fake.troubles = [
        Trouble("GET", PLACE, 429, headers={"Retry-After": "86400"}),
        Trouble("GET", PLACE, 500, headers={"Retry-After": "Wed, 18 Nov 2026 07:28:00 GMT"}),
    ]
    assert site.open(1).info["id"] == 1
    assert waited == [60.0, 0.001]


def test_a_server_that_stays_busy_is_down(site: Site) -> None:
    site.fake.troubles = [Trouble("GET", PLACE, 502, times=9)]
    with pytest.raises(ServerDownError, match=r"cannot be reached \(it answers 502\), after 3 tries"):
        site.open(1).info  # noqa: B018


def test_a_cut_connection_is_made_again(site: Site) -> None:
    site.fake.troubles = [Trouble("GET", PLACE, None, times=2)]
    assert site.open(1).info["id"] == 1


def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_WAITS", (0.001,))
    wrong = pytest.raises(ServerDownError, match=r"Check that it is running and that the address is right")
    with wrong, Project("http://127.0.0.1:9", 1, token=LEGACY) as project:
        project.info  # noqa: B018


def test_a_redirect_to_another_host_is_refused(site: Site) -> None:
    for target in ("https://evil.example.org/api/projects/1/", f"https{site.url[4:]}{PLACE}", "//evil.example.org/x"):
        site.fake.troubles = [Trouble("GET", PLACE, 302, headers={"Location": target})]
        with pytest.raises(ServerError, match=r"another server; the token is not sent there"):
            site.open(1).info  # noqa: B018


def test_a_redirect_to_the_same_host_is_followed_unless_in_a_circle(site: Site) -> None:
    site.fake.troubles = [Trouble("GET", PLACE, 301, headers={"Location": PLACE})]
    assert site.open(1).info["id"] == 1
    site.fake.troubles = [Trouble("GET", PLACE, 301, headers={"Location": PLACE}, times=99)]
    with pytest.raises(ServerError, match="in a loop"):
        site.open(1).info  # noqa: B018


def test_a_redirected_change_is_not_made(site: Site) -> None:
    place = "/api/projects/1/model-versions/"
    site.fake.troubles = [Trouble("DELETE", place, 301, headers={"Location": place})]
    with pytest.raises(ServerError, match="was to be changed"):
        site.open(1).push([])


def test_an_answer_that_is_too_large_is_not_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_ANSWER", 1000)
    with pytest.raises(ServerError, match="larger than"):
        site.open(1).info  # noqa: B018


def test_an_answer_that_never_ends_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_WHOLE", -1.0)
    with pytest.raises(ServerDownError, match="does not respond in time"):
        site.open(1).info  # noqa: B018


def test_a_page_for_people_is_not_the_api(site: Site) -> None:
    site.fake.troubles = [Trouble("GET", PLACE, 200, b"<html>Log in</html>")]
    with pytest.raises(ServerError, match="does not respond with JSON; check that it is the address of Label Studio"):
        site.open(1).info  # noqa: B018
    site.fake.troubles = [Trouble("GET", PLACE, 200, {"id": 7})]
    with pytest.raises(ServerError, match="does not respond like Label Studio"):
        site.open(1).info  # noqa: B018


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (LEGACY, "the legacy token is rejected"),
        (PERSONAL.replace("cGVy", "cGVx"), "not valid, or was revoked"),
    ],
)
def test_a_refused_token(site: Site, token: str, said: str) -> None:
    with pytest.raises(ServerError, match=said) as caught:
        site.open(1, token=token).info  # noqa: B018
    assert caught.value.status == 401
    assert "LABEL_STUDIO_API_KEY" in str(caught.value)


def test_what_is_forbidden_or_not_there(site: Site) -> None:
    site.fake.troubles = [Trouble("GET", PLACE, 403, {"detail": "You do not have permission"})]
    with pytest.raises(ServerError, match=r"does not allow this .*You do not have permission"):
        site.open(1).info  # noqa: B018
    with pytest.raises(ServerError, match=r"there is no project 9, .*the number is in the address"):
        site.open(9).info  # noqa: B018


def test_a_key_is_exchanged_once_and_again_when_it_is_refused(site: Site) -> None:
    project, place = site.open(1), ("POST", "/api/token/refresh/")
    list(project.tasks())
    assert site.fake.requests.count(place) == 1
    site.fake.keys.clear()  # as after five minutes
    list(project.tasks())
    assert site.fake.requests.count(place) == 2


def test_a_legacy_token_goes_as_it_is(site: Site) -> None:
    site.fake.allows_legacy = True
    assert site.open(1, token=LEGACY).info["id"] == 1
    assert ("POST", "/api/token/refresh/") not in site.fake.requests


def test_what_must_be_asked_once_is_not_asked_twice(site: Site) -> None:
    server = site.open(1)._server
    for status in (None, 500):
        site.fake.requests.clear()
        site.fake.troubles = [Trouble("POST", "/api/projects/1/import", status)]
        with pytest.raises(UnsureError):
            server.request("POST", "/api/projects/1/import", body=[{"data": {"task": "1"}}], once=True)
        assert site.fake.requests.count(("POST", "/api/projects/1/import")) == 1
    site.fake.troubles = [Trouble("POST", "/api/projects/1/import", 429)]  # which says that it was not followed
    server.request("POST", "/api/projects/1/import", body=[{"data": {"task": "1", "text": ""}}], once=True)


@pytest.mark.parametrize("text", ["", "  ", "two words", "ünïcode", "a\x00b"])
def test_no_token(text: str) -> None:
    with pytest.raises(ParameterError, match="the token is empty or has invalid characters"):
        Secret(text)


def test_a_token_is_in_no_output_log_file_or_title(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the server itself says it, and with everything logged that there is to log."""
    caplog.set_level(logging.DEBUG)
    said = []
    for token in (PERSONAL, LEGACY):
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", token)
        for status in (400, 401, 403, 404, 500, 302):
            headers = {"Location": "https://evil.example.org/"} if status == 302 else {}
            site.fake.troubles = [Trouble("GET", PLACE, status, ECHO, headers, times=9)]
            done = rarevote("pull", "label-studio", "--project", "1", "--out", "export.json", folder=tmp_path, code=1)
            said.append(done.stdout + done.stderr)
    site.fake.troubles, site.fake.allows_legacy = [], True
    done = rarevote("pull", "label-studio", "--project", "1", "--out", "export.json", folder=tmp_path)
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    log = caplog.text
    everything = "\n".join([*said, done.stderr, *texts, log])
    assert "[hidden]" in everything  # the server did say it
    assert "HTTP Request" in log  # and the library did log
    assert site.fake.keys
    for secret in (PERSONAL, LEGACY, *site.fake.keys):
        assert secret not in everything
    assert repr(Secret(PERSONAL)) == "[hidden]"


@pytest.mark.parametrize("verb", [["pull", "label-studio"], ["push", "label-studio"], ["watch"]])
def test_no_option_takes_a_token(verb: list[str]) -> None:
    assert "--token" not in rarevote(*verb, "--help").stdout
    assert "No such option" in rarevote(*verb, "--token", PERSONAL, code=2).stderr


def test_a_terminal_asks_for_the_token_and_does_not_show_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def prompt(_text: str, **options: object) -> str:
        asked.append(options)
        return PERSONAL

    monkeypatch.setattr("rarevote.cli.options.live.click.prompt", prompt)
    monkeypatch.setattr("rarevote.cli.options.live.sys.stdin", SimpleNamespace(isatty=lambda: True))
    with ServerOptions(site.url, 1).open() as project:
        assert project.info["id"] == 1
    assert asked == []  # the environment has it
    monkeypatch.delenv("LABEL_STUDIO_API_KEY")
    with ServerOptions(site.url, 1).open() as project:
        assert project.info["id"] == 1
    assert asked == [{"hide_input": True, "err": True}]
