"""Which method is fitted, with what, for verbs that fit one: its name, its parameters, and known labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import MethodName, Settings, make_method
from rarevote.cli.show import fitting, say, warn
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.cli.options.read import Crowd
    from rarevote.crowd.annotations import Annotations
    from rarevote.methods.base import Estimator

GoldFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Known labels that the method may learn from (task, label).")
]
UseGold = Annotated[
    bool, typer.Option("--use-gold/--ignore-gold", help="Whether to learn from known answers in an export.")
]


@dataclass(frozen=True)
class FitOptions:
    """What the command line says about the fit."""

    method: MethodName = "cc-rasch"
    settings: Settings = None
    gold: GoldFile = None
    use_gold: UseGold = True

    def make(self) -> Estimator:
        """The method, not fitted yet; what there is not, or cannot be, is refused here."""
        estimator = make_method(self.method, self.settings)
        if self.gold is not None and not estimator.uses_gold:
            raise ParameterError(f"{self.method} cannot learn from known labels: leave --gold out, or choose cc-rasch")
        return estimator

    def known(self, crowd: Crowd, estimator: Estimator) -> dict[Any, Any] | None:
        """Known labels for the fit: those of the file, else those that came with the export."""
        if self.gold is not None:
            return crowd.known(self.gold)
        return crowd.gold if self.use_gold and estimator.uses_gold and crowd.gold else None

    def fit(
        self,
        estimator: Estimator,
        crowd: Crowd,
        known: dict[Any, Any] | None,
        *,
        quiet: bool,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        """Fit the method, telling what it learns from and how it gets on."""
        if known and self.gold is None and not quiet:
            say(f"{self.method} learns from {len(known):,} known answers in the export (--ignore-gold leaves them out)")
        warn_where_weak(self.method, crowd.annotations)
        with fitting(f"fitting {self.method}", quiet=quiet, verbose=verbose) as callback:
            estimator.fit(crowd.annotations, known, callback=callback, **options)


def warn_where_weak(method: str, crowd: Annotations) -> None:
    """Say so where CC-Rasch is known to be weak: few votes a task over many classes."""
    votes = crowd.n_annotations / crowd.n_tasks
    if method == "cc-rasch" and crowd.n_classes >= 5 and votes < 3:
        warn(
            f"{votes:.1f} votes per task over {crowd.n_classes} classes is very sparse: item "
            "difficulty can absorb all disagreement. Compare with --method majority-vote, or switch difficulty off: "
            "--set difficulty=None"
        )
