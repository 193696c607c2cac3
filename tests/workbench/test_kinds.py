"""Every kind of item: found from what a column holds, or named, and shown so that nothing in it runs."""

from __future__ import annotations

import base64
import csv
import wave
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rarevote.errors import ParameterError
from rarevote.workbench.kinds import markup_of, parse_kinds
from rarevote.workbench.markup import safe_html
from rarevote.workbench.media import Media
from tests.workbench.benches import Bench, list_session
from tests.workbench.test_browser import expert_at, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = [
    "<script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    '<svg onload="document.title=\'ran\'"><a xlink:href="javascript:document.title=1">x</a></svg>',
    "<a href=\"javascript:document.title='ran'\">click</a>",
    '<iframe srcdoc="<script>parent.document.title=1</script>"></iframe>',
    '<style>@import "https://evil.example/x.css"; body{background:url(https://evil.example/a.png)}</style>',
    '<form action="https://evil.example"><button formaction="javascript:alert(1)">go</button></form>',
    '<object data="x.pdf"></object><embed src="x.swf"><link rel=stylesheet href=x><meta http-equiv=refresh content=0>',
    "<base href='https://evil.example/'><p style='position:fixed'>text</p>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
]
DANGEROUS = ("<script", "<img", "<svg", "<iframe", "<style", "<form", "<object", "<embed", "<link", "<meta", "<base",
             "onerror", "onload", "javascript:", "href", "src=", "style=")  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", ["html", "markdown"])
def test_nothing_that_loads_or_runs_is_left(text: str, kind: str) -> None:
    cleaned = safe_html(f"before {text} after [x](javascript:alert(1)) ![y](https://evil.example/a.png)", kind)
    markup = cleaned.lower().replace("&lt;", "").replace("&quot;", "")
    tags = "".join(part.partition(">")[0] for part in markup.split("<")[1:])
    assert not [sign for sign in DANGEROUS if sign.strip("<=:") in tags.split() or sign in f"<{tags}"]


def test_markup_stays_readable() -> None:
    assert safe_html("<h2>Title</h2><ul><li>one</li></ul>", "html") == "<h2>Title</h2><ul><li>one</li></ul>"
    table = safe_html("| a | b |\n| - | - |\n| 1 | 2 |", "markdown")
    assert "<td>1</td>" in table


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["<p>One.</p>", "<div>Two.</div>", "plain"], "html"),
        (["# Title\n\ntext", "**bold** word", "- one\n- two"], "markdown"),
        (["if a < b and c > d", "x <- 3", "<3"], "text"),
        (["5 * 3 * 2", "a_b_c", "# of items"], "text"),
        (["", " "], "text"),
        (["<p>One.</p>", "plain", "plain"], "text"),
    ],
)
def test_the_kind_that_a_column_looks_like(texts: list[str], kind: str) -> None:
    assert markup_of(texts) == kind


@pytest.mark.parametrize("given", ["body", "body=film", "=html", "absent=html"])
def test_kinds_that_cannot_be(given: str) -> None:
    with pytest.raises(ParameterError, match="--show-as"):
        parse_kinds([given], ["body"])


def write_list(folder: Path, **columns: list[str]) -> Path:
    path = folder / "list.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        rows = zip(*columns.values(), strict=True)
        csv.writer(handle).writerows([["task", *columns], *([f"t{i}", *row] for i, row in enumerate(rows))])
    return path


def write_sound(path: Path) -> None:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(8000))


def test_fields_and_their_kinds(tmp_path: Path) -> None:
    write_sound(tmp_path / "a.wav")
    (tmp_path / "r.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    (tmp_path / "page.svg").write_text("<svg/>")
    path = write_list(
        tmp_path,
        sound=["a.wav", "absent.mp3"],
        report=["r.pdf", "page.svg"],
        link=["https://example.org/a?b=1&c=2", "javascript:alert(1)"],
        record=['{"track": 1, "km": "4 < 5"}', "[1, 2]"],
        body=["<p>One</p>", "<p>Two</p>"],
    )
    with list_session(path, classes=["x", "y"], media=Media([tmp_path])) as session:
        kinds = [[(field.kind, field.note is not None) for field in session.view(n).fields] for n in (1, 2)]
        bench = Bench(session)
        page, other = bench.get("/item/1"), bench.get("/item/2").text
        frame = bench.get("/frame/1/5")
        policy = page.headers["content-security-policy"]
        assert bench.get("/file/1/1").headers["content-type"] == "audio/wav"
        assert bench.get("/file/1/2").headers["content-type"] == "application/pdf"
        assert bench.get("/file/1/1", headers={"range": "bytes=0-3"}).content == b"RIFF"
        for absent in ("/file/2/2", "/frame/1/1", "/frame/1/9", "/frame/7/5", "/file/1/5"):
            assert bench.get(absent).status_code == 404
    assert kinds[0] == [("audio", False), ("pdf", False), ("link", False), ("table", False), ("html", False)]
    assert kinds[1] == [("text", True), ("text", False), ("text", False), ("text", False), ("html", False)]
    assert '<th scope="row">km</th><td>4 &lt; 5</td>' in page.text
    assert 'href="https://example.org/a?b=1&amp;c=2"' in page.text
    assert 'href="javascript' not in other
    assert "media-src 'self'; frame-src 'self'" in policy
    assert frame.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    assert "<p>One</p>" in frame.text


def test_a_column_is_shown_as_what_was_named(tmp_path: Path) -> None:
    path = write_list(tmp_path, body=["<p>One</p>", "<p>Two</p>"], note=["**a**", "b"])
    with list_session(path, classes=["x", "y"], show_as=["body=text", "note=markdown"]) as session:
        assert [field.kind for field in session.view(1).fields] == ["text", "markdown"]
        assert "&lt;p&gt;One&lt;/p&gt;" in Bench(session).get("/item/1").text


_FILM = """async () => {
  const canvas = document.createElement("canvas"), draw = canvas.getContext("2d"), parts = [];
  const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
  recorder.ondataavailable = (event) => parts.push(event.data);
  const ended = new Promise((resolve) => { recorder.onstop = resolve; });
  recorder.start();
  for (let i = 0; i < 8; i++) { draw.fillRect(i, i, 9, 9); await new Promise((resolve) => setTimeout(resolve, 50)); }
  recorder.stop();
  await ended;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
}"""


def test_sounds_and_films_play_and_nothing_hostile_runs(browser: Browser, tmp_path: Path) -> None:
    write_sound(tmp_path / "a.wav")
    page = browser.new_page()
    (tmp_path / "b.webm").write_bytes(base64.b64decode(page.evaluate(_FILM)))
    page.close()
    path = write_list(tmp_path, media=["a.wav", "b.webm", *["" for _ in HOSTILE]], body=["", "", *HOSTILE])
    with (
        list_session(path, classes=["x", "y"], media=Media([tmp_path]), show_as=["body=html"]) as session,
        serving(session) as address,
        expert_at(browser, address) as expert,
    ):
        for kind in ("audio", "video"):
            ready = """async (player) => { player.muted = true; await player.play(); return player.readyState; }"""
            assert expert.page.locator(kind).evaluate(ready) >= 2
            expert.press("x")
        for _ in HOSTILE:
            frame = expert.page.frame_locator("iframe.markup")
            frame.locator("body").wait_for(state="attached")
            assert (
                frame.locator("script, img, svg, iframe, form, object, embed, link, base, [href], [src]").count() == 0
            )
            title = expert.page.title()
            assert "ran" not in title
            expert.press("x")
        assert expert.said == []
        assert len(expert.asked) == 1  # nothing but the workbench was asked for anything
