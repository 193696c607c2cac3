"""The list walker: every way to cut the text, every way to break it, and the memory it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote.errors import InputError
from rarevote.io.platforms import json_stream as module
from rarevote.io.platforms.containers import open_export
from rarevote.io.platforms.json_stream import walk_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), max_size=6)


def walked(path: Path, text: str | bytes) -> list[Any]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    part = open_export(path).only()
    return [record for _, record in walk_json(part)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json") / "x.json"


@pytest.fixture(params=[1, 7, 1 << 20])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "_WALKED", request.param)
    return int(request.param)


@given(RECORDS)
def test_records_come_back(file: Path, records: list[Any]) -> None:
    for size in (1, 5, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_WALKED", size)
            for indent in (None, 2):
                assert walked(file, json.dumps(records, ensure_ascii=False, indent=indent)) == records
            if records:
                assert walked(file, "\n".join(json.dumps(record) for record in records)) == records


@pytest.mark.usefixtures("chunk")
def test_marks_and_spaces(file: Path) -> None:
    assert walked(file, "\ufeff [ ] \n") == []
    assert walked(file, '\ufeff{"a": "é"}\r\n\r\n{"b": [true, null, -1.5e3]} ') == [
        {"a": "é"},
        {"b": [True, None, -1500.0]},
    ]
    assert walked(file, '[{"a": "line\nfeed"}]') == [{"a": "line\nfeed"}]


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("text", ['[{"a": 1}, {"b": "grün", "c": [1, 2, true], "d": null}]'])
def test_every_truncation_is_one_clear_error(file: Path, text: str) -> None:
    data = text.encode()
    for size in range(1, len(data)):
        cut = data[:size]
        if cut.decode(errors="ignore").encode() != cut:
            continue  # within a letter: not UTF-8
        with pytest.raises(
            InputError, match=f"the JSON ends too early, at byte {size} in record [012]: the file is cut"
        ):
            walked(file, cut)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("text", "byte", "what"),
    [
        ('[{"ü": 1}, {"a" 2}]', 18, "expecting ':' delimiter"),
        ('[{"a": 1} {"b": 2}]', 11, "a comma or ] is missing"),
        ('[{"a": 1}, ]', 12, "expecting value"),
        ('[{"a": 1}] x', 12, "there is text after the end of the list"),
        ('[{"a": tru}, {"b": 1}]', 8, "expecting value"),
        ('{"a": 1}\n{"b": }\n{"c": 1}', 16, "expecting value"),
    ],
)
def test_faults_are_named_by_byte(file: Path, text: str, byte: int, what: str) -> None:
    with pytest.raises(InputError) as caught:
        walked(file, text)
    assert f"broken JSON at byte {byte}, record" in str(caught.value)
    assert what in str(caught.value)


def test_other_texts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="the file is empty"):
        walked(file, "  \n")
    with pytest.raises(InputError, match="not JSON: it begins with 'task,worker"):
        walked(file, "task,worker\n")
    with pytest.raises(InputError, match="nested too deeply"):
        walked(file, "[" + '{"a":' * 100_000)
    with pytest.raises(InputError, match=r"byte 2, record 1: a number of more than \d+ digits$"):
        walked(file, "[" + "1" * 5_000 + "]")
    with pytest.raises(InputError, match="byte 8 is not utf-8 text"):
        walked(file, b'[{"a": \xff}]')
    monkeypatch.setattr(module, "MAX_RECORD", 1000)
    monkeypatch.setattr(module, "_WALKED", 64)
    with pytest.raises(InputError, match="or a text in it never ends"):
        walked(file, '[{"a": "' + "x" * 10_000)


@pytest.mark.prove
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux's /proc")
def test_memory_stays_flat(tmp_path: Path) -> None:
    """A small version of benchmarks/label_studio_large.py: 60 MB on one line, read within 40 MB."""
    from benchmarks.label_studio_large import make_export

    path = tmp_path / "one_line.json"
    n_tasks = make_export(path, 60_000_000)
    with path.open("rb") as handle:
        assert len(handle.readline()) == path.stat().st_size
    code = (
        "import sys; from pathlib import Path; from rarevote.io.platforms import label_studio, read_export\n"
        "def peak(): return int(next(l for l in Path('/proc/self/status').read_text().splitlines() "
        "if l.startswith('VmHWM')).split()[1])\n"
        "before = peak(); export = read_export(sys.argv[1]); print(export.n_records, peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    records, kilobytes = map(int, done.stdout.split())
    assert records == n_tasks
    assert kilobytes < 40_000
