"""Import paths of version 0.2 that moved: each forwards to the new module, warns, and will be removed in version 0.4.

>>> MOVED["rarevote.meaning.check"]
'rarevote.diagnose.check'
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: modules that the documentation of version 0.2 shows, and where their names are now
MOVED = {
    "rarevote.calibrate": "rarevote.compat.version_0_2",
    "rarevote.example": "rarevote.simulate.files",
    "rarevote.explain": "rarevote.compat.version_0_2",
    "rarevote.meaning": "rarevote.diagnose",
    "rarevote.meaning.agreement": "rarevote.diagnose.agreement",
    "rarevote.meaning.audit": "rarevote.audit",
    "rarevote.meaning.audit.journal": "rarevote.audit.journal",
    "rarevote.meaning.audit.words": "rarevote.audit.words",
    "rarevote.meaning.check": "rarevote.diagnose.check",
    "rarevote.meaning.diagnose": "rarevote.diagnose.diagnosis",
    "rarevote.meaning.errors_alike": "rarevote.diagnose.shared_errors",
    "rarevote.meaning.model_fit": "rarevote.diagnose.model_fit",
    "rarevote.report": "rarevote.compat.version_0_2",
    "rarevote.review": "rarevote.compat.version_0_2",
}


class _Forward(Loader):
    """Creates a module that forwards to another."""

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Warn at the import, and look names up in the current module."""
        old = module.__name__
        message = f"{old} is deprecated and will be removed in version 0.4: its names are in {MOVED[old]}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        today = import_module(MOVED[old])
        module.__dict__.update(__getattr__=lambda name: getattr(today, name), __dir__=lambda: dir(today))


class _Finder(MetaPathFinder):
    """Finds modules that have no file."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A module of version 0.2, as a package so that its submodules are also looked up."""
        return ModuleSpec(name, _Forward(), is_package=True) if name in MOVED else None


def forward() -> None:
    """Make the old paths importable; the finder comes last, so it costs nothing if a file is found."""
    sys.meta_path.append(_Finder())
