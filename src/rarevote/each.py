"""One fit and one decision for each problem of a crowd: for each label of check boxes, or for each question.

>>> import rarevote
>>> each = rarevote.fit_each("export.json", multilabel=True)                     # doctest: +SKIP
>>> result = each.decide()                                                       # doctest: +SKIP
>>> result["health"].expect().prevalence                                         # doctest: +SKIP
>>> result.write("long.csv"), result.write_sheet("sheet.csv")                    # doctest: +SKIP

A rare label and a frequent one are different problems: they have different shares, different good annotators and
different costs of a miss. One fit of all pairs of item and label would use the same threshold for the rarest label as
for the others. So each label is fitted, decided, reviewed and audited separately, as :func:`rarevote.fit` does. All
labels share the reading, the names of the tasks in long tables (``<item>:<label>``), and the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.api import Fitted, fit
from rarevote.crowd.arguments import named_arguments, with_named_arguments
from rarevote.crowd.names import as_name_array, find_name, pair_name, positions_of, some_names, sort_names
from rarevote.crowd.steps import within
from rarevote.crowd.words import counted, facts_html
from rarevote.decide.review import ReviewItem, ReviewPlan, write_review
from rarevote.decide.rules import ABSTAINED, Rule
from rarevote.errors import InputError, ParameterError, about, how, warn_user
from rarevote.io.framed import Framed
from rarevote.io.platforms.base import NO, YES
from rarevote.io.read.crowd import Crowd, read, read_each
from rarevote.io.read.labels import CHOICE, ITEM, known_by_label
from rarevote.io.read.options import ReadOptions
from rarevote.io.write.columns import joined, write_columns
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.methods.base import Estimator
from rarevote.progress import Watch, shows_progress
from rarevote.result import Result

if TYPE_CHECKING:
    from rarevote.audit import Audit, Share
    from rarevote.diagnose.check import Check
    from rarevote.diagnose.diagnosis import Diagnosis
    from rarevote.diagnose.explain import Explanation
    from rarevote.io.write.soft_labels import SoftLabels
    from rarevote.page.report import Report

T = TypeVar("T")

QUESTION = "question"
_READING = {one.name for one in fields(ReadOptions)}


@named_arguments(fit, leave_out=("callback",))
@shows_progress
def fit_each(
    data: Any,
    method: str | Estimator | None = None,
    *,
    gold: Any = None,
    **options: Any,
) -> FittedEach:
    """Fit a method to each label of a multi-label crowd, or to each question of an export.

    Args:
        data: anything that :func:`rarevote.read` takes, with ``multilabel=True`` (or ``question="all"``); a crowd with
            several labels; or crowds by name, as :func:`rarevote.read_each` returns them.
        method: as for :func:`rarevote.fit`; an estimator is copied for each problem.
        gold: labels that the method learns from, by task ``<item>:<label>`` (yes or no): a file, a mapping, a
            Series, a frame; a file with a row for each item and a column for each label; or labels by item for
            each label, ``{"health": {"17": "yes"}}``.
        **options: anything else that :func:`rarevote.fit` takes. Features are those of the items.

    Raises:
        InputError: the data cannot be used.
        ParameterError: there is only one problem, or an option applies to a single problem only.
    """
    for name in ("checkpoint", "pred_probs"):
        if options.get(name) is not None:
            option = how(name, "--" + name.replace("_", "-"))
            raise ParameterError(f"{option} is about one problem: {_one_problem()}")
    reading = {name: options.pop(name) for name in list(options) if name in _READING}
    by, whole, crowds = _crowds(data, reading)
    known: dict[str, dict[Any, Any]] = {}
    if gold is not None:
        if whole is None:
            raise ParameterError(f"{how('gold', '--gold')} is about one question: {_one_problem()}")
        whole = whole.with_files(gold)
        crowds, known = whole.by_label, known_by_label(whole, gold)
    parts = {}
    for number, (name, crowd) in enumerate(crowds.items(), 1):
        if not crowd.annotations.n_annotations:
            warn_user(f"{name} has no votes and is ignored")
            continue
        given = options if gold is None else {**options, "gold": known[name] or None, "use_gold": False}
        columns = {"columns": reading["columns"]} if reading.get("columns") else {}
        with about(name), within(f"{name} ({number} of {len(crowds)})"):
            parts[name] = fit(crowd, _copied(method), **columns, **given)
    if not parts:
        raise InputError("no label has votes")
    return FittedEach(parts, by, whole)


def _crowds(data: Any, reading: dict[str, Any]) -> tuple[str, Crowd | None, Mapping[str, Crowd]]:
    """The kind of the problems, the crowd that they are parts of, and the crowd of each."""
    if isinstance(data, Mapping) and data and all(isinstance(one, Crowd) for one in data.values()):
        return QUESTION, None, _labels_apart(data)
    if not isinstance(data, Crowd) and reading.get("question") == "all":
        return QUESTION, None, _labels_apart(read_each(data, **reading))
    crowd = read(data, **reading)
    if not crowd.choices:
        one, several = how("fit", "rarevote aggregate"), how("multilabel=True", "--multilabel")
        raise ParameterError(f"{crowd.title} is one problem, for {one}; {several} reads answers with several choices")
    return CHOICE, crowd, crowd.by_label


def _labels_apart(crowds: Mapping[str, Crowd]) -> dict[str, Crowd]:
    """The crowds; a crowd with several labels becomes one crowd per label, called ``<question>: <label>``."""
    apart: dict[str, Crowd] = {}
    for name, crowd in crowds.items():
        apart |= (
            {f"{name}: {label}": part for label, part in crowd.by_label.items()} if crowd.choices else {name: crowd}
        )
    return apart


def _one_problem() -> str:
    return how("fit the crowd of one label, crowd.by_label[...]", "name one label with --choice")


def _copied(method: str | Estimator | None) -> str | Estimator | None:
    return type(method)().set_params(**method.get_params()) if isinstance(method, Estimator) else method


class _Problems(Mapping[str, T]):
    """A mapping by the name of the problem, exact or as a person types it."""

    parts: dict[str, T]

    def __getitem__(self, name: str) -> T:
        return self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def name_of(self, wanted: Any) -> str:
        """The exact name of a problem.

        Raises:
            ParameterError: no problem has this name.
        """
        names = list(self.parts)
        found = find_name(wanted, as_name_array(names))
        if found is None:
            raise ParameterError(f"nothing is named {wanted!r}; the names are {some_names(names)}")
        return names[found]


@with_named_arguments
@dataclass(frozen=True, eq=False)
class FittedEach(_Problems[Fitted]):
    """A fit for each problem of a crowd; a mapping from the name of a label, or of a question, to :class:`Fitted`.

    Attributes:
        parts: the fits.
        by: the kind of the problems: "choice" (labels, each with the answers yes and no) or "question".
        crowd: the crowd that they are parts of; None for questions.
    """

    parts: dict[str, Fitted]
    by: str = CHOICE
    crowd: Crowd | None = None

    @named_arguments(Fitted.decide)
    @shows_progress
    def decide(self, decide: Rule | str | None = None, **options: Any) -> ResultEach:
        """Decide each problem separately, as :meth:`rarevote.Fitted.decide` does.

        Args:
            decide: as there.
            **options: as there. ``min_recall`` and ``prevalence`` may name labels instead of classes, such as
                ``{"health": 0.9}``: they then apply to that label only.
        """
        named = {name: self._by_label(options.get(name), name) for name in ("min_recall", "prevalence")}
        results = {}
        for label, fitted in self.parts.items():
            own: dict[str, Any] = {name: of[label] for name, of in named.items() if of is not None and label in of}
            rest = {name: value for name, value in options.items() if named.get(name) is None}
            with about(label), within(label):
                results[label] = fitted.decide(decide, **rest, **own)
        return ResultEach(self, results)

    def _by_label(self, shares: Any, option: str) -> dict[str, dict[Any, float]] | None:
        """Shares of yes for each label; None if the shares are given by class."""
        if isinstance(shares, str) and option == "min_recall":
            name, _, recall = shares.rpartition("=")
            shares = {name.strip(): float(recall)}
        if self.by == CHOICE and option == "min_recall" and isinstance(shares, (int, float)):
            return {name: {YES: shares} for name in self.parts}
        if self.by != CHOICE or not isinstance(shares, Mapping):
            return None
        names = as_name_array([YES, NO])
        if all(find_name(name, names) is not None for name in shares):
            return None
        both = option == "prevalence"
        return {
            self.name_of(name): {YES: share, NO: 1.0 - share} if both else {YES: share}
            for name, share in shares.items()
        }

    def positive(self, name: str) -> Any:
        """The class that matters in a problem: yes, or the rare class of a question."""
        return self.parts[name].rare.name if self.parts[name].crowd.choice is None else YES

    def diagnose(self) -> dict[str, Diagnosis]:
        """Report on annotators, items and classes, for each problem."""
        return {name: fitted.diagnose() for name, fitted in self.parts.items()}

    @shows_progress
    def check(self, *, progress: Watch = False) -> dict[str, Check]:
        """For each problem, check whether the labels are reliable enough to use; see :meth:`rarevote.Fitted.check`."""
        found = {}
        for name, fitted in self.parts.items():
            with within(name):
                found[name] = fitted.check()
        return found

    def explain(self, item: Any) -> dict[str, Explanation]:
        """Explain the labels of an item, vote by vote, for each label that has votes on it."""
        return self.decide_quietly().explain(item)

    def decide_quietly(self) -> ResultEach:
        """Decide each problem by the method's own rule, without warnings."""
        return ResultEach(self, {name: fitted._quietly_decided() for name, fitted in self.parts.items()})

    @named_arguments(Fitted.audit)
    def audit(self, name: Any, target: Share = 0.9, **options: Any) -> Audit:
        """Prove a recall of one label with few expert reviews; see :meth:`rarevote.Fitted.audit`."""
        label = self.name_of(name)
        return self.parts[label].audit(self.positive(label), target, **options)

    def __repr__(self) -> str:
        return f"FittedEach({counted(len(self), self.by)}: {some_names(self.parts)})"


@with_named_arguments
@dataclass(frozen=True, eq=False)
class ResultEach(_Problems[Result], Framed):
    """A decision for each problem of a crowd; a mapping from its name to :class:`Result`.

    Attributes:
        fitted: the fits.
        parts: the results.
    """

    fitted: FittedEach
    parts: dict[str, Result]

    @cached_property
    def tasks(self) -> NDArray[Any]:
        """Names of all items, sorted."""
        return as_name_array(sort_names({name for one in self.parts.values() for name in one.tasks.tolist()}))

    # -- tables ------------------------------------------------------------------------------------------------------

    def columns(self, *, with_posterior: bool = False, with_prior: bool = False) -> dict[str, NDArray[Any]]:
        """One row per item and label: task (``<item>:<label>``), item, choice, then as :meth:`rarevote.Result.columns`.

        Arguments are as for that method.
        """
        return joined(
            [
                self._rows(name, one.columns(with_posterior=with_posterior, with_prior=with_prior))
                for name, one in self.parts.items()
            ]
        )

    def _rows(self, name: str, rows: dict[str, Any]) -> dict[str, Any]:
        """Rows of one problem, with the problem named in each task."""
        items = rows.pop("task")
        by = self.fitted.by
        where: dict[str, Any] = {"task": items, by: as_name_array([name] * len(items))}
        if by == CHOICE:
            pairs = as_name_array([pair_name(item, name) for item in items.tolist()])
            where = {"task": pairs, ITEM: items, **{by: where[by]}}
        return {**where, **{f"show:{title}" if title in where else title: cells for title, cells in rows.items()}}

    def sheet(self) -> dict[str, NDArray[Any]]:
        """One row per item: task, the answer to each label, the probability of each (``p:<label>``), columns to show.

        The answer is yes or no, or empty if there is no answer. ``p:<label>`` is the probability of yes, NaN where the
        label was not asked for the item. For a question, the answer is a class, and ``p:`` is its probability.
        """
        taken = {"task": self.tasks}
        rows: dict[str, NDArray[Any]] = dict(taken)
        chances: dict[str, NDArray[Any]] = {}
        shown: dict[str, NDArray[Any]] = {}
        for name, one in self.parts.items():
            place = positions_of(self.tasks, one.tasks.tolist())
            title = f"{self.fitted.by}:{name}" if name in taken else name
            rows[title] = np.full(len(self.tasks), "", dtype=object)
            rows[title][place] = one.labels
            chances[f"p:{name}"] = np.full(len(self.tasks), np.nan)
            chances[f"p:{name}"][place] = self._chance(name, one)
            for column, texts in one.fitted.crowd.shown.items():
                shown.setdefault(column, np.full(len(self.tasks), "", dtype=object))[place] = texts[: len(place)]
        rows |= chances
        return rows | {f"show:{name}" if name in rows else name: texts for name, texts in shown.items()}

    def _chance(self, name: str, one: Result) -> NDArray[Any]:
        if self.fitted.by != CHOICE:
            return one.confidence
        found = find_name(YES, one.probabilities.classes)
        assert found is not None  # the crowd of a label always has both answers
        return np.asarray(one.probabilities.p[:, found])

    @named_arguments(Result.write)
    def write(self, path: str | Path, *, spreadsheet_safe: bool = False, **options: Any) -> None:
        """Write the rows of :meth:`columns` to a file, in the format of its ending."""
        self._write(self.columns(**options), path, spreadsheet_safe=spreadsheet_safe)

    def write_sheet(self, path: str | Path, *, spreadsheet_safe: bool = False) -> None:
        """Write the rows of :meth:`sheet` to a file, in the format of its ending."""
        self._write(self.sheet(), path, spreadsheet_safe=spreadsheet_safe)

    @named_arguments(Result.write)
    def write_folder(self, folder: str | Path, *, spreadsheet_safe: bool = False, **options: Any) -> dict[str, Path]:
        """Write a CSV file for each problem to a new folder, all or none; returns the files."""
        from rarevote.io.write.atomic import appearing

        self._refuse_overwriting(folder, replaced=("",))
        names = _file_names(list(self.parts))
        with appearing(Path(folder)) as made:
            for name, one in self.parts.items():
                one.write(made / names[name], spreadsheet_safe=spreadsheet_safe, **options)
        return {name: Path(folder) / file for name, file in names.items()}

    def _write(self, rows: dict[str, Any], path: str | Path, *, spreadsheet_safe: bool) -> None:
        self._refuse_overwriting(path)
        write_columns(rows, Path(path), spreadsheet_safe=spreadsheet_safe)

    def _refuse_overwriting(self, path: str | Path | None, **folder: Any) -> None:
        if path is not None:
            for one in self.parts.values():
                refuse_overwriting(path, one.fitted.crowd.files, **folder)

    def soft_labels(self) -> SoftLabels:
        """Probability of no and of yes for every item and label with votes, as arrays for training."""
        from rarevote.io.write.soft_labels import SoftLabels

        self._need_labels(how("soft_labels", "--soft-out"))
        soft = {name: one.soft_labels() for name, one in self.parts.items()}
        tasks = [pair_name(item, name) for name, one in soft.items() for item in one.tasks.tolist()]
        p = np.concatenate([one.probabilities for one in soft.values()])
        return SoftLabels(as_name_array(tasks), [NO, YES], p, next(iter(soft.values())).files)

    def write_back(self, path: str | Path) -> int:
        """Write the labels as predictions for the platform of the export to import; returns the number of items."""
        from rarevote.io.platforms.write_back import write_back

        crowd = self._need_labels(how("write_back", "--back-out"))
        self._refuse_overwriting(path)
        crowd.check_way_back(Path(path))
        assert crowd.export is not None
        tasks, labels, scores = [], [], []
        for name, one in self.parts.items():
            votes = one.fitted.annotations
            rows = np.flatnonzero(one.codes[: votes.n_tasks] != ABSTAINED)
            tasks += [pair_name(item, name) for item in votes.tasks[rows].tolist()]
            labels += one.labels[rows].tolist()
            scores += one.confidence[rows].tolist()
        return write_back(crowd.export, tasks, labels, scores, path)

    def _need_labels(self, option: str) -> Crowd:
        if self.fitted.crowd is None:
            raise ParameterError(f"{option} is about one question: {_one_problem()}")
        return self.fitted.crowd

    # -- lists for people --------------------------------------------------------------------------------------------

    def review(self, max_review: int, path: str | Path | None = None, *, form: str = "table") -> dict[str, ReviewPlan]:
        """For each label, the items whose review lowers the expected cost most; also written to a file if one is named.

        Args:
            max_review: the largest number of items to list for each label.
            path: where to write the lists, one after the other; tasks are called ``<item>:<label>`` in it.
            form: "table", "label-studio" or "argilla".
        """
        self._refuse_overwriting(path)
        plans = {name: one.review(max_review) for name, one in self.parts.items()}
        self._write_plans(plans, path, form)
        return plans

    @named_arguments(Result.plan)
    def plan(
        self, budget: int, path: str | Path | None = None, *, form: str = "table", **options: Any
    ) -> dict[str, ReviewPlan]:
        """For each label, plan this many further votes; see :meth:`rarevote.Result.plan` for the options."""
        self._refuse_overwriting(path)
        plans = {name: one.plan(budget, **options) for name, one in self.parts.items()}
        self._write_plans(plans, path, form)
        return plans

    def _write_plans(self, plans: Mapping[str, ReviewPlan], path: str | Path | None, form: str) -> None:
        if path is None:
            return
        listed: list[ReviewItem] = []
        shown: list[dict[str, Any]] = []
        for name, plan in plans.items():
            crowd = self.parts[name].fitted.crowd
            for item in plan.items:
                task, where = item.task, {self.fitted.by: name}
                if self.fitted.by == CHOICE:
                    task, where = pair_name(task, name), {ITEM: task, **where}
                shown.append({**where, **{title: values[item.row] for title, values in crowd.to_show.items()}})
                listed.append(replace(item, row=len(listed), task=task))
        together = ReviewPlan(tuple(listed), sum(one.expected_cost for one in plans.values()), 0.0)
        write_review(together, Path(path), form, _by_column(shown))

    def explain(self, item: Any) -> dict[str, Explanation]:
        """Explain the labels of an item, vote by vote, for each label that has votes on it.

        Raises:
            InputError: no label has votes on it.
        """
        found: dict[str, Explanation] = {}
        for name, one in self.parts.items():
            names = as_name_array(one.fitted.annotations.tasks.tolist())
            alone = str(item).removesuffix(pair_name("", name))  # "17:health" names one label
            wanted = item if find_name(item, names) is not None else alone
            if find_name(wanted, names) is not None:
                found[name] = one.explain(wanted)
        if not found:
            next(iter(self.parts.values())).explain(item)  # raises an error that explains the name
        return found

    # -- figures -----------------------------------------------------------------------------------------------------

    def summary(self, *, expected: bool = True) -> dict[str, dict[str, Any]]:
        """Each result in figures; see :meth:`rarevote.Result.summary`."""
        return {name: one.summary(expected=expected) for name, one in self.parts.items()}

    def flagged(self, name: str) -> int:
        """Number of items with the label: a yes, or the rare class of a question."""
        one = self.parts[name]
        return int((one.codes == find_name(self.fitted.positive(name), one.probabilities.classes)).sum())

    def score(self, truth: Any) -> dict[str, dict[str, Any]]:
        """Figures that compare the labels with the truth, for each label that has truth.

        Args:
            truth: as ``gold`` for :func:`fit_each`.
        """
        known = known_by_label(self._need_labels(how("truth", "--truth")), truth)
        return {name: self.parts[name].score(labels) for name, labels in known.items() if labels and name in self.parts}

    @shows_progress
    def report(
        self,
        path: str | Path,
        *,
        truth: Any = None,
        charts: str | Path | None = None,
        source: str | None = None,
        audits: Mapping[str, Audit] | None = None,
        progress: Watch = False,
        anonymous: bool = False,
    ) -> Report:
        """Write one page: a table of all labels, and a section for each.

        Args:
            path: ends in ``.html``.
            truth: labels to check the result against, as for :meth:`score`.
            charts: a folder for every chart as SVG and PNG.
            source: the name of the data on the page.
            audits: audits of these labels, by the name of the label, to show what they proved.
            progress: as for :func:`rarevote.fit`.
            anonymous: whether annotators are called A1, A2, ..., numbered by their votes on all labels.
        """
        from rarevote.page.each import write_report_of_each
        from rarevote.page.parts import aliases_of, page_parts

        known = None if truth is None else known_by_label(self._need_labels(how("truth", "--truth")), truth)
        self._refuse_overwriting(path)
        self._refuse_overwriting(charts, replaced=(".svg", ".png"))
        titled = self.fitted.crowd or next(iter(self.parts.values())).fitted.crowd
        # An annotator has the same name for every label.
        aliases = aliases_of(*(one.fitted.annotations for one in self.parts.values())) if anonymous else None
        return write_report_of_each(
            {
                name: page_parts(one, (known or {}).get(name) or None, (audits or {}).get(name), aliases=aliases)
                for name, one in self.parts.items()
            },
            path,
            source=source or titled.title,
            positive={name: self.fitted.positive(name) for name in self.parts},
            n_items=len(self.tasks),
            noun=self.fitted.by,
            charts=charts,
        )

    def _repr_html_(self) -> str:
        header = [self.fitted.by, "votes", "items", "flagged"]
        rows = [
            [name, one.fitted.annotations.n_annotations, len(one.codes), self.flagged(name)]
            for name, one in self.parts.items()
        ]
        return facts_html(
            f"Result of {counted(len(self), self.fitted.by)}", {"items": len(self.tasks)}, [header, *rows]
        )

    def __repr__(self) -> str:
        items, problems = counted(len(self.tasks), "item"), counted(len(self), self.fitted.by)
        return f"ResultEach({problems} of {items}: {some_names(self.parts)})"


def _file_names(names: list[str]) -> dict[str, str]:
    """A file name for each problem: its own name, without characters that some systems reject."""
    files: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^\w.-]+", "_", name).strip("._")[:60] or "question"
        taken = {file.casefold() for file in files.values()}
        number, free = 1, f"{plain}.csv"
        while free.casefold() in taken:
            number += 1
            free = f"{plain}-{number}.csv"
        files[name] = free
    return files


def _by_column(rows: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Rows as columns; a cell is empty if its row lacks the column."""
    from rarevote.io.platforms.base import ABSENT

    columns: dict[str, NDArray[Any]] = {}
    for place, row in enumerate(rows):
        for name, value in row.items():
            columns.setdefault(name, np.full(len(rows), ABSENT, dtype=object))[place] = value
    return columns
