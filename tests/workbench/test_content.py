"""Pictures come from the folders that were named, whatever ids, texts and links say."""

from __future__ import annotations

from pathlib import Path

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.workbench.media import Media
from tests.workbench.benches import Bench, list_session

PNG = bytes.fromhex("89504e470d0a1a0a")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of pictures with a secret beside it and ways out of it."""
    images = tmp_path / "images"
    (images / "deep").mkdir(parents=True)
    for path in (images / "a.png", images / "deep" / "b.JPG", tmp_path / "secret.png"):
        path.write_bytes(PNG + path.name.encode())
    (images / "text.txt").write_text("no picture")
    (images / "out.png").symlink_to(tmp_path / "secret.png")
    (images / "way").symlink_to(tmp_path)
    (images / "inside.png").symlink_to(images / "a.png")
    (images / "hidden.png").symlink_to(images / "text.txt")
    (images / "round.png").symlink_to(images / "round.png")
    (images / "dir.png").mkdir()
    return images


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.png", "a.png"),
        ("deep/b.JPG", "b.JPG"),
        ("./deep/../a.png", "a.png"),
        ("inside.png", "a.png"),
        (" a.png ", "a.png"),
    ],
)
def test_pictures_in_the_folder(folder: Path, text: str, found: str) -> None:
    path = Media([folder]).file(text)
    assert path is not None
    assert path.name == found


@pytest.mark.parametrize(
    "text",
    [
        "../secret.png", "deep/../../secret.png", "out.png", "way/secret.png", "hidden.png", "round.png", "dir.png",
        "absent.png", "a\x00.png", "x" * 5000 + ".png", "/etc/passwd.png",
    ],
)  # fmt: skip
def test_no_way_out_of_the_folder(folder: Path, text: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        Media([folder]).file(text)
    with pytest.raises(InputError, match="no such file"):
        Media([folder]).file(str(folder.parent / "secret.png"))


@pytest.mark.parametrize("text", ["text.txt", "a.svg", "a.png.html", "http://x.example/a.png", "a png", ""])
def test_other_texts_are_texts(folder: Path, text: str) -> None:
    assert Media([folder]).file(text) is None
    assert Media().file("a.png") is None


def test_what_the_server_hands_out(folder: Path) -> None:
    path = folder.parent / "list.csv"
    path.write_text("task,picture\n1,a.png\n2,../secret.png\n3,out.png\ndeep/b.JPG,\n5,just text\n")
    with list_session(path, classes=["x", "y"], media=Media([folder])) as session:
        bench = Bench(session)
        shown = bench.get("/file/1/1")
        assert (shown.status_code, shown.headers["content-type"], shown.content) == (200, "image/png", PNG + b"a.png")
        assert '<img src="/file/1/1"' in bench.get("/item/1").text
        for number in (2, 3):
            assert bench.get(f"/file/{number}/1").status_code == 404
            page = bench.get(f"/item/{number}").text
            assert "<img" not in page
            assert "no such file" in page
        assert '<img src="/file/4/0"' in bench.get("/item/4").text  # the task itself names a file
        assert bench.get("/file/4/0").content == PNG + b"b.JPG"
        for path_ in ("/file/5/1", "/file/1/7", "/file/1/-1", "/file/1/0", "/file/99/1", "/file/1/x"):
            assert bench.get(path_).status_code == 404


@pytest.mark.parametrize(
    "host", ["", "a b", "x;script-src *", "https://x.example", "x.example/a", "*", "x.example:port"]
)
def test_only_a_host_goes_into_the_policy(host: str) -> None:
    with pytest.raises(ParameterError, match="needs a host"):
        Media(hosts=[host])


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        Media([tmp_path / "absent"])
