"""Which method is fitted, with what, for verbs that fit one: its name, its parameters, and gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import MethodName, Settings, make_method
from rarevote.cli.show import fitting, say
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
            count = f"{len(crowd.gold):,}"
            say(f"{self.method} learns from {count} gold labels in the export (--ignore-gold leaves them out)")
        with fitting(f"fitting {self.method}", quiet=quiet, verbose=verbose) as callback:
            return fit(
                crowd, estimator, gold=self.gold, use_gold=self.use_gold, rare=rare, callback=callback, **options
            )
