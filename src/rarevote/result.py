"""The result of a decision: one label per task, as rows, as figures, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.arguments import with_named_arguments
from rarevote.crowd.names import as_name_array, object_array, some_names, unmatched
from rarevote.crowd.numerics import picked
from rarevote.crowd.rare import RareClass
from rarevote.crowd.words import Described, counted
from rarevote.decide.columns import grade_columns, result_rows
from rarevote.decide.decider import Note
from rarevote.decide.decision import (
    Decision,
    class_figures,
    confidence_of,
    decision_figures,
    rare_figures,
    with_expectations,
)
from rarevote.decide.expectations import Expectations, expectations
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.rules import ABSTAINED, Rule
from rarevote.decide.tail import Found, tail_flags
from rarevote.errors import ParameterError, how, warn_user
from rarevote.io.framed import Framed
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.page.plots import Plots
from rarevote.progress import Watch, shows_progress

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.audit import Audit
    from rarevote.decide.recall_target import RecallTarget
    from rarevote.decide.review import ReviewPlan
    from rarevote.diagnose.explain import Explanation
    from rarevote.diagnose.leaning import Leaning
    from rarevote.io.write.soft_labels import SoftLabels
    from rarevote.page.report import PageParts, Report


@with_named_arguments
@dataclass(frozen=True, eq=False, repr=False)
class Result(Described, Framed):
    """One answer per item, and what to expect of it.

    Items with votes come first, in the order of the fit's ``annotations``, then those without votes.

    Attributes:
        fitted: the fit.
        rule: how it was decided.
        probabilities: the probabilities that it used.
        codes: class number of each item, -1 for no answer, (n).
        description: one sentence on how it was decided.
        target: the outcome of a recall target.
        n_guarded: items whose top label had no votes, so that the best voted label was used.
        notes: cautions.
        cannot_answer: whether the votes cannot show who is right, so that the labels are the majority vote.
        flagged: items that the decision gives to the class that matters, (n): those with its label, or flagged for a
            tail of grades.
        is_own: whether the rule is the method's own.
    """

    fitted: Fitted
    rule: Rule
    probabilities: Probabilities
    codes: NDArray[np.int64]
    description: str
    target: RecallTarget | None = None
    n_guarded: int = 0
    notes: tuple[Note, ...] = ()
    cannot_answer: bool = False
    flagged: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))
    is_own: bool = True

    @property
    def warnings(self) -> tuple[str, ...]:
        """Cautions, one sentence each."""
        return tuple(note.description for note in self.notes)

    @property
    def tasks(self) -> Any:
        """Names of the items."""
        votes = self.fitted.annotations
        if not len(votes.unanswered):
            return votes.tasks
        return as_name_array([*votes.tasks.tolist(), *votes.unanswered.tolist()])

    @property
    def n_unvoted(self) -> int:
        """Number of items without votes, which have no label unless they have features."""
        return len(self.fitted.annotations.unanswered)

    @property
    def labels(self) -> NDArray[Any]:
        """Name of the decided class per item; empty text if there is no label."""
        classes = self.fitted.annotations.classes
        if not (self.codes == ABSTAINED).any():
            return np.asarray(classes[self.codes])
        names = object_array([*classes.tolist(), ""])  # index -1 picks the last one
        return np.asarray(names[self.codes])

    @property
    def confidence(self) -> NDArray[Any]:
        """Probability of the decided class, or of the most probable class if there is no label."""
        return confidence_of(self.probabilities.p, self.codes)

    @cached_property
    def decision(self) -> Decision:
        """The decision with its expected recall and precision."""
        costs = self.rule.costs(self.fitted.annotations.classes)
        return with_expectations(
            self.probabilities, self.codes, self.description, costs, self.fitted.rare, self.target, self.flagged
        )

    def expect(self, name: Any = None) -> Expectations:
        """Expected recall, precision and prevalence of a class (default: the one that matters), with intervals.

        For a tail of grades, they are about the items flagged for it (:meth:`find`).
        """
        rare = self.fitted.rare if name is None else self.fitted.rare_class(name, what="name")
        if rare.codes == self.fitted.rare.codes and rare.is_tail == self.fitted.rare.is_tail:
            return self.decision.of_rare
        if not rare.is_tail:
            return self.decision.expected[rare.code]
        flags = self.find(name).flagged
        return expectations(self.probabilities.against_the_rest(rare), np.where(flags, 0, ABSTAINED), 0)

    def find(self, name: Any) -> Found:
        """The items of a class, or of a tail of grades such as ``">=severe"``, and the probability of each.

        One fit serves every cut of the scale: the probability of a tail is the sum over its grades.
        """
        fitted, rare = self.fitted, self.fitted.rare_class(name, what="name")
        if rare.codes == fitted.rare.codes and rare.is_tail == fitted.rare.is_tail:
            flagged = self.flagged
        elif rare.is_tail:
            flagged = tail_flags(rare, self.probabilities.p, self.probabilities.mean) & (self.codes != ABSTAINED)
        else:
            flagged = rare.holds(self.codes)
        return Found(rare.name, self.tasks, rare.mass(self.probabilities.p), np.asarray(flagged))

    @cached_property
    def leaning(self) -> Leaning:
        """Whether the evidence favours shared or independent errors of annotators."""
        from rarevote.diagnose.leaning import leaning_of_votes

        return leaning_of_votes(self.fitted.annotations, self.probabilities.gold, self.fitted.crowd.models)

    @property
    def worlds(self) -> tuple[str, ...]:
        """What to expect of the class that matters with shared and with independent errors, as text."""
        from rarevote.diagnose.leaning import world_sentences

        return world_sentences(self.decision, self.leaning)

    def columns(self, *, with_posterior: bool = False, with_prior: bool = False) -> dict[str, Any]:
        """One row per item: task, label, confidence, votes, ``p:<class>``, columns to show, grade, decision.

        ``p:`` is the probability of every class and ``confidence`` that of the label; ``grade``, if classes are
        grades, is the mean grade; ``p>=c`` and ``flag>=c`` are the probability of the tail that matters, and whether
        the item is flagged for it; ``decision`` says how an item was decided, if not by the method's own rule.

        Args:
            with_posterior: whether to add ``posterior:<class>``, as the method's authors publish it.
            with_prior: whether to add ``prior:<class>``, the probability from features alone.

        Raises:
            ParameterError: the fit has no features, so there are no priors.
        """
        fitted = self.fitted
        outcome = fitted.method.feature_outcome
        n_votes = np.concatenate([np.diff(fitted.annotations.task_ptr), np.zeros(self.n_unvoted, dtype=np.int64)])
        rows = result_rows(
            self.tasks,
            fitted.annotations.classes,
            self.labels,
            self.probabilities.p,
            self.confidence,
            n_votes,
            fitted.crowd.shown,
        )
        if fitted.grades is not None:
            rows |= grade_columns(
                fitted.grades, fitted.rare, self.probabilities.p, self.flagged, fitted.annotations.classes
            )
        if not self.is_own or outcome is not None:
            rows["decision"] = self._decided_by()
        if with_posterior:
            unvoted = np.full((self.n_unvoted, fitted.annotations.n_classes), np.nan)
            if outcome is not None and outcome.record.used:
                unvoted = outcome.pool_posterior
            posterior = np.concatenate([fitted.method.posterior_, unvoted])
            for k, name in enumerate(fitted.annotations.classes.tolist()):
                rows[f"posterior:{name}"] = posterior[:, k]
        if with_prior:
            if outcome is None:
                given = how("features or pred_probs", "--features or --pred-probs")
                raise ParameterError(f"{how('with_prior', '--with-prior')} needs {given}")
            for k, name in enumerate(fitted.annotations.classes.tolist()):
                rows[f"prior:{name}"] = outcome.priors[:, k]
        return rows

    @property
    def _column_dtypes(self) -> Mapping[str, Any]:
        return self.fitted.crowd.source.dtypes

    def _decided_by(self) -> NDArray[Any]:
        """How each item was decided: "none" (no answer), "gold" if it was known, "features" if it has no votes."""
        source = np.full(len(self.codes), self.rule.name, dtype=object)
        if self.probabilities.has_features:
            source[self.fitted.annotations.n_tasks :] = "features"
        source[self.codes == ABSTAINED] = "none"
        source[self.probabilities.gold >= 0] = "gold"
        return source

    def write(
        self,
        path: str | Path,
        *,
        with_posterior: bool = False,
        with_prior: bool = False,
        spreadsheet_safe: bool = False,
    ) -> None:
        """Write the rows to a file, in the format of its ending; an interrupted call leaves no partial file."""
        from rarevote.io.write.columns import write_columns

        self._refuse_overwriting(path)
        rows = self.columns(with_posterior=with_posterior, with_prior=with_prior)
        write_columns(rows, Path(path), spreadsheet_safe=spreadsheet_safe)

    def _refuse_overwriting(self, path: str | Path | None, truth: Any = None, **folder: Any) -> None:
        """Refuse, before any work, a file or folder that the votes, the gold or the truth were read from."""
        if path is not None:
            refuse_overwriting(path, self.fitted.crowd.with_files(truth).files, **folder)

    def write_back(self, path: str | Path) -> int:
        """Write the labels as predictions of "rarevote" for the platform to import; returns the number of items.

        Importing a Label Studio file into the project of the export would duplicate its tasks: use
        ``rarevote push label-studio`` for that.
        """
        from rarevote.io.platforms.write_back import write_back

        self._refuse_overwriting(path)
        self.fitted.crowd.check_way_back(Path(path))
        crowd = self.fitted.crowd
        assert crowd.export is not None
        # An item without an answer gets no prediction: a platform would read empty text as a class.
        # Items without votes or features have only the class shares, which are not a prediction either.
        n_items = len(self.codes) if self.probabilities.has_features else crowd.annotations.n_tasks
        rows = np.flatnonzero(self.codes[:n_items] != ABSTAINED)
        scores = self.confidence[rows].tolist()
        return write_back(crowd.export, self.tasks[rows], self.labels[rows], scores, path)

    def soft_labels(self) -> SoftLabels:
        """Probability of every class (``p:``) of items with votes, as arrays for training."""
        from rarevote.io.write.soft_labels import SoftLabels

        votes = self.fitted.annotations
        return SoftLabels(votes.tasks, votes.classes, self.probabilities.p[: votes.n_tasks], self.fitted.crowd.files)

    def review(self, max_review: int, path: str | Path | None = None, *, form: str = "table") -> ReviewPlan:
        """The tasks whose review lowers the expected cost most; also written to a file if one is named.

        Args:
            max_review: the largest number of tasks to list.
            path: where to write the list.
            form: "table", "label-studio" or "argilla".
        """
        self._refuse_overwriting(path)
        return self._planned(self.rule.costs(self.fitted.annotations.classes), path, form, max_review=max_review)

    def _planned(self, costs: NDArray[np.float64], path: str | Path | None, form: str, **limits: Any) -> ReviewPlan:
        """The tasks most worth reviewing, written to a file if one is named."""
        from rarevote.decide.review import plan_review, write_review

        fitted = self.fitted
        plan = plan_review(
            self.probabilities, self.codes, costs, fitted.annotations, self.tasks, abilities=self._abilities, **limits
        )
        if path is not None:
            write_review(plan, Path(path), form, fitted.crowd.to_show)
        return plan

    @cached_property
    def _abilities(self) -> NDArray[np.float64]:
        """How well each annotator recognises each class, as log odds, (n_workers, n_classes).

        This is the lower end of the interval, so that three lucky votes do not count as ability.
        """
        from rarevote.diagnose.workers import logit, recognition

        votes = self.fitted.annotations
        return logit(recognition(votes, self.probabilities.p[: votes.n_tasks])[1])

    def plan(
        self,
        budget: int,
        path: str | Path | None = None,
        *,
        votes_per_item: int = 1,
        named: Iterable[Any] | None = None,
        find: Any = None,
        form: str = "table",
    ) -> ReviewPlan:
        """Plan further votes: the tasks most worth labelling, again or for the first time, and whom to ask.

        A task without votes is treated as one of the most frequent class, whatever its features are. For each task,
        the plan names annotators who have not voted on it and who best distinguish its two most probable classes. No
        annotator gets more than a fifth of the votes (with fewer than ten annotators: twice an equal share). If no such
        annotator is left, the plan names none: a new annotator is needed.

        Args:
            budget: number of further votes.
            path: where to write the list.
            votes_per_item: further votes for each task; a remainder of the budget is not spent.
            named: the annotators who are available. Default: all who have voted.
            find: a class to look for: tasks without votes are listed by their features, the most probable first.
            form: "table", "label-studio" or "argilla".

        Raises:
            ParameterError: a number that is not whole or is below 1, a budget that is too small for one task, an
                unknown annotator, or ``find`` without features that are used.
        """
        from rarevote.decide.review import (
            available_workers,
            check_budget,
            shared_load,
            unlabelled_tasks,
            unseen_of,
        )

        check_budget(budget, votes_per_item)
        self._refuse_overwriting(path)
        crowd = self.fitted.annotations
        available = None if named is None else available_workers(named, crowd)
        n_available = crowd.n_workers if available is None else len(available)
        n_tasks = min(budget // votes_per_item, len(self.codes))
        worth = None
        if find is not None:
            code = RareClass.of(crowd.classes, crowd.class_votes, find).code
            worth = unseen_of(self.probabilities, crowd, code)
        plan = self._planned(
            self.rule.stakes(crowd.classes, self.probabilities.mean),
            path,
            form,
            max_review=n_tasks,
            n_annotators=votes_per_item,
            max_each=shared_load(n_tasks * votes_per_item, n_available),
            available=available,
            worth=worth,
            unlabelled=unlabelled_tasks(self.probabilities, crowd),
        )
        return replace(plan, votes_per_item=votes_per_item)

    def explain(self, task: Any) -> Explanation:
        """Explain the label of a task, vote by vote."""
        from rarevote.diagnose.explain import explain, find_task

        fitted = self.fitted
        number = find_task(fitted.annotations, task, fitted.crowd.title, free=self.probabilities.free)
        return explain(
            fitted.method,
            number,
            int(self.codes[number]),
            self.probabilities.p[number],
            is_gold=bool(self.probabilities.gold[number] >= 0),
            shown=fitted.crowd.shown,
        )

    @shows_progress
    def report(
        self,
        path: str | Path,
        *,
        truth: Any = None,
        charts: str | Path | None = None,
        source: str | None = None,
        audit: Audit | None = None,
        progress: Watch = False,
        anonymous: bool = False,
    ) -> Report:
        """Write the report page.

        Args:
            path: ends in ``.html``.
            truth: labels to check the result against; never used in the fit.
            charts: a folder for every chart as SVG and PNG.
            source: the name of the data on the page.
            audit: an audit of these labels, to show what it proved.
            progress: as for :func:`rarevote.fit`.
            anonymous: whether annotators are called A1, A2, ... on the page and in its tables.
        """
        from rarevote.page.report import write_report

        self._refuse_overwriting(path, truth)
        self._refuse_overwriting(charts, truth, replaced=(".svg", ".png"))
        parts = self.page_parts(truth, audit, anonymous=anonymous)
        return write_report(parts, path, source=source or self.fitted.crowd.title, charts=charts)

    def page_parts(self, truth: Any = None, audit: Audit | None = None, *, anonymous: bool = False) -> PageParts:
        """The contents of the page about this result; arguments are as for :meth:`report`."""
        from rarevote.page.parts import aliases_of, page_parts

        aliases = aliases_of(self.fitted.annotations) if anonymous else None
        return page_parts(self, None if truth is None else self._known(truth), audit, aliases=aliases)

    def score(self, truth: Any) -> dict[str, Any]:
        """Figures that compare the labels with the truth."""
        from rarevote.scoring.decided import scores_of

        classes = self.fitted.annotations.classes
        return scores_of(self.tasks, self.codes, classes, self._known(truth), self.fitted.rare, self.flagged)

    def _known(self, truth: Any) -> dict[Any, Any]:
        """The truth by task; warns about labels that are not classes."""
        known = self.fitted.crowd.known(truth)
        classes = self.fitted.annotations.classes
        if strange := unmatched(list(dict.fromkeys(known.values())), classes):
            said, known_classes = some_names(map(repr, strange)), some_names(classes)
            warn_user(f"the truth contains {said}, which is not a class: the classes are {known_classes}")
        return known

    def summary(self, *, expected: bool = True) -> dict[str, Any]:
        """The figures of the result, by name.

        Args:
            expected: whether to include what to expect of the decision, which takes longer than all other figures.
        """
        fitted, crowd = self.fitted, self.fitted.annotations
        labels = np.bincount(self.codes[self.codes >= 0], minlength=crowd.n_classes)
        classes = class_figures(crowd.classes, labels, crowd.class_votes, len(self.codes))
        figures: dict[str, Any] = {
            "rare": rare_figures(
                fitted.rare, crowd.class_votes, int(self.flagged.sum()), self._n_flagged_unvoted, len(self.codes)
            ),
            "method": fitted.method.method_name,
            "parameters": fitted.method.get_params(),
            "n_tasks": len(self.codes),
            "n_without_votes": self.n_unvoted,
            "n_workers": crowd.n_workers,
            "n_annotations": crowd.n_annotations,
            "classes": classes,
            "decided_by": self.description,
            "n_guarded": self.n_guarded,
            "guard": self.rule.guard,
            "cannot_answer": self.cannot_answer,
            "warnings": list(self.warnings),
            "n_iter": fitted.method.n_iter_,
            "converged": fitted.method.converged_,
            "status": fitted.method.status_,
        }
        if fitted.grades is not None:
            figures["ordered"] = list(fitted.grades.names)
            figures |= fitted.method.order_figures()
        for name, record in fitted.feature_figures.items():
            figures[name] = {**record, "labels_without_a_vote": self.n_without_a_vote}
        if expected:
            figures["decision"] = {**decision_figures(self.decision), "leans_to": self.leaning.world}
        return figures

    @property
    def _n_flagged_unvoted(self) -> int:
        """Number of items with votes, but none for the rare class, that are flagged for it; gold is left out."""
        votes = self.fitted.annotations
        n = votes.n_tasks
        unvoted = (self.fitted.rare.mass(votes.votes()) == 0) & (self.probabilities.gold[:n] < 0)
        return int((self.flagged[:n] & unvoted).sum())

    @property
    def n_without_a_vote(self) -> int:
        """Number of items with votes, but none for their label; gold is left out."""
        votes = self.fitted.annotations
        codes = self.codes[: votes.n_tasks]
        unvoted = ~picked(votes.votes() > 0, codes) & (codes >= 0) & (self.probabilities.gold[: votes.n_tasks] < 0)
        return int(unvoted.sum())

    @cached_property
    def plot(self) -> Plots:
        """The charts of the page by name, such as ``result.plot.trade_off()``."""
        return Plots(lambda truth: self.fitted.diagnose(self, None if truth is None else self._known(truth)))

    def __repr__(self) -> str:
        rare, flagged = self.fitted.rare.name, int(self.flagged.sum())
        by = f"{self.fitted.method.method_name}, {self.description}"
        return f"Result({counted(len(self.codes), 'item')}, {flagged:,} labelled {rare}, by {by})"

    def _repr_html_(self) -> str:
        from rarevote.page.report import top_of_page

        return top_of_page(self.page_parts(), self.fitted.crowd.title)
