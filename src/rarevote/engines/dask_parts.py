"""A table in parts, and how a dask worker reads one: Parquet by row groups, CSV by file, a dask frame by partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Missing
from rarevote.errors import InputError, MissingValuesError, RarevoteError
from rarevote.io.columns import ALIASES, find_columns
from rarevote.io.encode_files import Choice, loaded
from rarevote.io.sources import format_of_name, open_sources
