from __future__ import annotations

from pathlib import Path

from rarevote.study.tables import (
    StudyTable,
    TableCell,
    escape_latex,
    escape_markdown,
    ranked,
    signed,
    to_latex,
    to_markdown,
    write_csv,
)

TABLE = StudyTable(
    ("Method", "Recall ↑", "F1 ↑"),
    [("A & B_1", TableCell("0.9 ± 0.1", "best"), "0.5"), ("50 % | more", "0.1", TableCell("0.4", "second"))],
    caption="100 % {ours}",
    groups=[("Imb. ≥ 3", 2)],
    notes=("a < b",),
    breaks=(1,),
)


def test_markdown() -> None:
    assert to_markdown(TABLE) == (
        "| Method | Imb. ≥ 3: Recall ↑ | Imb. ≥ 3: F1 ↑ |\n"
        "| --- | ---: | ---: |\n"
        "| A & B\\_1 | **0.9 ± 0.1** | 0.5 |\n"
        "| 50 % \\| more | 0.1 | _0.4_ |\n"
        "\na &lt; b\n"
    )


def test_markdown_escapes_what_would_be_markup() -> None:
    assert escape_markdown("CF* `x` [y]\n\\") == "CF\\* \\`x\\` \\[y\\] \\\\"


def test_latex() -> None:
    text = to_latex(TABLE, label="t")
    assert r"\multicolumn{2}{c}{Imb. $\geq$ 3} \\" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r"A \& B\_1 & \textbf{0.9 $\pm$ 0.1} & 0.5 \\" in text
    assert r"50 \% | more & 0.1 & \underline{0.4} \\" in text
    assert r"\caption{100 \% \{ours\}}\label{tab:t}" in text
    assert r"\addlinespace" in text
    assert r"a $<$ b" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2


def test_long_latex_repeats_its_heading() -> None:
    text = to_latex(TABLE, label="t", long=True)
    assert text.count(r"Method & Recall") == 2
    assert text.index(r"\endhead") < text.index("0.5")


def test_latex_without_groups_has_one_heading() -> None:
    text = to_latex(StudyTable(("Set", "F1 ↑"), [("a", "0.5")]), label="t")
    assert "\\toprule\nSet & F1 $\\uparrow$ \\\\\n\\midrule\na & 0.5 \\\\\n\\bottomrule\n" in text


def test_latex_escapes_every_special_character() -> None:
    assert escape_latex("\\{}$&#_%~^") == (r"\textbackslash{}\{\}\$\&\#\_\%\textasciitilde{}\textasciicircum{}")


def test_ranks_share_places_and_skip_what_is_absent() -> None:
    entries = ranked([0.3, None, 0.5, 0.5, 0.1], list("abcde"))
    assert [entry.rank for entry in entries] == ["second", "", "best", "best", ""]
    assert [entry.rank for entry in ranked([0.3, 0.5], list("ab"), second=False)] == ["", "best"]


def test_differences_have_a_sign_unless_they_vanish() -> None:
    assert [signed(value) for value in (0.0064, -0.02, -0.0004, 0.0)] == ["+0.006", "-0.020", "+0.000", "+0.000"]


def test_csv_quotes_and_formats(tmp_path: Path) -> None:
    rows = [{"name": 'a,"b"', "x": -1e-9, "done": True, "none": None, "n": 3}]
    path = write_csv(tmp_path / "t.csv", ("name", "x", "done", "none", "n"), rows)
    assert path.read_text(encoding="utf-8") == 'name,x,done,none,n\n"a,""b""",0.000000,true,,3\n'
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
