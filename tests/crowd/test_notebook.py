"""Objects show themselves in a notebook, and names in them are never markup."""

from __future__ import annotations

from html.parser import HTMLParser

import rarevote
from rarevote.crowd import words

EVIL = "<script>alert(1)</script>"
VOTES = [("a", "ann", EVIL), ("a", "bob", EVIL), ("b", "ann", "no & never"), ("b", "bob", "no & never")]


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def seen(shown: object) -> Seen:
    found = Seen()
    found.feed(shown._repr_html_())  # type: ignore[attr-defined]
    of_page = {"h1", "h2", "ul", "li", "span", "aside", "dl", "dt", "dd", "details", "summary", "pre", "code"}
    assert set(found.tags) <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p"} | of_page
    return found


def test_what_objects_show() -> None:
    crowd = rarevote.read(VOTES)
    assert EVIL in seen(crowd).text
    fitted = rarevote.fit(crowd, "majority-vote")
    for result in (seen(fitted), seen(fitted.decide())):
        assert "2 items in 2 classes" in result.text
        assert "majority vote" in result.text.lower()
        assert EVIL in result.text
        assert "no & never" in result.text


def test_a_method_before_and_after_its_fit() -> None:
    model = rarevote.MajorityVote()
    assert "not fitted" in seen(model).text
    assert "votes 4" in " ".join(seen(model.fit(VOTES)).text.split())


def test_many_classes_are_cut() -> None:
    crowd = rarevote.read([(n, "w", f"class {n}") for n in range(40)])
    text = seen(crowd).text
    assert text.count("class ") <= 12
    assert "30 more" in text


def test_short_names_never_look_the_same() -> None:
    names = [f"{'x' * 40} {n} {'y' * 40}" for n in range(3)]  # equal at both ends
    assert words.short_names(names) == names
    assert words.short_names(["a" * 30, "b" * 30]) == ["a" * 23 + "…", "b" * 23 + "…"]
