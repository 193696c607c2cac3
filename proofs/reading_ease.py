"""How easy a page of the documentation is to read: Flesch's reading ease of its prose.

    python -m proofs.reading_ease            # all pages of docs/ and the README, the hardest first

Code, tables, figures, headings and formulas are left out; a name in code counts as a word of one syllable. 60 to 70 is
plain English, 50 to 60 fairly difficult, below 30 very difficult. Syllables are counted by a rule of thumb.
"""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

_BLOCKS = re.compile(
    r"^(```|~~~).*?^\1[^\n]*$|<!--.*?-->|^\$\$.*?^\$\$\s*$|<(svg|table|picture)\b.*?</\2>", re.M | re.S
)
_SILENT_END = re.compile(r"(?:[^laeiouy]es|[^td]ed|[^laeiouy]e)$")
_VOWELS = re.compile(r"[aeiouy]+")
_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")


def pages() -> list[Path]:
    """The README and the pages of docs/ that people write."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def prose(markdown: str) -> list[str]:
    """The sentences of a page.

    >>> prose("# Title\\n\\nRun `rarevote demo`. It takes [one minute](x.md)\\n\\n- a list\\n\\n| a | table |\\n")
    ['Run it.', 'It takes one minute', 'a list']
    """
    text = _BLOCKS.sub("\n\n", markdown)
    lines = []
    for line in text.splitlines():
        plain = line.strip()
        is_left_out = plain.startswith(("#", "|", "![", "<", ":::", "!!!", "$$")) or line.startswith("    ")
        # An item of a list is a sentence of its own.
        lines.append("" if is_left_out else re.sub(r"^([-*+]|\d+\.) +", "\n", plain))
    text = "\n".join(lines)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]", lambda found: found[1] or found[2] or "", text)
    text = re.sub(r"`[^`]*`", "it", text)
    text = re.sub(r"\$[^$\n]+\$", "it", text)
    text = re.sub(r"[*_]{1,2}(\S[^*_]*)[*_]{1,2}", r"\1", text)
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        found += re.split(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(“]?[A-Z0-9])", " ".join(paragraph.split()))
    return [sentence for sentence in found if _WORD.search(sentence)]


def syllables(word: str) -> int:
    """The syllables of a word, about.

    >>> [syllables(word) for word in ("the", "labels", "table", "voted", "used", "annotator", "reliable")]
    [1, 2, 2, 2, 1, 4, 4]
    """
    word = word.lower().replace("’", "'").partition("'")[0]
    groups = len(_VOWELS.findall(word)) + len(re.findall(r"i[ao]|ue[dl]|eo", word))
    groups -= len(re.findall(r"[tscg]io|cia|tia", word))
    return max(1, groups - bool(groups > 1 and _SILENT_END.search(word)))


def reading_ease(sentences: list[str]) -> float:
    """Flesch's formula: 206.835 - 1.015 words per sentence - 84.6 syllables per word.

    >>> round(reading_ease(["The cat sat on the mat."]), 3)
    116.145
    """
    words = [word for sentence in sentences for word in _WORD.findall(sentence)]
    per_word = sum(map(syllables, words)) / len(words)
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * per_word


def main() -> None:
    """Show the pages, the hardest first."""
    rows = []
    for path in pages():
        sentences = prose(path.read_text(encoding="utf-8"))
        n_words = sum(len(_WORD.findall(sentence)) for sentence in sentences)
        if n_words:
            rows.append((reading_ease(sentences), n_words, n_words / len(sentences), path.relative_to(REPOSITORY)))
    for ease, n_words, length, name in sorted(rows):
        print(f"{ease:6.1f}  {n_words:5d} words  {length:4.1f} per sentence  {name}")


if __name__ == "__main__":
    main()
