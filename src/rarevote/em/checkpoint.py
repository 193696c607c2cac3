"""Checkpoints of a fit on disk, so that the same command resumes after a crash.

A checkpoint is a folder per saved iteration::

    DIR/round-000020/local-00000.npz ...   the local state of every shard, written by the holder of the shard
    DIR/round-000020/shared.npz            the shared parameters
    DIR/round-000020/loop.json             the rest of the loop's state, and the identity of the fit

Every file is written under a temporary name, flushed to the disk and renamed; ``loop.json`` comes last. So a folder
with ``loop.json`` is complete, and one without it is left from a crash and ignored. The previous folder is removed
only then. Pickle is not used: arrays are read with ``allow_pickle=False``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from rarevote.em.model import Gold
from rarevote.errors import InputError, ParameterError
from rarevote.io.arrays import load_arrays, save_arrays
from rarevote.io.json_text import parse_json
from rarevote.io.write.atomic import make_folder, replacing

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Annotations
    from rarevote.em.engine import Engine

Shared = TypeVar("Shared")

_LAYOUT = 2  # version of the files; other versions cannot be read
_NOT_WHAT_IS_FITTED = ("n_iter", "n_jobs")  # a fit can be resumed with more iterations and on another number of cores


@dataclass(frozen=True)
class LoopState(Generic[Shared]):
    """What a resumed fit needs besides the engine's current local state: the state before the last evaluation."""

    shared: Shared
    history: list[float]
    values: list[float]
    n_passes: int
    n_damped: int
    longest: float  # the limit of the next jump


class Checkpoint:
    """Saves a fit in a folder every ``every`` iterations, and loads it.

    Args:
        folder: the folder, used for one fit only.
        every: iterations between two checkpoints. They affect the fit: extrapolation restarts at each, so
            only fits with the same ``every`` are equal to the last bit.
        identity: what is fitted (method, parameters, data), by name; a checkpoint of anything else is refused.
    """

    def __init__(self, folder: str | Path, every: int = 10, identity: Mapping[str, Any] | None = None) -> None:
        if not isinstance(every, int) or every < 1:
            raise ParameterError(f"a checkpoint every {every!r} iterations: a whole number of at least 1 is needed")
        self.folder = Path(folder)
        self.every = every
        self.identity = {"layout": _LAYOUT, "every": every, **(identity or {})}

    def due(self, iteration: int) -> bool:
        """Whether to save the fit after this iteration."""
        return iteration % self.every == 0

    def load(self, engine: Engine[Shared, Any, Any], like: Shared) -> LoopState[Shared] | None:
        """The saved fit, or None; the engine loads its local state from it.

        Raises:
            InputError: the checkpoint is of other data or parameters, or damaged.
        """
        folder = self._newest()
        if folder is None:
            return None
        path = folder / "loop.json"
        try:
            saved = parse_json(path.read_text(encoding="utf-8"))
            identity, state = dict(saved["identity"]), dict(saved["state"])
            if saved["checksum"] != _checksum(identity, state):
                raise ValueError("its checksum does not match")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: a damaged checkpoint ({error}); remove {self.folder} to start again") from None
        self._refuse_others(identity)
        engine.load(folder)
        return LoopState(_read_shared(folder / "shared.npz", like), **state)

    def save(self, engine: Engine[Shared, Any, Any], state: LoopState[Shared]) -> None:
        """Save the fit; the engine writes its local state."""
        folder = self.folder / f"round-{len(state.history) + 1:06d}"
        if folder == self._newest():
            return  # resumed from just here
        make_folder(folder)
        engine.save(folder)
        save_arrays(folder / "shared.npz", _shared_arrays(state.shared))
        loop = {name: value for name, value in vars(state).items() if name != "shared"}
        text = json.dumps({"identity": self.identity, "state": loop, "checksum": _checksum(self.identity, loop)})
        with replacing(folder / "loop.json") as temporary:
            temporary.write_text(text, encoding="utf-8")
        for other in self.folder.glob("round-*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)

    def clear(self) -> None:
        """Remove what was saved: the fit is done."""
        for folder in self.folder.glob("round-*"):
            shutil.rmtree(folder, ignore_errors=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _newest(self) -> Path | None:
        whole = [folder for folder in self.folder.glob("round-*") if (folder / "loop.json").is_file()]
        return max(whole, default=None)

    def _refuse_others(self, saved: Mapping[str, Any]) -> None:
        wanted = json.loads(json.dumps(self.identity))
        differ = [name for name in {**wanted, **saved} if wanted.get(name) != saved.get(name)]
        if differ:
            shown = "; ".join(f"{name} was {saved.get(name)!r}, is {wanted.get(name)!r}" for name in differ)
            raise InputError(
                f"{self.folder}: a checkpoint of another fit ({shown}). Choose another folder, or remove this one to "
                "start again"
            )


# --------------------------------------------------------------------------------------------------------------------
# identity of a fit


def identity_of(method: str, parameters: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The identity of a fit: the method, the parameters that affect the fit, and a digest of the data."""
    deciding = {name: value for name, value in parameters.items() if name not in _NOT_WHAT_IS_FITTED}
    return {"method": method, **{name: repr(value) for name, value in deciding.items()}, "data": data}


def digest_of(annotations: Annotations, gold: Gold) -> str:
    """A fingerprint of an encoded crowd: its votes, not its names."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((annotations.n_tasks, annotations.n_workers, annotations.n_classes)).encode())
    for array in (annotations.task_ptr, annotations.worker, annotations.label, gold):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _checksum(identity: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Checksum of the contents of ``loop.json``; arrays have their own checksums (:mod:`rarevote.io.arrays`)."""
    text = json.dumps([identity, state], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _shared_arrays(shared: Any) -> dict[str, Any]:
    return shared._asdict() if hasattr(shared, "_asdict") else {"value": shared}


def _read_shared(path: Path, like: Any) -> Any:
    """Shared parameters of the type of ``like``: a named tuple of arrays and numbers, or a single number."""
    found = load_arrays(path)
    wanted = _shared_arrays(like)
    if set(found) != set(wanted):
        raise InputError(f"{path}: from another method or version: it holds {sorted(found)}, not {sorted(wanted)}")
    for name, entry in wanted.items():
        like_it = np.asarray(entry)
        if (found[name].shape, found[name].dtype) != (like_it.shape, like_it.dtype):
            raise InputError(
                f"{path}: from other data or another method: {name} is {found[name].shape} of another type"
            )
    values = {
        name: found[name] if isinstance(entry, np.ndarray) else type(entry)(found[name].item())
        for name, entry in wanted.items()
    }
    return type(like)(**values) if hasattr(like, "_asdict") else values["value"]
