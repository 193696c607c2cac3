"""The options of the fit: method, parameters, gold, and engine.

Contradictions are refused before anything is read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.options.verb import PATH, Option, one_of, takes
from rarevote.cli.show import say
from rarevote.crowd.grades import Grades
from rarevote.crowd.words import capital, counted
from rarevote.errors import ParameterError
from rarevote.methods.registry import (
    DEFAULT_METHOD,
    METHODS,
    ORDERED_METHOD,
    find_method,
    require_capability,
    which_methods,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rarevote.api import Fitted
    from rarevote.each import FittedEach
    from rarevote.io.read.crowd import Crowd
    from rarevote.methods.base import Estimator


@dataclass(frozen=True)
class FitOptions:
    """The options of the fit."""

    method: str  # empty or None if none is chosen
    ordered: str | None
    settings: Sequence[str]
    gold: str | None
    use_gold: bool
    features: str | None = None
    features_id: str | None = None
    features_ids: str | None = None
    features_group: str | None = None
    pred_probs: str | None = None
    pred_probs_id: str | None = None
    rare: str | None = None

    def __post_init__(self) -> None:
        if not self.method:
            object.__setattr__(self, "method", DEFAULT_METHOD if self.ordered is None else ORDERED_METHOD)

    @property
    def grades(self) -> Grades | None:
        """The order of the classes, if one is given."""
        return None if self.ordered is None else Grades.of(self.ordered)

    @property
    def of_features(self) -> dict[str, str | None]:
        """The features, by the arguments of :func:`rarevote.fit`."""
        return {name: getattr(self, name) for name in FEATURE_NAMES}

    @property
    def has_features(self) -> bool:
        """Whether there are features of the items, or predicted probabilities."""
        return self.features is not None or self.pred_probs is not None

    @property
    def may_have_gold(self) -> bool:
        """Whether there is or can be gold."""
        return self.gold is not None or self.use_gold

    def make(self) -> Estimator:
        """The method, not fitted yet; invalid names and options are refused here."""
        estimator = find_method(self.method).load()()
        for setting in self.settings:
            parameter, sign, text = setting.partition("=")
            if not sign:
                raise ParameterError(f"--set must be NAME=VALUE, got {setting!r}")
            estimator.set_params(**{parameter.strip(): _value(text.strip())})
        if estimator.capabilities.ordered:
            if self.grades is not None:
                estimator.set_params(ordered=list(self.grades.names))
            estimator.own_rule()  # refuses a method for grades without their order
        if self.gold is not None:
            require_capability(estimator, "gold", "--gold")
        for option, given in (("--features", self.features), ("--pred-probs", self.pred_probs)):
            if given is not None:
                require_capability(estimator, "features", option)
        return estimator

    def fit(
        self,
        crowd: Crowd,
        estimator: Estimator,
        *,
        check: Callable[[list[Any]], None] | None = None,
        **options: Any,
    ) -> Fitted:
        """Fit the method, and print what it learns from.

        Args:
            check: called with all classes, those of the gold included, before the fit, which takes time.
            **options: as for :func:`rarevote.fit`.
        """
        from rarevote.api import fit

        gold: Any = self.gold
        if check is not None:
            if gold is not None:  # read once: it can be a pipe
                gold, crowd = crowd.known(gold), crowd.with_files(gold)
            check(self.all_classes(crowd, gold))
        if crowd.gold and self.use_gold and self.gold is None and estimator.capabilities.gold:
            count = counted(len(crowd.gold), "gold label")
            say(f"{self.method} learns from {count} in the export (--ignore-gold ignores gold)")
        fitted = fit(
            crowd,
            estimator,
            ordered=self.ordered,
            gold=gold,
            use_gold=self.use_gold,
            rare=self.rare,
            **self._given_features(),
            **options,
        )
        if fitted.features_ is not None:
            say(capital(fitted.features_.reason))
        return fitted

    def fit_each(self, data: Crowd | Mapping[str, Crowd], estimator: Estimator) -> FittedEach:
        """Fit the method to each problem: the labels of a crowd, or questions."""
        from rarevote.each import fit_each

        fitted = fit_each(
            data,
            estimator,
            ordered=self.ordered,
            gold=self.gold,
            use_gold=self.use_gold,
            rare=self.rare,
            **self._given_features(),
        )
        for name, one in fitted.items():
            if one.features_ is not None:
                say(f"{name}: {capital(one.features_.reason)}")
        return fitted

    def all_classes(self, crowd: Crowd, gold: Mapping[Any, Any] | None = None) -> list[Any]:
        """The classes of the votes and of the gold: ``gold``, or that of the export."""
        known = gold if gold is not None else crowd.gold if self.use_gold else {}
        return list(dict.fromkeys([*crowd.annotations.classes.tolist(), *known.values()]))

    def fits(
        self, crowd: Crowd, estimator: Estimator, *, check: Callable[[list[Any]], None] | None = None
    ) -> Mapping[str, Fitted]:
        """A fit for each label of a crowd, by its name; the only fit of an ordinary crowd has the name "".

        Args:
            check: as for :meth:`fit`; the classes of a label are always yes and no.
        """
        if crowd.choices:
            return self.fit_each(crowd, estimator)
        return {"": self.fit(crowd, estimator, check=check)}

    def _given_features(self) -> dict[str, Any]:
        if not self.has_features:
            return self.of_features  # options for them are refused
        # The column of ids can have the name of the task column in the votes.
        return {**self.of_features, "columns": click.get_current_context().params.get("columns")}


def _value(text: str) -> Any:
    """A parameter's value: a Python literal if possible, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


FEATURE_NAMES = ("features", "features_id", "features_ids", "features_group", "pred_probs", "pred_probs_id")

_of_features = partial(click.option, cls=Option, section="Features of the items")
feature_options = (
    _of_features(
        "--features",
        metavar="FILE",
        help="Numbers about the items, with or without votes: Parquet or CSV with a column of ids and columns of "
        "numbers (or one column of lists), or .npy. Used only if they predict held-out votes. With "
        f"{which_methods('features')}.",
    ),
    _of_features("--features-id", metavar="COLUMN", help="The ids in --features. Default: task."),
    _of_features("--features-ids", metavar="FILE", help="The ids of a .npy file, one per line."),
    _of_features(
        "--pred-probs",
        metavar="FILE",
        help="Probabilities that a model predicts, out of sample: a column of ids and one for each class.",
    ),
    _of_features("--pred-probs-id", metavar="COLUMN", help="The ids in --pred-probs. Default: task."),
)
_group_option = _of_features(
    "--features-group",
    metavar="COLUMN",
    help="A column of --features with the group of each item (document, patient).",
)
ordered_option = click.option(
    "--ordered",
    metavar="LOW,...,HIGH",
    help="The classes are grades in this order, such as low,medium,high or 1..5; others are outside the scale.",
)
_FIT = (
    click.option(
        "--method",
        "-m",
        help=f"Aggregation method (see: rarevote methods). Default: {DEFAULT_METHOD}; with --ordered {ORDERED_METHOD}.",
        shell_complete=one_of(*METHODS),
    ),
    ordered_option,
    click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="A parameter of the method, such as prior=estimate. Repeatable.",
    ),
    click.option(
        "--gold",
        metavar="FILE",
        help=f"Gold: labels that the method learns from (task, label). With {which_methods('gold')}.",
    ),
    click.option("--use-gold/--ignore-gold", default=True, help="Whether to learn from gold in an export."),
    *feature_options,
    _group_option,
)


def _rare_option(*names: str) -> Any:
    return click.option(
        *names,
        "rare",
        metavar="CLASS",
        help='The class that matters; with --ordered also a tail such as ">=4". Default: the class with the fewest '
        "votes.",
    )


with_new_features = takes(dict, *feature_options)
with_fit = takes(FitOptions, *_FIT)
with_fit_and_rare = takes(FitOptions, *_FIT, _rare_option("--rare"))
#: the same, with ``--find`` as another name of ``--rare``
with_fit_and_find = takes(FitOptions, *_FIT, _rare_option("--rare", "--find"))


@dataclass(frozen=True)
class EngineOptions:
    """The options of the engine."""

    engine: str
    scheduler: str | None
    checkpoint: Path | None
    checkpoint_every: int

    def __post_init__(self) -> None:
        if self.engine not in ("local", "dask"):
            raise ParameterError(f"unknown engine {self.engine!r}: choose local or dask")
        if self.scheduler is not None and self.engine != "dask":
            raise ParameterError("--scheduler needs --engine dask")


_option = partial(click.option, cls=Option, section="Where it runs")

with_engine = takes(
    EngineOptions,
    _option(
        "--engine",
        default="local",
        help=f"local: this machine; dask: a cluster, results in a folder, with {which_methods('dask')}.",
        shell_complete=one_of("local", "dask"),
    ),
    _option(
        "--scheduler",
        metavar="ADDRESS",
        help="With --engine dask, the scheduler of a running cluster, such as tcp://head:8786. Without it a cluster of "
        "one process per core is started here.",
    ),
    _option(
        "--checkpoint",
        metavar="DIR",
        type=PATH,
        help="Save the fit in this folder at intervals; the same command resumes after a crash. With "
        f"{which_methods('checkpoint')}.",
    ),
    _option(
        "--checkpoint-every",
        metavar="N",
        type=click.IntRange(min=1),
        default=10,
        help="Iterations between two checkpoints.",
    ),
)
