"""Lower layers never import higher ones, heavy libraries load on use, the public list is what it says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rarevote
from rarevote.cli import VERBS
from rarevote.methods.registry import METHODS

PACKAGE = Path(rarevote.__file__).parent

# The folders, from the bottom up: a module imports its own layer and those below. Names side by side are one layer.
LAYERS = [
    "errors", "kernels", "crowd", "io", "em", "features", "decide", "methods", "scoring", "diagnose", "audit",
    "simulate", "charts", "page", "cluster", "progress", "api result each", "compat", "metrics postprocessing",
    "workbench watch", "study", "cli",
]  # fmt: skip
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
ONLY_NUMPY = {"errors", "crowd", "em"}
HEAVY = {"pandas", "polars", "pyarrow", "duckdb", "numba", "dask", "altair", "sklearn", "scipy", "rich", "click",
         "starlette", "uvicorn", "httpx"}  # fmt: skip


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def layer_of(module: str) -> int:
    return LAYER_OF[module.split(".")[0]]


def imports_of(path: Path, *, for_types: bool = False) -> set[str]:
    """Modules that a file imports anywhere, those under TYPE_CHECKING left out."""
    tree = parsed(path)
    found: set[str] = set()
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not for_types:
            skipped.update(child for entry in node.body for child in ast.walk(entry))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def own(names: set[str]) -> set[str]:
    known = modules()
    return {name.removeprefix("rarevote.") for name in names if name.startswith("rarevote.")} & set(known)


def test_the_layers_are_the_folders() -> None:
    listed = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert listed - {"__init__", "__main__"} == set(LAYER_OF)


@pytest.mark.parametrize("module", sorted(set(modules()) - {"__init__", "__main__"}))
def test_no_module_imports_a_higher_layer(module: str) -> None:
    imported = own(imports_of(modules()[module]))
    assert not {name for name in imported if layer_of(name) > layer_of(module)}


@pytest.mark.parametrize("module", modules())
def test_numba_stays_in_kernels_and_the_base_needs_only_numpy(module: str) -> None:
    outside = {name.split(".")[0] for name in imports_of(modules()[module])}
    if not module.startswith("kernels") and not module.endswith(".kernel"):
        assert not outside & {"numba", "llvmlite"}
    if module.split(".")[0] in ONLY_NUMPY:
        third_party = outside - set(sys.stdlib_module_names) - {"rarevote", "numpy", "__future__"}
        assert not third_party
    assert "sklearn" not in outside
    assert "pickle" not in outside


def loaded_after(code: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(shown.stdout.split())


def test_importing_rarevote_loads_nothing_heavy() -> None:
    assert not loaded_after("import rarevote; dir(rarevote); rarevote.__version__") & (HEAVY | {"numpy"})


def test_the_command_line_starts_without_anything_heavy() -> None:
    assert not loaded_after("import rarevote.cli") & (HEAVY - {"click"} | {"numpy"})


def test_a_verb_is_put_together_alone(tmp_path: Path) -> None:
    votes, out = tmp_path / "votes.csv", tmp_path / "out.csv"
    votes.write_text("task,worker,label\n" + "".join(f"t{i // 5},w{i % 7},{i % 3}\n" for i in range(100)))
    words = ["aggregate", str(votes), "-q", "-o", str(out)]
    loaded = loaded_after(f"from rarevote.cli import app; app.main({words}, standalone_mode=False)")
    assert out.exists()
    assert loaded & {f"rarevote.cli.{verb}" for verb in VERBS} == {"rarevote.cli.aggregate"}
    kinds = {f"rarevote.methods.{entry.module}" for entry in METHODS.values()}
    assert loaded & kinds == {"rarevote.methods.anchored_rasch"}
    # Calibration by draws, scores against a truth, the questions of an export, checks and plans were not asked for.
    assert not loaded & {
        f"rarevote.{name}"
        for name in (
            "decide.sampler", "scoring.metrics", "io.platforms.questions", "diagnose.check", "diagnose.model_fit",
            "decide.review", "io.live",
        )
    }  # fmt: skip


def test_help_and_tables_of_methods_load_no_method() -> None:
    for words in (["aggregate", "--help"], ["methods"], ["methods", "--json"]):
        loaded = loaded_after(f"from rarevote.cli import app; app.main({words}, standalone_mode=False)")
        methods = {name for name in loaded if name.startswith("rarevote.methods.")}
        assert methods == {"rarevote.methods.registry", "rarevote.methods.capabilities"}


def test_estimators_load_without_any_frame_library() -> None:
    assert not loaded_after("from rarevote import CCRasch; CCRasch()") & {"pandas", "polars", "pyarrow", "duckdb"}


def test_public_names_exist() -> None:
    for name in rarevote.__all__:
        assert getattr(rarevote, name) is not None
    assert set(rarevote.__all__) == set(dir(rarevote))
    with pytest.raises(AttributeError, match="No rarevote attribute Nonsense"):
        getattr(rarevote, "Nonsense")  # noqa: B009


@pytest.mark.parametrize("module", modules())
def test_modules_say_what_they_are(module: str) -> None:
    path = modules()[module]
    assert ast.get_docstring(parsed(path)), "a module begins with a docstring"
    assert path.read_text(encoding="utf-8").count("\n") <= 550


def test_no_class_bears_the_name_of_another() -> None:
    places: dict[str, set[str]] = {}
    for name, path in modules().items():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(name)
    # Models with the workers' part held are one idea, once for each model.
    assert {name: found for name, found in places.items() if len(found) > 1 and name != "HeldWorkers"} == {}


_MAY_BE_INTERNAL = re.compile(r"^\s*(?:from|import)\b(?!\s+__future__).*(?:\b_|\bcore\b|\bmisc\b)", re.MULTILINE)


def internal_imports(path: Path) -> set[str]:
    """Modules and names of other packages that a file imports though their authors keep them for themselves."""
    own_packages = ("rarevote", "tests", "benchmarks", "proofs", "docs", "__future__")
    foreign = {name for name in imports_of(path, for_types=True) if name.split(".")[0] not in own_packages}
    internal = {"numba.core", "numba.misc", "click.core"}
    return {
        name
        for name in foreign
        if ".".join(name.split(".")[:2]) in internal or any(part.startswith("_") for part in name.split("."))
    }


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "proofs", "docs", "examples"])
def test_no_internals_of_other_packages_are_imported(folder: str) -> None:
    paths = sorted((Path(__file__).parents[1] / folder).rglob("*.py"))
    assert paths
    # Parsing all tests takes seconds: only files with such a name in a line that imports are looked at.
    named = [path for path in paths if _MAY_BE_INTERNAL.search(path.read_text(encoding="utf-8"))]
    assert {path.name: found for path in named if (found := internal_imports(path))} == {}
