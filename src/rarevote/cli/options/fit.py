"""Which method is fitted, with what and where: its name, its parameters, gold, the engine and its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import MethodName, Settings, make_method, one_of
from rarevote.cli.show import fitting, say
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError
from rarevote.methods.registry import DEFAULT_METHOD

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.io.read.crowd import Crowd
    from rarevote.methods.base import Estimator

GoldFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Gold: labels that the method may learn from (task, label).")
]
UseGold = Annotated[bool, typer.Option("--use-gold/--ignore-gold", help="Whether to learn from gold in an export.")]


@dataclass(frozen=True)
class FitOptions:
    """What the command line says about the fit."""

    method: MethodName = DEFAULT_METHOD
    settings: Settings = None
    gold: GoldFile = None
    use_gold: UseGold = True

    @property
    def may_have_gold(self) -> bool:
        """Whether there is gold, or may be."""
        return self.gold is not None or self.use_gold

    def make(self) -> Estimator:
        """The method, not fitted yet; what there is not, or cannot be, is refused here."""
        from rarevote.api import refuse_gold

        estimator = make_method(self.method, self.settings)
        if self.gold is not None:
            refuse_gold(estimator)
        return estimator

    def fit(
        self,
        crowd: Crowd,
        estimator: Estimator,
        *,
        rare: str | None = None,
        quiet: bool = False,
        verbose: bool = False,
        **options: Any,
    ) -> Fitted:
        """Fit the method, telling what it learns from and how it gets on."""
        from rarevote.api import fit

        if crowd.gold and self.use_gold and self.gold is None and estimator.uses_gold and not quiet:
            count = counted(len(crowd.gold), "gold label")
            say(f"{self.method} learns from {count} that came with the votes (--ignore-gold leaves them out)")
        with fitting(f"fitting {self.method}", quiet=quiet, verbose=verbose) as callback:
            return fit(
                crowd, estimator, gold=self.gold, use_gold=self.use_gold, rare=rare, callback=callback, **options
            )


PANEL = "Where it runs"

EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local: this machine; dask: a cluster, results in a folder.",
        autocompletion=one_of("local", "dask"),
        rich_help_panel=PANEL,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine dask, the scheduler of a running cluster, such as tcp://head:8786. Without it a cluster of "
        "one process per core is started here.",
        rich_help_panel=PANEL,
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Keep the fit in this folder now and then; the same command resumes after a crash.",
        rich_help_panel=PANEL,
    ),
]
CheckpointEvery = Annotated[
    int,
    typer.Option(
        "--checkpoint-every", metavar="N", min=1, help="Iterations between two checkpoints.", rich_help_panel=PANEL
    ),
]


def check_engine(engine: str, scheduler: str | None) -> None:
    """Refuse an engine that there is not, and an address that nobody would use."""
    if engine not in ("local", "dask"):
        raise ParameterError(f"unknown engine {engine!r}: there are local and dask")
    if scheduler is not None and engine != "dask":
        raise ParameterError("--scheduler goes with --engine dask")
