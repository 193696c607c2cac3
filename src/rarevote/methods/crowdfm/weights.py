"""Named tensors from a safetensors file or a PyTorch zip, without executing anything in the file.

A ``.pt`` holds a pickle, a program that a loader would run. Here its instructions are only listed
(:func:`pickletools.genops`) and replayed on inert values: three names are known, each represented by a value of
this module, and any other name or instruction raises an error. Every size that a file states is compared with
its contents before memory is allocated.
"""

from __future__ import annotations

import io
import json
import math
import os
import pickletools
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import WeightsError, shown

# The published network takes 3.4 MB; these limits allow eighty times that size.
MAX_FILE_BYTES = 1 << 28
MAX_HEADER_BYTES = 1 << 22
MAX_DIMENSIONS = 8

_ITEM = np.dtype("<f4")
# Names as pickletools lists them: the module, a space, the name.
_ORDERED_DICT = "collections OrderedDict"
_FLOAT_STORAGE = "torch FloatStorage"
_REBUILD_TENSOR = "torch._utils _rebuild_tensor_v2"
_GLOBALS = frozenset({_ORDERED_DICT, _FLOAT_STORAGE, _REBUILD_TENSOR})
_MARK = object()

# What zipfile raises on damaged input, depending on which of its fields is damaged.
_ZIP_DAMAGE = (zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError, RuntimeError, OverflowError)


def read_tensors(path: str | os.PathLike[str]) -> dict[str, NDArray[np.float32]]:
    """Read every tensor of a weights file, by name, in the file's order.

    Args:
        path: A ``.safetensors`` file with F32 tensors, or a ``.pt`` zip as ``torch.save`` writes for a flat
            ``state_dict`` of float tensors. The format is recognised by the contents, not by the name.

    Returns:
        Writable float32 arrays with the shapes stated in the file.

    Raises:
        WeightsError: The file is absent, too large, damaged, or contains anything but named float32 tensors.
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise WeightsError("there is no such file" if not file.exists() else "this is not a file")
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise WeightsError(f"the file is larger than {MAX_FILE_BYTES >> 20} MiB")
        if not content:
            raise WeightsError("the file is empty")
        tensors = _read_zip(content) if content.startswith(b"PK") else _read_safetensors(content)
        if not tensors:
            raise WeightsError("the file holds no tensor")
    except WeightsError as error:
        raise WeightsError(f"Cannot read weights from {file}: {error}") from None
    except OSError as error:
        raise WeightsError(f"Cannot read weights from {file}: {error.strerror or error}") from None
    return tensors


def _are_counts(*values: object) -> bool:
    """Whether all are integers (not bool) from 0 to the largest size of a file in bytes."""
    return all(type(value) is int and 0 <= value <= MAX_FILE_BYTES for value in values)


def _is_shape(sizes: Sequence[Any]) -> bool:
    """Whether NumPy can make an array of these sizes and a file can hold it; all are checked, even if one is zero."""
    counts = len(sizes) <= MAX_DIMENSIONS and _are_counts(*sizes)
    return counts and math.prod(max(size, 1) for size in sizes) <= MAX_FILE_BYTES


def _read_safetensors(content: bytes) -> dict[str, NDArray[np.float32]]:
    """Header length (8 bytes), header (JSON), then the tensors' bytes without gaps."""
    if content[8:9] != b"{":
        raise WeightsError("this is neither a safetensors file nor a PyTorch zip")
    length = int.from_bytes(content[:8], "little")
    if length > min(MAX_HEADER_BYTES, len(content) - 8):
        raise WeightsError(f"the header claims {length} bytes, more than there are or may be")
    try:
        header = json.loads(content[8 : 8 + length].decode("utf-8"), object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        raise WeightsError("the safetensors header is not valid JSON") from None
    header.pop("__metadata__", None)
    data = memoryview(content)[8 + length :]
    spans = {name: _safetensors_span(name, entry, len(data)) for name, entry in header.items()}
    position = 0
    for name, (begin, end, _) in sorted(spans.items(), key=lambda item: item[1][:2]):
        if begin != position:
            raise WeightsError(f"tensor {shown(name)} starts at byte {begin}, where {position} was expected")
        position = end
    if position != len(data):
        raise WeightsError(f"the tensors take {position} bytes, the file holds {len(data)}")
    return {
        name: np.frombuffer(data[begin:end], _ITEM).reshape(shape).astype(np.float32)
        for name, (begin, end, shape) in spans.items()
    }


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _safetensors_span(name: str, entry: object, available: int) -> tuple[int, int, tuple[int, ...]]:
    """First byte, last byte and shape of one entry of the header, checked for consistency."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise WeightsError(f"entry {shown(name)} does not describe a tensor")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype != "F32":
        raise WeightsError(f"tensor {shown(name)} has type {shown(str(dtype))}, only F32 is read")
    if not isinstance(shape, list) or not _is_shape(shape):
        raise WeightsError(f"tensor {shown(name)} has an impossible shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not _are_counts(*offsets):
        raise WeightsError(f"tensor {shown(name)} has impossible offsets")
    begin, end = offsets
    if not begin <= end <= available or end - begin != math.prod(shape) * _ITEM.itemsize:
        raise WeightsError(f"tensor {shown(name)}: bytes {begin} to {end} of {available} do not fit {shape}")
    return begin, end, tuple(shape)


@dataclass(frozen=True)
class _Global:
    """One of the three known names, as an inert value that is never looked up."""

    name: str


@dataclass(frozen=True)
class _Storage:
    """A run of float32 numbers in its own member of the zip."""

    key: str
    count: int


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class _Mapping:
    """An OrderedDict, or a plain dict (allowed only in the metadata)."""

    ordered: bool
    items: dict[str, object]


def _describe(value: object) -> str:
    """A short description of what was found; never all of it, as it can be deeply nested."""
    match value:
        case _Global(name):
            return name.replace(" ", ".")
        case _Mapping(ordered, _):
            return "an OrderedDict" if ordered else "a dict"
        case str():
            return f"the text {shown(value)}"
        case _:
            return f"a value of type {type(value).__name__.strip('_')}"


def _read_zip(content: bytes) -> dict[str, NDArray[np.float32]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = _zip_members(archive, len(content))
            programs = [name for name in members if name.endswith("/data.pkl")]
            if len(programs) != 1:
                raise WeightsError("the zip is not one that PyTorch wrote: it needs one member data.pkl")
            folder = programs[0].removesuffix("data.pkl")
            if members[programs[0]].file_size > MAX_HEADER_BYTES:
                raise WeightsError(f"its data.pkl is larger than {MAX_HEADER_BYTES >> 20} MiB")
            order = folder + "byteorder"
            if order in members and archive.read(order) != b"little":
                raise WeightsError("its numbers are not little-endian")
            tensors = _replay(archive.read(programs[0]))
            storages = {
                tensor.storage: _read_storage(archive, members, f"{folder}data/", tensor.storage)
                for tensor in tensors.values()
            }
    except WeightsError:
        raise
    except _ZIP_DAMAGE as error:
        raise WeightsError(f"the zip is damaged ({shown(str(error))})") from None
    if sum(math.prod(tensor.size) for tensor in tensors.values()) * _ITEM.itemsize > MAX_FILE_BYTES:
        raise WeightsError("its tensors share their numbers so often that they would not fit in memory")
    return {name: _view(name, tensor, storages[tensor.storage]) for name, tensor in tensors.items()}


def _zip_members(archive: zipfile.ZipFile, available: int) -> dict[str, zipfile.ZipInfo]:
    """Members by name. As PyTorch stores them uncompressed, no member can be larger than the file."""
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(members) < len(infos):
        raise WeightsError("the zip has two members of one name")
    for info in infos:
        stored = info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
        if not stored or info.flag_bits & 1:
            raise WeightsError(f"member {shown(info.filename)} is compressed or encrypted, unlike PyTorch's")
    if sum(info.file_size for info in infos) > available:
        raise WeightsError("the zip's members overlap or reach beyond its end")
    return members


def _read_storage(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], folder: str, storage: _Storage
) -> NDArray[np.float32]:
    member = members.get(folder + storage.key)
    if member is None:
        raise WeightsError(f"storage {shown(storage.key)} is missing")
    if member.file_size != storage.count * _ITEM.itemsize:
        raise WeightsError(f"storage {shown(storage.key)} has {member.file_size} bytes, not 4 x {storage.count}")
    return np.frombuffer(archive.read(member), _ITEM)


def _view(name: str, tensor: _Tensor, storage: NDArray[np.float32]) -> NDArray[np.float32]:
    """The tensor's numbers, after a check that all are within the storage and none is used twice."""
    count = math.prod(tensor.size)
    last = tensor.offset + sum((n - 1) * step for n, step in zip(tensor.size, tensor.stride, strict=True))
    if tensor.offset > len(storage) or (count and last >= len(storage)):
        raise WeightsError(f"tensor {shown(name)} reaches beyond its storage of {len(storage)} numbers")
    if not count:
        return np.empty(tensor.size, np.float32)
    reach = 1
    for step, n in sorted((step, n) for step, n in zip(tensor.stride, tensor.size, strict=True) if n > 1):
        if step < reach:
            raise WeightsError(f"tensor {shown(name)}: stride {tensor.stride} does not fit size {tensor.size}")
        reach = step * n
    steps = [step * _ITEM.itemsize for step in tensor.stride]
    view = np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.size, steps, writeable=False)
    return np.array(view, dtype=np.float32, order="C")


class _Stack:
    """The pickle's stack, which refuses operations that a well-formed program does not use."""

    def __init__(self) -> None:
        self.items: list[object] = []

    def top(self) -> object:
        if not self.items or self.items[-1] is _MARK:
            raise WeightsError("its pickle is malformed: a value is missing")
        return self.items[-1]

    def pop(self) -> object:
        value = self.top()
        del self.items[-1]
        return value

    def pop_to_mark(self) -> list[object]:
        for at in range(len(self.items) - 1, -1, -1):
            if self.items[at] is _MARK:
                run = self.items[at + 1 :]
                del self.items[at:]
                return run
        raise WeightsError("its pickle is malformed: a mark is missing")


def _replay(program: bytes) -> dict[str, _Tensor]:
    """The flat mapping of tensors that the pickle describes; refuses every instruction not named here."""
    stack = _Stack()
    memo: dict[int, object] = {}
    push = stack.items.append
    position = 0
    try:
        for opcode, value, at in pickletools.genops(program):
            argument: Any = value
            position = at or 0
            match opcode.name:
                case "PROTO" | "STOP":
                    pass
                case "BINUNICODE" | "BININT" | "BININT1" | "BININT2":
                    push(argument)
                case "NEWTRUE" | "NEWFALSE":
                    push(opcode.name == "NEWTRUE")
                case "BINPUT" | "LONG_BINPUT":
                    memo[argument] = stack.top()
                case "BINGET" | "LONG_BINGET":
                    if argument not in memo:
                        raise WeightsError("its pickle is malformed: it reads a value that it never stored")
                    push(memo[argument])
                case "MARK":
                    push(_MARK)
                case "EMPTY_TUPLE":
                    push(())
                case "TUPLE1" | "TUPLE2" | "TUPLE3":
                    push(tuple([stack.pop() for _ in range(int(opcode.name[-1]))][::-1]))
                case "TUPLE":
                    push(tuple(stack.pop_to_mark()))
                case "EMPTY_DICT":
                    push(_Mapping(False, {}))
                case "SETITEM":
                    value, key = stack.pop(), stack.pop()
                    _set_items(stack.top(), [key, value])
                case "SETITEMS":
                    run = stack.pop_to_mark()
                    _set_items(stack.top(), run)
                case "GLOBAL":
                    if argument not in _GLOBALS:
                        raise WeightsError(f"it names {shown(argument.replace(' ', '.'))}; nothing was run")
                    push(_Global(argument))
                case "BINPERSID":
                    push(_storage(stack.pop()))
                case "REDUCE":
                    arguments, function = stack.pop(), stack.pop()
                    push(_reduce(function, arguments))
                case "BUILD":
                    state = stack.pop()
                    _check_state(stack.top(), state)
                case _:
                    raise WeightsError(f"its pickle has the instruction {opcode.name}, which no tensor needs")
    except WeightsError:
        raise
    except ValueError as error:
        raise WeightsError(f"its pickle is damaged ({shown(str(error))})") from None
    if position + 1 != len(program) or len(stack.items) != 1:
        raise WeightsError("its pickle is malformed: something is left over")
    return _only_tensors(stack.pop())


def _set_items(target: object, run: list[object]) -> None:
    if not isinstance(target, _Mapping) or len(run) % 2:
        raise WeightsError(f"its pickle sets items of {_describe(target)}")
    for key, value in zip(run[::2], run[1::2], strict=True):
        if not isinstance(key, str):
            raise WeightsError(f"its pickle uses {_describe(key)} as a name")
        if key in target.items:
            raise WeightsError(f"the name {shown(key)} occurs twice")
        target.items[key] = value


def _storage(identity: object) -> _Storage:
    match identity:
        case ("storage", _Global(name), str(key), str(), int(count)):
            if name == _FLOAT_STORAGE and _are_counts(count):
                return _Storage(key, count)
    raise WeightsError("its pickle refers to something other than a storage of float32 numbers")


def _reduce(function: object, arguments: object) -> object:
    """The inert value that represents ``function(*arguments)``."""
    match function, arguments:
        case _Global(name), () if name == _ORDERED_DICT:
            return _Mapping(True, {})
        case _Global(name), (_Storage() as held, int(offset), tuple(size), tuple(stride), bool(), _Mapping(_, hooks)):
            fits = len(size) == len(stride) and _is_shape(size) and _are_counts(offset, *stride)
            if name == _REBUILD_TENSOR and fits and not hooks:
                return _Tensor(held, offset, size, stride)
    raise WeightsError(f"its pickle calls {_describe(function)}, but not to make a tensor; nothing was run")


def _check_state(target: object, state: object) -> None:
    """Check the ``_metadata`` of a state_dict: version numbers from ``torch``, which are not used here."""
    match target, state:
        case _Mapping(True, _), _Mapping(False, items) if items.keys() == {"_metadata"}:
            return
    raise WeightsError(f"its pickle sets the state of {_describe(target)}")


def _only_tensors(found: object) -> dict[str, _Tensor]:
    if not isinstance(found, _Mapping) or not found.ordered:
        raise WeightsError(f"it holds {_describe(found)}, not an OrderedDict of tensors")
    tensors = {}
    for name, value in found.items.items():
        if not isinstance(value, _Tensor):
            raise WeightsError(f"entry {shown(name)} is {_describe(value)}, not a tensor")
        tensors[name] = value
    return tensors
