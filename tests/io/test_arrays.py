"""Files of arrays trust nothing: what is packed, altered, nameless or no array is refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rarevote.errors import InputError
from rarevote.io.arrays import load_arrays, save_arrays


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(3)}
    save_arrays(tmp_path / "x", arrays)
    found = load_arrays(tmp_path / "x")
    assert set(found) == {"a", "b"}
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


def test_a_header_with_names_of_two_kinds_is_damage(tmp_path: Path) -> None:
    # NumPy sorts the names of a header, and cannot sort text and bytes.
    with zipfile.ZipFile(tmp_path / "x", "w") as file:
        file.writestr("a.npy", npy(np.arange(3.0)).replace(b", 'shape'", b",b'shape'"))
    with pytest.raises(InputError, match="damaged"):
        load_arrays(tmp_path / "x")


def test_a_small_file_cannot_become_large(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(1_000_000))
    assert (tmp_path / "x.npz").stat().st_size < 10_000
    with pytest.raises(InputError, match="compressed or encrypted"):
        load_arrays(tmp_path / "x.npz")


def test_every_altered_byte_is_noticed_or_without_effect(tmp_path: Path) -> None:
    arrays = {"a": np.arange(3.0), "b": np.arange(4)}
    path = tmp_path / "x"
    save_arrays(path, arrays)
    whole = path.read_bytes()
    noticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x11]) + whole[place + 1 :])
        try:
            found = load_arrays(path)
        except InputError:
            noticed += 1
            continue
        # An array that is no longer listed is missed by whoever wants it.
        assert all(found[name].tobytes() == arrays[name].tobytes() for name in found)
    assert noticed > len(whole) / 2


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"a.npy": b"no array at all"}, "is not an array|damaged"),
        ({".npy": npy(np.zeros(2))}, "without a name"),
        ({"a.npy": npy(np.zeros(2))[:-4]}, "damaged"),
        ({"a.npy": npy(np.zeros(2)).replace(b"(2,)", b"(9,)")}, "damaged"),
        ({"a.npy": npy(np.zeros(2)).replace(b"{", b"(")}, "damaged"),
    ],
)
def test_members_that_are_no_arrays_are_refused(members: dict[str, bytes], told: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(InputError, match=told):
        load_arrays(tmp_path / "x")
