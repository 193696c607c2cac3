from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote.errors import WeightsError
from rarevote.methods.crowdfm import weights
from rarevote.methods.crowdfm.weights import read_tensors


def text(value: str) -> bytes:
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def run(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


ORDERED = name("collections", "OrderedDict") + b")R"
REBUILD = name("torch._utils", "_rebuild_tensor_v2")
FALSE = b"\x89"


def storage(key: str = "0", count: int = 6, kind: str = "FloatStorage") -> bytes:
    return run(text("storage"), name("torch", kind), text(key), text("cpu"), number(count)) + b"Q"


def tensor(
    size: tuple[int, ...] = (2, 3),
    stride: tuple[int, ...] = (3, 1),
    offset: int = 0,
    held: bytes = storage(),
) -> bytes:
    arguments = (held, number(offset), run(*map(number, size)), run(*map(number, stride)), FALSE, ORDERED)
    return REBUILD + run(*arguments) + b"R"


def program(entries: Mapping[str, bytes], after: bytes = b"") -> bytes:
    items = b"".join(text(key) + value for key, value in entries.items())
    return b"\x80\x02" + ORDERED + b"(" + items + b"u" + after + b"."


def write_zip(
    path: Path,
    pickled: bytes,
    members: Mapping[str, bytes] | None = None,
    compression: int = zipfile.ZIP_STORED,
) -> Path:
    data = {"data/0": np.arange(6, dtype="<f4").tobytes(), "byteorder": b"little", **(members or {})}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("model/data.pkl", pickled)
        for member, content in data.items():
            archive.writestr(f"model/{member}", content)
    return path


def write_safetensors(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(encoded) if length is None else length
    path.write_bytes(struct.pack("<Q", size) + encoded + data)
    return path


def entry(shape: list[Any], begin: Any, end: Any, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refusal(path: Path) -> str:
    with pytest.raises(WeightsError) as caught:
        read_tensors(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.count("\n") <= 1
    return message.replace(str(path), "")


SIX = np.arange(6, dtype=np.float32)


def test_a_pytorch_file_gives_its_tensors_in_order(tmp_path: Path) -> None:
    entries = {
        "matrix": tensor(),
        "transposed": tensor((3, 2), (1, 3)),
        "part": tensor((2,), (1,), offset=4),
        "scalar": tensor((), (), offset=5),
        "none": tensor((0, 3), (3, 1)),
    }
    tensors = read_tensors(write_zip(tmp_path / "model.pt", program(entries)))
    matrix = SIX.reshape(2, 3)
    expected: dict[str, NDArray[np.float32]] = {
        "matrix": matrix,
        "transposed": matrix.T,
        "part": SIX[4:],
        "scalar": SIX[5],
        "none": np.empty((0, 3), np.float32),
    }
    assert list(tensors) == list(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(tensors[key], value, strict=True)
        assert tensors[key].flags.writeable
        assert tensors[key].flags.c_contiguous


def test_the_metadata_of_a_state_dict_is_passed_over(tmp_path: Path) -> None:
    versions = text("") + b"}" + text("version") + b"K\x01s"
    state = b"}" + text("_metadata") + ORDERED + b"(" + versions + b"u" + b"s" + b"b"
    tensors = read_tensors(write_zip(tmp_path / "model.pt", program({"a": tensor()}, state)))
    assert list(tensors) == ["a"]


def test_a_safetensors_file_gives_its_tensors(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "b": entry([2], 16, 24),
        "a": entry([2, 2], 0, 16),
        "c": entry([0], 24, 24),
    }
    tensors = read_tensors(write_safetensors(tmp_path / "w.safetensors", header, SIX.astype("<f4").tobytes()))
    np.testing.assert_array_equal(tensors["a"], SIX[:4].reshape(2, 2), strict=True)
    np.testing.assert_array_equal(tensors["b"], SIX[4:], strict=True)
    assert tensors["c"].shape == (0,)


def test_the_published_files_agree(shared_folder: Path) -> None:
    folder = shared_folder / "crowdfm"
    first, second = read_tensors(folder / "checkpoint.pt"), read_tensors(folder / "weights.safetensors")
    assert first.keys() == second.keys()
    assert sum(value.size for value in first.values()) == 831_873
    for key, value in first.items():
        np.testing.assert_array_equal(value, second[key], strict=True)


class Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("wrap", [lambda evil: evil, lambda evil: {"a": evil}, lambda evil: [(evil,)]])
def test_a_pickle_that_calls_the_system_is_refused_and_not_run(
    tmp_path: Path, protocol: int, wrap: Callable[[Evil], object]
) -> None:
    marker = tmp_path / "executed"
    refusal(write_zip(tmp_path / "evil.pt", pickle.dumps(wrap(Evil(marker)), protocol)))
    assert not marker.exists()


SYSTEM = name("posix", "system") + run(text("touch executed")) + b"R"


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02" + SYSTEM + b".",
        program({"a": SYSTEM}),
        program({"a": tensor()}, b"}" + text("_metadata") + SYSTEM + b"sb"),
        program({"a": tensor(held=SYSTEM)}),
    ],
)
def test_a_foreign_name_is_named(tmp_path: Path, pickled: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "posix.system" in refusal(write_zip(tmp_path / "evil.pt", pickled))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("pickled", "said"),
    [
        (program({"a": name("builtins", "eval")}), "builtins.eval"),
        (program({"a": name("torch._utils", "_rebuild_parameter")}), "_rebuild_parameter"),
        (program({"a": name("torch", "FloatStorage") + run(number(1)) + b"R"}), "torch.FloatStorage"),
        (program({"a": name("collections", "OrderedDict") + run(number(1)) + b"R"}), "collections.OrderedDict"),
        (program({"a": text("b") + run(number(1)) + b"R"}), "'b'"),
        (program({"a": REBUILD + run(number(1)) + b"R"}), "_rebuild_tensor_v2"),
        (program({"a": text("torch") + text("load") + b"\x93"}), "STACK_GLOBAL"),
        (program({"a": b"(" + text("ls") + b"ios\nsystem\n"}), "INST"),
        (program({"a": b"(" + name("collections", "OrderedDict") + b"o"}), "OBJ"),
        (program({"a": name("collections", "OrderedDict") + b")\x81"}), "NEWOBJ"),
        (program({"a": b"N"}), "NONE"),
        (program({"a": number(1)}), "'a' is a value of type int"),
        (program({"a": ORDERED}), "'a' is an OrderedDict"),
        (program({"a": name("torch", "FloatStorage")}), "'a' is torch.FloatStorage"),
        (program({"a": storage()}), "'a' is a value of type Storage"),
        (b"\x80\x02" + tensor() + b".", "holds a value of type Tensor"),
        (b"\x80\x02}" + text("a") + tensor() + b"s.", "holds a dict"),
        (program({}), "no tensor"),
    ],
)
def test_anything_but_a_flat_ordered_dict_of_tensors_is_named(tmp_path: Path, pickled: bytes, said: str) -> None:
    assert said in refusal(write_zip(tmp_path / "model.pt", pickled))


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02t.",
        b"\x80\x02q\x00.",
        b"\x80\x02(q\x00.",
        b"\x80\x02h\x00.",
        b"\x80\x02" + ORDERED + ORDERED + b".",
        b"\x80\x02" + ORDERED + b"u.",
        b"\x80\x02" + ORDERED + b"(" + text("a") + b"u.",
        b"\x80\x02" + text("a") + text("b") + tensor() + b"s.",
        b"\x80\x02" + ORDERED + run(text("a")) + tensor() + b"s.",
        b"\x80\x02" + ORDERED + b"(" + 2 * (text("a") + tensor()) + b"u.",
        program({"a": tensor()}) + b"more",
        program({"a": tensor()})[:-9],
        program({"a": tensor()}, b"}" + text("other") + ORDERED + b"sb"),
        program({"a": tensor()}, text("_metadata") + b"b"),
        b"\x80\x02\xff.",
        b"\x80\x02X\xff\xff\xff\xffabc.",
        b"\x80\x02X\x01\x00\x00\x00\xff.",
        b"I" + b"9" * 10_000 + b"\n.",
        b"\x80\x02" + b"(" * 100_000 + b".",
        b"\x80\x02" + b")" + b"\x85" * 100_000 + b".",
    ],
)
def test_a_malformed_pickle_is_refused(tmp_path: Path, pickled: bytes) -> None:
    refusal(write_zip(tmp_path / "model.pt", pickled))


@pytest.mark.parametrize(
    "value",
    [
        tensor((2, 4), (4, 1)),
        tensor((2, 3), (4, 1)),
        tensor((2, 3), (3, 1), offset=1),
        tensor((2, 3), (3, 1), offset=-1),
        tensor((2, 3), (-3, 1)),
        tensor((2, 3), (1, 1)),
        tensor((2**28, 3), (0, 1)),
        tensor((-2, 3), (3, 1)),
        tensor((2, 3), (3,)),
        tensor((0,), (1,), offset=7),
        tensor((0, 2**28, 2**28, 2**28), (1, 1, 1, 1)),
        tensor((1,) * 65, (1,) * 65),
        tensor(held=storage(count=7)),
        tensor(held=storage(count=-6)),
        tensor(held=storage(key="1")),
        tensor(held=storage(key="../byteorder")),
        tensor(held=storage(kind="DoubleStorage")),
        tensor(held=run(text("storage"), text("torch FloatStorage"), text("0"), text("cpu"), number(6)) + b"Q"),
        tensor(held=run(text("other"), name("torch", "FloatStorage"), text("0"), text("cpu"), number(6)) + b"Q"),
        tensor(held=text("0") + b"Q"),
        REBUILD + run(storage(), number(0), run(b"\x88"), run(number(1)), FALSE, ORDERED) + b"R",
        REBUILD + run(storage(), b"\x88", run(number(1)), run(number(1)), FALSE, ORDERED) + b"R",
        REBUILD + run(storage(), number(0), number(1), number(1), FALSE, ORDERED) + b"R",
        REBUILD + run(storage(), number(0), run(number(1)), run(number(1)), number(0), ORDERED) + b"R",
        REBUILD + run(storage(), number(0), run(number(1)), run(number(1)), FALSE) + b"R",
    ],
)
def test_a_tensor_that_does_not_fit_its_storage_is_refused(tmp_path: Path, value: bytes) -> None:
    refusal(write_zip(tmp_path / "model.pt", program({"a": value})))


def test_tensors_that_repeat_a_storage_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 50_000
    entries = {"first": tensor((count,), (1,), held=storage(count=count) + b"q\x00")}
    entries |= {f"again {i}": tensor((count,), (1,), held=b"h\x00") for i in range(9)}
    path = write_zip(tmp_path / "model.pt", program(entries), {"data/0": bytes(4 * count)})
    assert len(read_tensors(path)) == 10
    monkeypatch.setattr(weights, "MAX_FILE_BYTES", 5 * 4 * count)
    assert "memory" in refusal(path)


def test_a_big_endian_file_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "model.pt", program({"a": tensor()}), {"byteorder": b"big"})
    assert "little-endian" in refusal(path)


def test_compressed_members_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    bomb = {"data/0": bytes(50_000_000)}
    path = write_zip(tmp_path / "bomb.pt", program({"a": tensor()}), bomb, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    assert "compressed" in refusal(path)


def test_a_member_that_reaches_beyond_the_file_is_refused_even_if_it_is_not_read(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "model.pt", program({"a": tensor()}), {"extra": b"four"})
    content = bytearray(path.read_bytes())
    entry_of_extra = content.rindex(b"PK\x01\x02")  # the last entry of the central directory
    content[entry_of_extra + 20 : entry_of_extra + 28] = struct.pack("<II", 10**6, 10**6)
    path.write_bytes(content)
    assert "members overlap or reach beyond its end" in refusal(path)


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zip(tmp_path / "model.pt", program({"a": tensor()}))
    monkeypatch.setattr(weights, "MAX_HEADER_BYTES", 10)
    assert "data.pkl" in refusal(path)
    monkeypatch.setattr(weights, "MAX_FILE_BYTES", 10)
    assert "larger" in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"PK", "damaged"),
        (b"PK\x03\x04" + bytes(100), "damaged"),
        (b"\x80\x02}q\x00.", "neither"),
        (b"task,worker,label\n0,0,0\n", "neither"),
        (struct.pack("<Q", 2**63) + b"{}", "header"),
        (struct.pack("<Q", 3) + b"{}", "header"),
        (struct.pack("<Q", 2) + b"{}", "no tensor"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content)
    assert said in refusal(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "absent.pt")
    assert "not a file" in refusal(tmp_path)


def test_a_zip_that_pytorch_did_not_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")
    assert "data.pkl" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", program({"a": tensor()}))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("m/data.pkl", program({"a": tensor()}))
    assert "one name" in refusal(path)


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"{\xff}",
        b'{"a":' * 100_000,
        b'{"a": {}, "a": {}}',
        b'{"a": ' + b"9" * 10_000 + b"}",
        {"a": 1},
        {"a": entry([6], 0, 24) | {"more": 1}},
        {"a": {"dtype": "F32", "shape": [6]}},
        {"a": entry([6], 0, 24, "F64")},
        {"a": entry([7], 0, 28)},
        {"a": entry([6], -24, 0)},
        {"a": entry([6], 0, 24.0)},
        {"a": entry([True, 6], 0, 24)},
        {"a": entry([-2, -3], 0, 24)},
        {"a": entry([0, 2**62, 2**62], 0, 0)},
        {"a": entry([1] * 70 + [6], 0, 24)},
        {"a": entry([5], 0, 20)},
        {"a": entry([5], 4, 24)},
        {"a": entry([4], 0, 16), "b": entry([4], 8, 24)},
        {"a": entry([2], 0, 8), "b": entry([2], 16, 24)},
        {"a": entry([6], 0, 24), "b": entry([6], 0, 24)},
        {"a": {"dtype": "F32", "shape": "6", "data_offsets": [0, 24]}},
    ],
)
def test_a_safetensors_header_that_does_not_fit_is_refused(tmp_path: Path, header: object) -> None:
    refusal(write_safetensors(tmp_path / "w.safetensors", header, SIX.astype("<f4").tobytes()))


@pytest.mark.parametrize("kind", ["pt", "safetensors"])
def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"weights.{kind}"
    if kind == "pt":
        write_zip(path, program({"a": tensor(), "b": tensor((2,), (1,), offset=4)}))
    else:
        write_safetensors(path, {"a": entry([2], 0, 8), "b": entry([2, 2], 8, 24)}, SIX.astype("<f4").tobytes())
    intact = path.read_bytes()
    rng = np.random.default_rng(7)
    variants = [intact[:length] for length in range(len(intact))]
    for _ in range(1500):
        changed = bytearray(intact)
        for place in rng.integers(len(intact), size=rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        variants.append(bytes(changed))
    for content in variants:
        path.write_bytes(content)
        try:
            tensors = read_tensors(path)
        except WeightsError as error:
            assert str(error).count("\n") <= 1  # noqa: PT017
        else:
            assert all(value.dtype == np.float32 and value.size <= 6 for value in tensors.values())
