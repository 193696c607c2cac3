"""The message about a library that cannot be loaded."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def load_failure(error: ImportError) -> str:
    """A message with the failing library, its version, and what to do.

    A missing optional library is not covered here: that is a ``MissingExtraError``.
    """
    library = (error.name or "").partition(".")[0]
    try:
        installed = version(library) if library else ""
    except PackageNotFoundError:
        return f"{error}: install it (pip install {library})"
    is_lacking = isinstance(error, ModuleNotFoundError) or "cannot import name" in str(error)
    if is_lacking and library != "rarevote":
        return (
            f"{error}: this rarevote does not work with {library} {installed}; install an earlier {library} "
            f'(pip install "{library}<{installed}") or a later rarevote'
        )
    damaged = f"{library} {installed} may be damaged (pip install --force-reinstall {library}); " if library else ""
    return f"a library cannot be loaded ({error}); {damaged}where memory is limited, allow at least 2 GB"
