"""The notebook of examples/ runs: its cells as they are, each shown as a notebook shows it."""

from __future__ import annotations

import ast
import json
import warnings
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import pytest

from rarevote.errors import RarevoteWarning
from tests.conftest import shortened_chains

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "from_frame_to_decision.ipynb"


def cells() -> list[str]:
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert all(not cell.get("outputs") for cell in content["cells"]), "outputs are not kept"
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def run(code: str, namespace: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, as a notebook takes it."""
    body = ast.parse(code).body
    *before, last = body
    if not isinstance(last, ast.Expr):
        before, last = body, ast.Expr(ast.Constant(None))
    exec(compile(ast.Module(before, []), str(NOTEBOOK), "exec"), namespace)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), namespace)


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[Any] = []
    namespace: dict[str, Any] = {}
    with shortened_chains(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        for code in cells():
            shown.append(run(code, namespace))
            mime = getattr(shown[-1], "_repr_mimebundle_", None)
            assert shown[-1]._repr_html_() if mime is None else shown[-1].to_dict()
    assert len(shown) == 10
    assert sum(isinstance(one, alt.TopLevelMixin) for one in shown) == 3
    assert sum(isinstance(one, pd.DataFrame) for one in shown) == 5
    recall = shown[8].loc["rare_recall"]
    assert recall["recall of 0.9"] > recall["own decision"]  # more are flagged, so more are found
    assert not list(tmp_path.iterdir())
