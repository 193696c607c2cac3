"""Markup of items as safe HTML: sanitised by a library, for a frame without scripts.

The result has no links and no addresses: nothing in it can load, open or run anything. The frame's
policy forbids the same.
"""

from __future__ import annotations

from rarevote.page.report import content_hash

_TAGS = {
    "a", "abbr", "b", "blockquote", "br", "caption", "cite", "code", "dd", "del", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "ins", "kbd", "li", "mark", "ol", "p", "pre",
    "q", "s", "samp", "section", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot",
    "th", "thead", "tr", "u", "ul", "var",
}  # fmt: skip
_ATTRIBUTES = {"td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}, "ol": {"start"}, "*": {"dir", "lang"}}
#: The style of a frame.
FRAME_STYLE = (
    ":root{color-scheme:light dark}body{font:1.1rem/1.55 system-ui,sans-serif;margin:.2rem;overflow-wrap:anywhere}"
    "table{border-collapse:collapse}td,th{border:1px solid #8888;padding:.2rem .5rem;text-align:left}"
    "pre{white-space:pre-wrap}blockquote{border-left:3px solid #8888;margin-left:0;padding-left:1rem}"
)
#: The policy of a frame: only text in our style.
FRAME_POLICY = (
    "sandbox; default-src 'none'; "
    f"style-src {content_hash(FRAME_STYLE)}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def safe_html(text: str, kind: str) -> str:
    """The text of an item as HTML without scripts, links, forms, styles or anything that loads.

    Args:
        kind: ``html`` or ``markdown``.

    >>> safe_html('<b onclick="x()">bold</b><script>alert(1)</script><a href="javascript:x()">link</a>', "html")
    '<b>bold</b><a>link</a>'
    >>> safe_html("**bold** <script>x</script>", "markdown").strip()
    '<p><strong>bold</strong> &lt;script&gt;x&lt;/script&gt;</p>'
    """
    import nh3

    if kind == "markdown":
        from markdown_it import MarkdownIt

        text = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).render(text)
    cleaned = nh3.clean(text, tags=_TAGS, attributes=_ATTRIBUTES, link_rel=None, strip_comments=True)
    return str(cleaned)


def frame_page(text: str, kind: str) -> str:
    """A complete page with the text of an item, for a frame."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Item</title>'
        f"<style>{FRAME_STYLE}</style></head><body>{safe_html(text, kind)}</body></html>"
    )
