"""What comes of a decision: one answer per task, as rows for a file, as figures, and all that one can do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import as_name_array, in_kind, positions_of, some_names, unmatched
from rarevote.crowd.numerics import is_rare, rare_class
from rarevote.crowd.words import capital, facts_html
from rarevote.errors import InputError, warn_user
from rarevote.io.read.crowd import read
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.decide import ABSTAINED, Decision, Rule, confidence_of, with_expectations
from rarevote.meaning.expect import Expectations, Expected, expectations
from rarevote.methods.new_tasks import NewTasks

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.meaning.audit import Audit
    from rarevote.meaning.expect import RecallTarget
    from rarevote.meaning.explain import Explanation
    from rarevote.meaning.review import ReviewPlan
    from rarevote.meaning.soft_labels import SoftLabels
    from rarevote.page.report import Report


@dataclass(frozen=True, eq=False)
class Result:
    """One answer per task, and what to expect of it.

    Attributes:
        fitted: what it came from.
        rule: how it was decided.
        codes: class number of each task, -1 for no answer, (n).
        words: how it was decided, in words.
        calibrated: probabilities to be read as such, where they were computed.
        target: what came of a recall target.
        n_guarded: tasks whose label would have been one that nobody voted for there.
        warnings: what to know before acting on it.
        cannot_answer: whether the crowd cannot tell who is right, so that the labels are the votes.
        is_own: whether the rule is the method's own.
    """

    fitted: Fitted
    rule: Rule
    codes: NDArray[np.int64]
    words: str
    calibrated: CalibratedPosterior | None = None
    target: RecallTarget | None = None
    n_guarded: int = 0
    warnings: tuple[str, ...] = ()
    cannot_answer: bool = False
    is_own: bool = True

    @property
    def tasks(self) -> Any:
        """Names of the tasks."""
        return self.fitted.annotations.tasks

    @property
    def labels(self) -> NDArray[Any]:
        """Name of the decided class per task; empty text where there is no answer."""
        classes = self.fitted.annotations.classes
        if not (self.codes == ABSTAINED).any():
            return np.asarray(classes[self.codes])
        names = np.empty(len(classes) + 1, dtype=object)
        names[:-1] = classes
        names[-1] = ""  # what -1 picks
        return np.asarray(names[self.codes])

    @property
    def confidence(self) -> NDArray[Any] | None:
        """Calibrated probability of the decided class; None where nothing was calibrated."""
        return None if self.calibrated is None else confidence_of(self.calibrated.posterior, self.codes)

    @cached_property
    def decision(self) -> Decision | None:
        """The decision with the recall and precision that it expects; None where nothing was calibrated."""
        if self.calibrated is None:
            return None
        costs = self.rule.costs(self.fitted.annotations.classes)
        return with_expectations(self.calibrated, self.codes, self.words, costs, self.target)

    def expect(self, name: Any = None) -> Expectations:
        """Recall, precision and prevalence to expect of a class (the one that matters if not named), with intervals."""
        crowd, calibrated = self.fitted.annotations, self.calibrated or self.fitted.calibrate()
        number = rare_class(crowd, self.fitted.rare_name if name is None else name)
        return expectations(calibrated, self.codes, number, crowd.votes())

    def columns(self) -> dict[str, Any]:
        """One row per task: task, label, confidence, ``p:<class>``, what is shown, decision, ``calibrated:<class>``.

        ``p:`` is the posterior as the method's authors publish it, or what a method reports as calibrated itself;
        ``calibrated:`` comes from calibration; ``confidence`` is the calibrated probability of the label, or absent.
        """
        fitted = self.fitted
        rows = result_rows(fitted.annotations, self.labels, fitted.probabilities, self.confidence, fitted.crowd.shown)
        drawn = self.calibrated is not None and len(self.calibrated.draws) > 0
        if self.calibrated is not None and (drawn or not (self.is_own and fitted.reports_probabilities)):
            rows |= decision_rows(self.calibrated, self.codes, self.rule.name)
        return rows

    def write(self, path: str | Path, *, spreadsheet_safe: bool = False) -> None:
        """Write the rows to a file whose ending says the format; it appears whole or not at all."""
        from rarevote.io.write.columns import write_columns

        self._refuse_overwriting(path)
        write_columns(self.columns(), Path(path), spreadsheet_safe=spreadsheet_safe)

    def _refuse_overwriting(self, path: str | Path | None, truth: Any = None, **folder: Any) -> None:
        """Refuse, before any work, a file or folder that the votes, the gold or the truth were read from."""
        if path is not None:
            refuse_overwriting(path, self.fitted.crowd.with_files(truth).files, **folder)

    def write_back(self, path: str | Path) -> int:
        """Write the labels as predictions that the platform of the export imports; returns how many items got one."""
        from rarevote.io.platforms.write_back import write_back

        self._refuse_overwriting(path)
        self.fitted.crowd.check_way_back(Path(path))
        assert self.fitted.crowd.export is not None
        scores = [None] * len(self.codes) if self.confidence is None else self.confidence.tolist()
        model = self.fitted.method.method_name
        return write_back(self.fitted.crowd.export, self.tasks, self.labels, scores, path, model_version=model)

    def soft_labels(self) -> SoftLabels:
        """Probability of every class (``p:``) in arrays that training code takes; ``.write(path)`` keeps them."""
        from rarevote.meaning.soft_labels import SoftLabels

        fitted = self.fitted
        return SoftLabels(self.tasks, fitted.annotations.classes, fitted.probabilities, fitted.crowd.files)

    def review(self, max_review: int, path: str | Path | None = None, *, form: str = "table") -> ReviewPlan:
        """The tasks whose review lowers the expected cost most; written to a file where one is named.

        Args:
            max_review: the most tasks to list.
            path: where to write the list.
            form: "table", "label-studio" or "argilla".
        """
        from rarevote.meaning.review import plan_review, write_review

        self._refuse_overwriting(path)
        decision = self.decision
        if decision is None or self.calibrated is None:
            calibrated = replace(self, calibrated=self.fitted.calibrate(sampled=True))
            return calibrated.review(max_review, path, form=form)
        plan = plan_review(self.calibrated, decision, self.fitted.annotations, max_review=max_review)
        if path is not None:
            write_review(plan, Path(path), form, self.fitted.crowd.to_show)
        return plan

    def plan(
        self, budget: int, path: str | Path | None = None, *, votes_per_item: int = 1, form: str = "table"
    ) -> ReviewPlan:
        """How to spend further votes: the tasks most worth labelling again, and who should.

        Of each task, the best at telling its two likeliest classes apart are named who have not voted on it; nobody is
        named for more than a fifth of the votes (of fewer than ten people: twice an equal share). Where nobody is left,
        nobody is named: then it takes somebody new.

        Args:
            budget: how many further votes there may be.
            path: where to write the list.
            votes_per_item: votes that each task gets; what is left of the budget is not spent.
            form: "table", "label-studio" or "argilla".

        Raises:
            ParameterError: a number that is not whole or below 1, or a budget that is too small for one task.
        """
        from rarevote.meaning.review import check_budget, plan_review, shared_load, write_review
        from rarevote.meaning.workers import logit, recognition

        check_budget(budget, votes_per_item)
        self._refuse_overwriting(path)
        crowd = self.fitted.annotations
        # A rule that asks for no calibration has decided by what the method itself says.
        by_rule = self.calibrated if self.rule.calibrates else None
        calibrated = by_rule or self.fitted.calibrate()
        stakes = self.rule.stakes(crowd.classes, self.fitted.probabilities.mean(axis=0))
        n_tasks = min(budget // votes_per_item, crowd.n_tasks)
        plan = plan_review(
            calibrated,
            with_expectations(calibrated, self.codes, self.words, stakes, self.target),
            crowd,
            max_review=n_tasks,
            # The lower end: nobody is asked because of three lucky votes.
            abilities=logit(recognition(crowd, calibrated)[1]),
            n_annotators=votes_per_item,
            max_each=shared_load(n_tasks * votes_per_item, crowd.n_workers),
        )
        if path is not None:
            write_review(plan, Path(path), form, self.fitted.crowd.to_show)
        return plan

    def explain(self, task: Any) -> Explanation:
        """Why a task got its label, vote by vote."""
        from rarevote.meaning.explain import find_task

        code = int(self.codes[find_task(self.fitted.annotations, task, self.fitted.crowd.title)])
        label = None if code == ABSTAINED else code
        return self.fitted.explain(task, calibrate=self.calibrated is not None, label=label)

    def report(
        self,
        path: str | Path,
        *,
        truth: Any = None,
        charts: str | Path | None = None,
        source: str | None = None,
        audit: Audit | None = None,
    ) -> Report:
        """Write the page to look at.

        Args:
            path: ends in ``.html``.
            truth: labels to check the result against; never used in the fit.
            charts: a folder for every chart as SVG and PNG.
            source: what the page calls the data.
            audit: one of these labels, to show what it proved.
        """
        from rarevote.page.proved import proved_section
        from rarevote.page.report import write_report

        self._refuse_overwriting(path, truth)
        self._refuse_overwriting(charts, truth, replaced=(".svg", ".png"))
        caution = [] if self.target is None or self.target.promised else [capital(self.target.words)]
        promised = "" if self.target is None or caution else f"; {self.target.words}"
        return write_report(
            self.fitted.method,
            path,
            source=source or self.fitted.crowd.title,
            truth=None if truth is None else self._known(truth),
            gold=self.fitted.gold or None,
            rare=self.fitted.rare_name,
            shown=self.fitted.crowd.shown,
            models=self.fitted.crowd.models,
            labels=self.codes,
            decision=None if self.is_own and not self.cannot_answer else f"{self.words}{promised}",
            calibration=self.calibrated or self.fitted.calibrate(),
            cautions=[*caution, *map(capital, self.warnings)],
            extra=[] if audit is None else [proved_section(audit)],
            charts=charts,
        )

    def score(self, truth: Any) -> dict[str, Any]:
        """The labels against the truth, in figures."""
        return scores_of(self.tasks, self.labels, self._known(truth), str(self.fitted.rare_name))

    def _known(self, truth: Any) -> dict[Any, Any]:
        """The truth by task; labels that are no class, which no label can equal, are told."""
        known = self.fitted.crowd.known(truth)
        classes = self.fitted.annotations.classes
        if strange := unmatched(list(dict.fromkeys(known.values())), classes):
            warn_user(
                f"the truth says {some_names(map(repr, strange))}, which is no class: those are {some_names(classes)}"
            )
        return known

    def summary(self, *, expected: bool = True) -> dict[str, Any]:
        """The result in figures.

        Args:
            expected: whether to say what the decision expects, which has to be drawn first and takes longer than all
                other figures.
        """
        fitted, crowd = self.fitted, self.fitted.annotations
        classes = class_figures(crowd, self.codes)
        rare = str(fitted.rare_name)
        figures: dict[str, Any] = {
            "rare": {"class": rare, "is_rare": is_rare(crowd, fitted.rare), **classes[rare]},
            "method": fitted.method.method_name,
            "parameters": fitted.method.get_params(),
            "n_tasks": crowd.n_tasks,
            "n_workers": crowd.n_workers,
            "n_annotations": crowd.n_annotations,
            "classes": classes,
            "decided_by": self.words,
            "n_guarded": self.n_guarded,
            "cannot_answer": self.cannot_answer,
            "warnings": list(self.warnings),
            "n_iter": fitted.method.n_iter_,
            "converged": fitted.method.converged_,
            "status": fitted.method.status_,
        }
        if expected and self.decision is not None:
            figures["decision"] = decision_figures(self.decision)
        return figures

    def _repr_html_(self) -> str:
        return figures_html(self.summary(expected=False))


def result_rows(
    crowd: Annotations,
    labels: NDArray[Any],
    probabilities: NDArray[Any],
    confidence: NDArray[Any] | None,
    shown: Mapping[str, NDArray[Any]],
) -> dict[str, Any]:
    """One row per task: task, label, confidence where there is one, ``p:<class>``, then what is shown."""
    rows: dict[str, Any] = {"task": crowd.tasks, "label": labels}
    if confidence is not None:
        rows["confidence"] = confidence
    for k, name in enumerate(crowd.classes.tolist()):
        rows[f"p:{name}"] = probabilities[:, k]
    for name, texts in shown.items():
        rows[name if name not in rows else f"show:{name}"] = texts
    return rows


def decision_rows(calibrated: CalibratedPosterior, codes: NDArray[np.int64], rule: str) -> dict[str, Any]:
    """How each task was decided ("none" without an answer, "gold" where it was known), and ``calibrated:<class>``."""
    source = np.full(len(codes), rule, dtype=object)
    source[codes == ABSTAINED] = "none"
    source[calibrated.gold >= 0] = "gold"
    rows: dict[str, Any] = {"decision": source}
    for k, name in enumerate(calibrated.classes.tolist()):
        rows[f"calibrated:{name}"] = calibrated.posterior[:, k]
    return rows


def class_figures(crowd: Annotations, codes: NDArray[np.int64]) -> dict[str, dict[str, Any]]:
    """Of every class: tasks that got it, their share, and the share of the votes."""
    counts = np.bincount(codes[codes >= 0], minlength=crowd.n_classes)
    votes = crowd.class_votes
    return {
        str(name): {
            "tasks": int(count),
            "share_of_tasks": float(count / max(crowd.n_tasks, 1)),
            "share_of_votes": float(part / max(crowd.n_annotations, 1)),
        }
        for name, count, part in zip(crowd.classes.tolist(), counts, votes, strict=True)
    }


def figures_html(summary: Mapping[str, Any]) -> str:
    """The figures of a result as a notebook shows them: the class that matters first, then the largest."""
    rare = summary["rare"]["class"]
    ordered = sorted(summary["classes"].items(), key=lambda entry: (entry[0] != rare, -entry[1]["tasks"]))
    rows = [[name, *entry.values()] for name, entry in ordered]
    facts = {
        "tasks": summary["n_tasks"],
        "workers": summary["n_workers"],
        "votes": summary["n_annotations"],
        "decided by": summary["decided_by"],
        "fit": f"{summary['n_iter']} iterations, {summary['status']}",
    } | {f"warning {number}": words for number, words in enumerate(summary["warnings"], 1)}
    header = ["class", "tasks", "of tasks", "of votes"]
    return facts_html(f"Result of {summary['method']}", facts, [header, *rows])


def scores_of(tasks: Any, labels: NDArray[Any], known: Mapping[Any, Any], rare: str) -> dict[str, Any]:
    """Labels against the truth, the rare class first.

    Raises:
        InputError: the truth names none of the tasks.
    """
    from rarevote.meaning.metrics import score

    place = positions_of(tasks, list(known))
    if not (place >= 0).any():
        raise InputError("the truth names none of the tasks: check ids")
    true = [label for label, number in zip(known.values(), place.tolist(), strict=True) if number >= 0]
    found = score(true, labels[place[place >= 0]].tolist(), unanswered="")
    recall = {str(name): value for name, value in found.recall.items()}
    precision = {str(name): value for name, value in found.precision.items()}
    return {
        "n_items": found.n_items,
        "rare_class": rare,
        "rare_recall": recall.get(rare),
        "rare_precision": precision.get(rare),
        "minority_class": found.minority_class,
        "minority_recall": found.minority_recall,
        "balanced_accuracy": found.balanced_accuracy,
        "macro_f1": found.macro_f1,
        "accuracy": found.accuracy,
        "recall": recall,
        "precision": precision,
        "truth_without_labels": len(known) - len(true),
    }


def decision_figures(decision: Decision) -> dict[str, Any]:
    """What a decision expects, in figures; a figure that there is not is None."""

    def number(value: float) -> float | None:
        return None if value != value else float(value)

    def figure(name: str, found: Expected) -> dict[str, Any]:
        return {name: number(found.value), f"{name}_interval": [number(found.low), number(found.high)]}

    per_class = {
        str(one.name): {
            **figure("share", one.prevalence),
            **figure("expected_recall", one.recall),
            **figure("expected_precision", one.precision),
            "only_an_audit_can_know": [
                what
                for what, found in (("share", one.prevalence), ("recall", one.recall), ("precision", one.precision))
                if found.value == found.value and not found.is_told
            ],
        }
        for one in decision.expected
    }
    figures: dict[str, Any] = {
        "rule": decision.rule,
        "how": decision.how,
        "classes": per_class,
        **figure("expected_accuracy", decision.accuracy),
        "n_abstained": decision.n_abstained,
        "expected_cost": decision.expected_cost,
    }
    if decision.target is not None:
        target = decision.target
        # JSON has no infinity, which is the threshold where nothing needs a flag.
        threshold = target.threshold if target.threshold < float("inf") else None
        figures["recall_target"] = {**vars(target), "name": str(target.name), "threshold": threshold}
    return figures


def predict(model: Any, data: Any, **reading: Any) -> tuple[NewTasks, dict[str, Any]]:
    """New tasks of people that a model knows, and their rows for a file.

    Args:
        model: a fitted method that labels new tasks, such as :func:`rarevote.load` gives.
        data: whatever :func:`read` takes.
    """
    crowd = read(data, **reading)
    votes, fitted = crowd.annotations, model.annotations_
    # Text says "7" where Parquet or JSON says 7.
    workers = as_name_array(in_kind(votes.workers.tolist(), fitted.workers))
    classes = as_name_array(in_kind(votes.classes.tolist(), fitted.classes))
    found = model.label_new(replace(votes, workers=workers, classes=classes))
    labels = found.annotations.classes[found.codes]
    reports = getattr(model, "reports_probabilities", False)
    confidence = np.take_along_axis(found.posterior, found.codes[:, None], axis=1)[:, 0] if reports else None
    return found, result_rows(found.annotations, labels, found.posterior, confidence, crowd.shown)
