"""Are these labels reliable enough to use? Can the crowd answer, does the model fit, and when not to trust the labels?

Each of three questions is answered by *findings*: a sentence and its weight. A "note" is something to know, "care"
something to act on before the labels are used, "stop" a reason not to use them. The verdict follows from the share of
labels expected to be right, unless the crowd cannot answer at all; the other findings are its reasons.
Nothing here needs the truth; figures that need it are named, with how to get them with few reviews (an audit).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import IntArray, finite_or_none
from rarevote.crowd.rare import RareClass
from rarevote.crowd.words import Described, capital, counted, listed, percent
from rarevote.decide.decider import Note
from rarevote.decide.decision import Decision
from rarevote.decide.expectations import Expectations, Expected
from rarevote.decide.floor import SMALL_POPULATION
from rarevote.decide.guards import silences
from rarevote.decide.probabilities import Probabilities
from rarevote.diagnose.agreement import AnnotatorAgreement, agreement_figures, agreement_of
from rarevote.diagnose.check_text import CheckText
from rarevote.diagnose.jury import JuryCondition, jury_condition, jury_sentences
from rarevote.diagnose.leaning import Leaning, leaning_of, world_sentences
from rarevote.diagnose.model_fit import N_REPLICATES, ModelFit, fit_sentences, model_fit
from rarevote.diagnose.ordered_agreement import OrderedAgreement, ordered_agreement
from rarevote.diagnose.shared_errors import ErrorsAlike, errors_alike
from rarevote.diagnose.verdict import VERDICTS, Weight, chance_agreement, weight_of, why_weight
from rarevote.diagnose.workers import mean_recognition
from rarevote.errors import InputError, how
from rarevote.methods.base import Estimator
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.registry import methods_that

Question = Literal["crowd", "fit", "trust"]

#: the three questions, as users ask them
QUESTIONS: Mapping[Question, str] = {
    "crowd": "Can this crowd answer?",
    "fit": "Does the model fit the votes?",
    "trust": "When not to trust the labels",
}
# Limits: the number of items without disagreement; the reliability of the votes on an item (Spearman–Brown formula).
_MANY_AGREED = 50
_LITTLE_RELIABILITY = 0.5
# Limits: the share of votes of one annotator, or of annotators with too few votes to judge them.
_MUCH_BY_ONE = 0.5
_FEW_VOTES, _MANY_BY_SELDOM = 5, 0.5
# A class with fewer votes may consist of accidents.
_FEW_OF_CLASS = 10
_MAX_NAMED = 4
# With this agreement or reliability, the labels need no model.
_AGREED = 0.95
_RELIABLE = 0.9
# Classes that do not fit matter if they have at least this share of the votes.
_FEW_OF_VOTES = 0.05
# Pairs that agree more than the model expects matter if they cast at least this share of the votes.
_MANY_IN_PAIRS = 0.2
# With more pairs of votes, comparing every pair of annotators takes too long.
_MAX_SHARED = 20_000_000
_NOBODY = ("anonymous", "unknown", "none", "null", "nobody", "n/a", "na", "annotator", "worker", "user", "default", "-")


@dataclass(frozen=True)
class Finding(Described):
    """A reason for or against using the labels.

    Attributes:
        question: which of :data:`QUESTIONS` it answers.
        weight: "note", "care" or "stop".
        description: a sentence or two.
        short: a few words for the verdict.
    """

    question: Question
    weight: Weight
    description: str
    short: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Check(CheckText):
    """Whether the labels of a fit are reliable enough to use.

    Attributes:
        method: name of the method.
        rare: name of the class that matters.
        findings: all findings, by question.
        n_tasks: number of items.
        n_unvoted: number of items without votes.
        n_workers: number of annotators.
        n_annotations: number of votes.
        n_single: number of items with one vote.
        converged: whether the fit ended by its stopping rule.
        agreement: how far annotators agree.
        fit: what the model predicts compared with the votes; None if the method has no probabilities of votes.
        alike: which annotators make the same mistakes.
        jury: the jury condition of every class.
        expected: what to expect of the labels of the class that matters.
        accuracy: expected share of the labels that are right.
        classes: names of the classes.
        leaning: whether the evidence favours shared or independent errors.
        only_shared: why independent errors are not included, as text; empty if they are.
        worlds: what to expect in each world, and which one the evidence favours, as sentences without full stops.
        is_unproved_jury: whether models cast most of the votes, and no gold shows how accurate they are.
        on_grades: how far annotators agree on grades, if the classes have an order.
    """

    method: str
    rare: Any
    findings: tuple[Finding, ...]
    n_tasks: int
    n_unvoted: int
    n_workers: int
    n_annotations: int
    n_single: int
    converged: bool
    agreement: AnnotatorAgreement
    fit: ModelFit | None
    alike: ErrorsAlike
    jury: JuryCondition
    expected: Expectations
    accuracy: Expected
    classes: tuple[Any, ...]
    leaning: Leaning
    only_shared: str
    worlds: tuple[str, ...]
    is_unproved_jury: bool
    on_grades: OrderedAgreement | None = None

    @property
    def weight(self) -> Weight:
        """How serious the verdict is, from the expected accuracy, unless the crowd cannot answer."""
        if self.cannot_answer:
            return "stop"
        return weight_of(self.accuracy, is_unproved_jury=self.is_unproved_jury)

    @property
    def cannot_answer(self) -> bool:
        """Whether the crowd cannot answer, whatever the method."""
        return any(one.weight == "stop" for one in self.answers("crowd"))

    @property
    def verdict(self) -> str:
        """The verdict in one line: text from :data:`VERDICTS`, and the accuracy or why the crowd cannot answer."""
        if self.cannot_answer:
            stops = dict.fromkeys(one.short for one in self.answers("crowd") if one.weight == "stop")
            return f"{VERDICTS[self.weight]}: {'; '.join(stops)}"
        return f"{VERDICTS[self.weight]}: {why_weight(self.accuracy, is_unproved_jury=self.is_unproved_jury)}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What to act on before the labels are used, in a few words each."""
        return tuple(dict.fromkeys(one.short for one in self.findings if one.weight != "note" and one.short))

    def answers(self, question: Question) -> tuple[Finding, ...]:
        """The findings on one question, the most serious first."""
        order = ("stop", "care", "note")
        found = (one for one in self.findings if one.question == question)
        return tuple(sorted(found, key=lambda one: order.index(one.weight)))

    def figures(self) -> dict[str, Any]:
        """The check as plain values for JSON."""
        jury = self.jury
        return {
            "verdict": VERDICTS[self.weight],
            "words": self.verdict,
            "reasons": list(self.reasons),
            "cannot_answer": self.cannot_answer,
            "method": self.method,
            "rare_class": str(self.rare),
            "n_tasks": self.n_tasks,
            "n_without_votes": self.n_unvoted,
            "n_workers": self.n_workers,
            "n_annotations": self.n_annotations,
            "votes_per_task": self.n_annotations / max(self.n_tasks - self.n_unvoted, 1),
            "tasks_with_one_vote": self.n_single,
            "converged": self.converged,
            "findings": [
                {"question": one.question, "weight": one.weight, "words": one.description, "short": one.short}
                for one in self.findings
            ],
            "agreement": agreement_figures(self.agreement),
            **({} if self.on_grades is None else {"agreement_on_grades": self.on_grades.figures()}),
            "fit": None if self.fit is None else self.fit.figures(),
            "errors_alike": self.alike.figures(),
            "jury": {
                str(name): {"holds": bool(jury.holds[k]), "mean_recall": float(jury.mean_margin[k] + 0.5)}
                for k, name in enumerate(self.classes)
            },
            "expected": {
                "class": str(self.rare),
                "recall": _expected_figures(self.expected.recall),
                "precision": _expected_figures(self.expected.precision),
                "prevalence": _expected_figures(self.expected.prevalence),
                "accuracy": _expected_figures(self.accuracy),
                "only_shared": self.only_shared or None,
                "leans_to": self.leaning.world,
                "words": list(self.worlds),
            },
        }


def _expected_figures(found: Expected) -> dict[str, Any]:
    # The interval of an undefined figure is NaN: it is not shown either.
    return {
        "value": finite_or_none(found.value),
        "interval": found.interval,
        "is_told": found.is_told,
        "worlds": {
            name: {"value": finite_or_none(one.value), "interval": one.interval} for name, one in found.worlds.items()
        },
    }


def check_fit(
    estimator: Estimator,
    probabilities: Probabilities,
    decision: Decision,
    notes: Iterable[Note],
    *,
    rare: RareClass,
    models: Iterable[Any] = (),
    arguments: str = "LABELS",
    grades: Grades | None = None,
    n_replicates: int = N_REPLICATES,
) -> Check:
    """Check whether the labels of a fit are reliable enough to use; see :meth:`rarevote.Fitted.check`.

    Args:
        estimator: the fitted method.
        probabilities: probabilities of all items, those with votes first.
        decision: the labels, and what to expect of them.
        notes: the notes of the decision.
        rare: the class that matters.
        models: names of the workers that are models.
        arguments: the command-line arguments for the votes, for hints on what to do next.
        grades: the order of the classes, if there is one.
        n_replicates: how often the votes are drawn again from the model.

    Raises:
        InputError: there are no votes.
    """
    crowd = estimator.annotations_
    if not crowd.n_annotations:
        raise InputError("no annotations: there is nothing to check")
    said: dict[str, list[str]] = {}
    for note in notes:
        said.setdefault(note.kind, []).append(note.description)
    can_answer = "no answer" not in said
    agreement = agreement_of(crowd, most_shared=_MAX_SHARED)
    # If the votes cannot show who is right, there is nothing to check a model against.
    fit = model_fit(estimator, n_replicates=n_replicates) if can_answer else None
    voted = probabilities.first(crowd.n_tasks)
    alike = errors_alike(crowd, gold=voted.gold, models=models)
    jury = jury_condition(mean_recognition(crowd, voted.p))
    leaning, expected, accuracy = leaning_of(alike), decision.of_rare, decision.accuracy
    is_unproved_jury = probabilities.is_jury and not (probabilities.gold >= 0).any()
    findings = [*_of_crowd(crowd, agreement, said, len(probabilities))]
    on_grades = None if grades is None else ordered_agreement(crowd, grades)
    if on_grades is not None and on_grades.n_tasks:
        findings.append(Finding("crowd", "note", on_grades.description))
    if can_answer:
        together = reliability(agreement.alpha, crowd.n_annotations / crowd.n_tasks)
        findings += _of_fit(estimator, fit, together, rare.name)
        findings += _of_accuracy(accuracy, is_unproved_jury=is_unproved_jury)
        # The command line already names the order.
        ordered = "" if grades is None or "--ordered" in arguments else f" --ordered {shlex.quote(grades.text)}"
        findings += _of_trust(crowd, decision.flagged, said, rare, alike, jury, expected, f"{arguments}{ordered}")
    return Check(
        method=estimator.method_name,
        rare=rare.name,
        findings=tuple(findings),
        n_tasks=len(probabilities),
        n_unvoted=len(probabilities) - crowd.n_tasks,
        n_workers=crowd.n_workers,
        n_annotations=crowd.n_annotations,
        n_single=_n_single(crowd),
        converged=estimator.converged_,
        agreement=agreement,
        fit=fit,
        alike=alike,
        jury=jury,
        expected=expected,
        accuracy=accuracy,
        classes=tuple(crowd.classes.tolist()),
        leaning=leaning,
        only_shared=decision.only_shared,
        worlds=world_sentences(decision, leaning),
        is_unproved_jury=is_unproved_jury,
        on_grades=on_grades,
    )


def _n_single(crowd: Annotations) -> int:
    return int((np.diff(crowd.task_ptr) == 1).sum())


# --------------------------------------------------------------------------------------------------------------------
# can this crowd answer?


def reliability(alpha: float, n_votes: float) -> float:
    """Reliability of several votes together, from the alpha of one: ``n a / (1 + (n - 1) a)`` (Spearman–Brown).

    >>> round(reliability(0.2, 8), 3), reliability(-0.1, 3)
    (0.667, 0.0)
    """
    a = max(alpha, 0.0)
    return float(n_votes * a / (1.0 + (n_votes - 1.0) * a))


def _of_crowd(
    crowd: Annotations, agreement: AnnotatorAgreement, said: Mapping[str, list[str]], n_items: int
) -> Iterator[Finding]:
    per_item = crowd.n_annotations / crowd.n_tasks
    for words in said.get("no answer", ()):
        yield Finding("crowd", "stop", f"{capital(words)}.", words.partition(", so no method")[0])
    yield Finding(
        "crowd",
        "note",
        f"{counted(crowd.n_annotations, 'vote')} by {counted(crowd.n_workers, 'annotator')} on "
        f"{counted(crowd.n_tasks, 'item')}: {per_item:.1f} per item; "
        f"{percent(_n_single(crowd) / crowd.n_tasks)} of the items have a single vote.",
    )
    if n_items > crowd.n_tasks:
        yield Finding(
            "crowd", "note", f"{counted(n_items - crowd.n_tasks, 'item has', 'items have')} no votes and no label."
        )
    for words in said.get("single", ()):
        yield Finding("crowd", "care", f"{capital(words)}.", "most items have one vote")
    if "no answer" not in said:
        yield from _of_agreement(agreement, per_item, int((np.diff(crowd.task_ptr) > 1).sum()))
        yield from _of_people(crowd)
    for words in said.get("silence", ()):
        yield Finding("crowd", "care", f"{words}.", f"{listed(silences(crowd.classes))} counts as a class")
    votes = crowd.class_votes
    few = [k for k in np.argsort(votes, kind="stable").tolist() if votes[k] < _FEW_OF_CLASS]
    if few and crowd.n_annotations >= 10 * _FEW_OF_CLASS:
        named = listed([f"{crowd.classes[k]} ({votes[k]})" for k in few], _MAX_NAMED)
        word = "Classes" if len(few) > 1 else "A class"
        yield Finding(
            "crowd",
            "note",
            f"{word} with very few votes: {named}. Nothing can be said about them.",
        )


def _of_agreement(agreement: AnnotatorAgreement, per_item: float, n_several: int) -> Iterator[Finding]:
    alpha, (low, high) = agreement.alpha, agreement.intervals["alpha"]
    if not np.isfinite(alpha):
        yield Finding("crowd", "note", "All votes are for one class, so agreement says nothing.")
        return
    together = reliability(alpha, per_item)
    if agreement.raw == 1.0 and n_several >= _MANY_AGREED:
        words = (
            f"Not one vote differs on {counted(n_several, 'item')} with several: people who judge on their own differ "
            "somewhere. Were answers filled in beforehand, copied, or left out where they differed?"
        )
        yield Finding("crowd", "care", words, "annotators never disagree")
        return
    interval = f" ({low:.2f} to {high:.2f})" if np.isfinite(low) else ""
    said = f"Krippendorff's alpha is {alpha:.2f}{interval}, where 0 is chance and 1 is perfect"
    if stop := chance_agreement(agreement):
        yield Finding("crowd", "stop", f"{capital(stop)}: {said}.", stop)
    elif together < _LITTLE_RELIABILITY:
        yield Finding(
            "crowd",
            "care",
            f"{said}. {per_item:.1f} votes on an item together have a reliability of {together:.2f}: more votes per "
            "item, or clearer instructions, would help.",
            "annotators agree little",
        )
    else:
        yield Finding(
            "crowd", "note", f"{said}; {per_item:.1f} votes on an item together have a reliability of {together:.2f}."
        )


def _of_people(crowd: Annotations) -> Iterator[Finding]:
    n_votes = np.bincount(crowd.worker, minlength=crowd.n_workers)
    names = crowd.workers.tolist()
    first = int(n_votes.argmax())
    share = n_votes[first] / crowd.n_annotations
    if share >= _MUCH_BY_ONE and crowd.n_workers > 2:
        words = f"{names[first]} cast {percent(share)} of the votes: the labels are mostly their opinion."
        yield Finding("crowd", "care", words, f"{names[first]} cast {percent(share)} of the votes")
    nameless = [r for r, name in enumerate(names) if str(name).strip().casefold() in _NOBODY]
    if nameless:
        named = listed([str(names[r]) for r in nameless])
        share = n_votes[nameless].sum() / crowd.n_annotations
        words = f"{named} does not look like a name: if several people voted under it, they count as one annotator."
        yield Finding("crowd", "care" if share > 0.1 else "note", words, "annotators without a name")
    seldom = n_votes[n_votes < _FEW_VOTES]
    share = seldom.sum() / crowd.n_annotations
    if share >= _MANY_BY_SELDOM:
        words = (
            f"{percent(share)} of the votes are by {counted(len(seldom), 'annotator')} with fewer than {_FEW_VOTES} "
            "each: little can be learned about their skills, so their votes count about the same."
        )
        yield Finding("crowd", "care", words, "most votes are by people with few votes")


# --------------------------------------------------------------------------------------------------------------------
# does the model fit?


def _of_fit(estimator: Estimator, fit: ModelFit | None, together: float, rare: Any) -> Iterator[Finding]:
    method = estimator.method_name
    if not estimator.converged_:
        words = f"The fit did not converge: {estimator.status_}. Raise n_iter ({how('n_iter=', '--set n_iter=')}1000)."
        yield Finding("fit", "care", words, "the fit did not converge")
    if fit is None:
        words = (
            f"{method} cannot {Capabilities.verb('replicate')}, so this cannot be checked; methods that can: "
            f"{', '.join(methods_that('replicate'))}."
        )
        yield Finding("fit", "note", words)
        return
    agreed = next((one.observed for one in fit.statistics if one.name == "agreement"), 0.0)
    sentences = fit_sentences(fit, method)
    if fit.off:
        harmless = agreed >= _AGREED or together >= _RELIABLE or _of_few_votes(fit, rare)
        weight: Weight = "note" if harmless else "care"
        sentences.append(_meaning(fit))
        yield Finding("fit", weight, " ".join(sentences), f"the votes differ from what {method} predicts")
    else:
        yield Finding("fit", "note", " ".join(sentences))
    if fit.pairs:
        weight = "care" if fit.share_in_pairs >= _MANY_IN_PAIRS else "note"
        more = "" if len(fit.pairs) == 1 else f" ({counted(len(fit.pairs) - 1, 'more pair')} as well)"
        words = (
            f"Annotators {fit.pairs[0].description}{more}. They may copy, talk or share "
            "a view that the model misses, or the model may follow others who do."
        )
        yield Finding("fit", weight, words, "some annotators agree more than independent ones would")


def _of_few_votes(fit: ModelFit, rare: Any) -> bool:
    """Whether only classes with few votes do not fit, and not the class that matters."""
    classes = {one.label for one in fit.off}
    votes = sum(one.observed for one in fit.statistics if one.name == "share" and one.label in classes)
    return None not in classes and rare not in classes and votes < _FEW_OF_VOTES


def _meaning(fit: ModelFit) -> str:
    """What it means that some figures do not fit."""
    above = {one.name: one.observed > one.predicted for one in fit.off}
    if set(above) == {"share"}:
        return "The class shares of this method are not reliable."
    if any(above.get(name) for name in ("unanimous", "top_share", "agreement", "joined")):
        return (
            "Items vary more in difficulty than the model allows, or annotators do not judge independently: "
            "where votes are split, probabilities are too confident."
        )
    return "Annotators agree less than the model predicts: its probabilities are too confident."


# --------------------------------------------------------------------------------------------------------------------
# when not to trust it


def _of_accuracy(accuracy: Expected, *, is_unproved_jury: bool) -> Iterator[Finding]:
    if np.isfinite(accuracy.value):
        right = f"{percent(accuracy.value)} are expected to be right ({accuracy.percent_range})"
        yield Finding("trust", weight_of(accuracy), f"Of all labels, {right}; this is an estimate.")
    if is_unproved_jury:
        words = (
            "Most votes are by models, which share more of their errors than people do: gold "
            f"({how('gold=', '--gold')}) or an audit shows how accurate they are."
        )
        yield Finding("trust", "care", words, "most votes are by models")


def _of_trust(
    crowd: Annotations,
    flagged: NDArray[np.bool_],
    said: Mapping[str, list[str]],
    rare: RareClass,
    alike: ErrorsAlike,
    jury: JuryCondition,
    expected: Expectations,
    arguments: str,
) -> Iterator[Finding]:
    for words in alike.warnings:
        yield Finding("trust", "care", f"{capital(words)}.", "a few who make the same mistakes outvote the rest")
    for words in said.get("doubt", ()):
        yield Finding("trust", "care", capital(words), "labels far from the votes")
    for words in said.get("explained away", ()):
        yield Finding("trust", "care", f"{capital(words)}.", "a class whose votes are explained as errors")
    for words in said.get("rare", ()):
        yield Finding("trust", "care", f"{capital(words)}.", f"annotators hardly agree on {rare.name}")
    yield _of_expectations(expected, rare, int(flagged.sum()), len(flagged), arguments)
    lacking = np.flatnonzero(~jury.holds & ((jury.mean_margin < 0) | rare.holds(np.arange(crowd.n_classes))))
    if jury.holds.all() or lacking.size:
        told = np.arange(crowd.n_classes) if jury.holds.all() else lacking
        sentences = jury_sentences(_of_classes(jury, told), crowd.classes[told])
        asked = "" if jury.holds.all() else "Would a majority vote of many more people like these find every class? "
        yield Finding("trust", "note", asked + " ".join(sentences))


def _of_classes(jury: JuryCondition, some: IntArray) -> JuryCondition:
    """The jury condition of some classes."""
    arrays: dict[str, Any] = {
        name: values[some] for name, values in vars(jury).items() if isinstance(values, np.ndarray)
    }
    return replace(jury, **arrays)


def _of_expectations(expected: Expectations, rare: RareClass, n_labelled: int, n_items: int, arguments: str) -> Finding:
    name = rare.name
    figures = {"recall": expected.recall, "precision": expected.precision}
    unknown = [what for what, one in figures.items() if one.is_unknown]
    told = ", ".join(f"{what} {one.description}" for what, one in figures.items() if one.is_told)
    verb = "flagged" if rare.is_tail else "labelled"
    head = f"{capital(counted(n_labelled, 'item is', 'items are'))} {verb} {name}"
    said = f" Expected: {told}." if told else ""
    files = "--plan audit.json --review-out round-1.csv"
    audit = f"an audit: rarevote audit start {arguments} --find {shlex.quote(f'{name}=0.9')} {files}"
    if n_items < SMALL_POPULATION:
        audit = f"a review of all {counted(n_items, 'item')}."
    if unknown:
        what = " and ".join(unknown)
        words = f"{head}; the votes say almost nothing about their {what}.{said} Unknown without {audit}"
        return Finding("trust", "care", words, f"the {what} of {name} is unknown without an audit")
    prove = f" A recall is proved by {audit}"
    low = " and ".join(what for what, one in figures.items() if one.value < 0.5)
    if low:
        return Finding("trust", "care", f"{head}.{said}{prove}", f"the expected {low} of {name} is below one half")
    return Finding("trust", "note", f"{head}.{said}{prove if rare.is_rare else ''}")
