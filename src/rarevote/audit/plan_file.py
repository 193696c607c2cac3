"""The plan file: all settings of an audit and all answers, in one JSON file.

It has one object on one line, with keys in this order::

    format, version           "rarevote audit plan"; 1, or 2 for a tail of grades
    class, classes            the class whose recall is audited, or the name of the tail; all classes, or null
    tail                      the grades of the tail, from the end of the scale inwards; only in version 2
    target, confidence        rational numbers as text, "9/10"
    flag_cost, aim, budget    the settings of the planner
    score                     which score ranks the items: "sampler", "posterior", "reported"; only if known
    population                {"voted", "unvoted", "left_out", "only_voted_items"}: items of the strata that have votes
                              and that have none, items without votes that are in no stratum, and whether that was
                              requested; only if known
    instructions              {"question", "definitions"}: the question to the expert, and [class, text] with the
    meaning of
                              classes; only if given
    planner                   the number of the planner that chose the stakes, 1; plans without it use planner 1
    seed                      16 hexadecimal digits
    started                   time in UTC
    labels_sha256, gold_sha256
    source                    paths of labels and gold, relative to the plan's folder, how they are read, and the best
                              other class of every task, for the result; or null
    earlier                   earlier audits of the same labels: SHA-256 and result of their plans
    gold                      [task, label] of items known before the audit
    strata                    {"p0", "tasks"}: the frozen ranking, best first
    rounds                    {"w", "v", "gamma", "tasks", "answers"}: tasks in drawn order; an answer is null while it
                              is open, {"label", "who", "when"}, or {"worst_case": true, "who", "when"}
    extras, repeats           {"task", "label", "who", "when"}: answers on items that were not requested; second, blind
                              answers of the same expert

Rounds can only be added and answers only filled in: :mod:`rarevote.audit.plan_writing` refuses anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarevote.audit.instructions import Instructions
from rarevote.audit.planning import MAX_FLAG_COST, MIN_FLAG_COST
from rarevote.audit.strata import Strata, check_weights
from rarevote.audit.wealth import Stakes, check_digits
from rarevote.crowd.names import as_name_array, find_name, name_key, plain_name
from rarevote.crowd.rare import parse_tail
from rarevote.errors import InputError, ParameterError, shown
from rarevote.io.json_text import parse_json

FORMAT = "rarevote audit plan"
#: Versions of plans: for one class, and for a tail of grades.
VERSION, TAIL_VERSION = 1, 2
#: The planner of this version, see :mod:`rarevote.audit.planning`.
PLANNER = 1
Aim = Literal["certificate", "estimate"]

# Nesting of values that are only passed on: ours have four levels, and Python writes fewer than it reads.
_DEEPEST = 50


@dataclass(frozen=True)
class Answer:
    """An expert's answer on an item, or the fact that it was closed as the worst case."""

    label: Any
    who: str | None
    when: str
    worst_case: bool = False

    def as_json(self) -> dict[str, Any]:
        """The answer in the format of the plan."""
        said = {"worst_case": True} if self.worst_case else {"label": self.label}
        return {**said, "who": self.who, "when": self.when}


@dataclass(eq=False)
class Round:
    """One round: stakes, tasks in drawn order, and answers."""

    stakes: Stakes
    tasks: list[Any]
    answers: list[Answer | None]

    def as_json(self) -> dict[str, Any]:
        """The round in the format of the plan."""
        return {
            "w": list(self.stakes.w),
            "v": self.stakes.v.tolist(),
            "gamma": self.stakes.gamma.tolist(),
            "tasks": self.tasks,
            "answers": [None if answer is None else answer.as_json() for answer in self.answers],
        }


@dataclass(frozen=True)
class Population:
    """The items in the strata.

    Attributes:
        voted: number of items in the strata with votes.
        unvoted: number of items in the strata without votes.
        left_out: number of items without votes that are in no stratum.
        only_voted_items: whether items without votes should be left out.
    """

    voted: int
    unvoted: int
    left_out: int = 0
    only_voted_items: bool = False


@dataclass(eq=False)
class Plan:
    """The contents of a plan file; the module explains the fields."""

    name: Any
    classes: list[Any] | None
    target: Fraction
    confidence: Fraction
    flag_cost: float
    aim: Aim
    budget: int | None
    seed: int
    started: str
    labels_sha256: str | None
    gold_sha256: str | None
    source: dict[str, Any] | None
    earlier: list[dict[str, Any]]
    gold: dict[Any, Any]
    strata: Strata
    score: str | None = None
    population: Population | None = None
    planner: int | None = None
    instructions: Instructions | None = None
    tail: list[Any] | None = None
    rounds: list[Round] = field(default_factory=list)
    extras: dict[Any, Answer] = field(default_factory=dict)
    repeats: dict[Any, Answer] = field(default_factory=dict)

    @property
    def labels(self) -> list[Any]:
        """What an expert can answer: the classes, or the class and False if the others are not known."""
        return list(self.classes) if self.classes and len(self.classes) > 1 else [self.name, False]

    @property
    def tasks(self) -> set[Any]:
        """All tasks of the audit, including gold."""
        return {task for group in self.strata.tasks for task in group} | self.gold.keys()

    @property
    def scored(self) -> bool:
        """Whether the labels are a table of scores: none of its items has votes."""
        return "score" in (self.source or {})

    @property
    def may_leave_out(self) -> bool:
        """Whether items without votes can be in no stratum.

        This must be requested, except in plans of version 0.2, which name neither a planner nor a population and have
        only items with votes. An audit of a table of scores has all items.
        """
        if self.scored:
            return False
        return self.planner is None if self.population is None else self.population.only_voted_items

    def labelled(self) -> Iterator[tuple[Any, Any]]:
        """Every label of the gold and of the expert, with its task."""
        yield from self.gold.items()
        for one in self.rounds:
            for task, answer in zip(one.tasks, one.answers, strict=True):
                if answer is not None and not answer.worst_case:
                    yield task, answer.label
        for answers in (self.extras, self.repeats):
            yield from ((task, answer.label) for task, answer in answers.items())

    def room(self, n_left: int, n_drawn: int) -> int:
        """Number of tasks that can still be drawn."""
        return n_left if self.budget is None else min(n_left, self.budget - n_drawn)

    def frozen(self) -> dict[str, Any]:
        """What never changes once the audit has started."""
        return {
            "format": FORMAT,
            "version": VERSION if self.tail is None else TAIL_VERSION,
            "class": self.name,
            "classes": self.classes,
            **({} if self.tail is None else {"tail": self.tail}),
            "target": str(self.target),
            "confidence": str(self.confidence),
            "flag_cost": self.flag_cost,
            "aim": self.aim,
            "budget": self.budget,
            # A plan must be written as it was read, so that its fingerprint is the same: fields of later versions are
            # optional.
            **({} if self.score is None else {"score": self.score}),
            **({} if self.population is None else {"population": asdict(self.population)}),
            **({} if self.planner is None else {"planner": self.planner}),
            **({} if self.instructions is None else {"instructions": self.instructions.as_json()}),
            "seed": f"{self.seed:016x}",
            "started": self.started,
            "labels_sha256": self.labels_sha256,
            "gold_sha256": self.gold_sha256,
            "source": self.source,
            "earlier": self.earlier,
            "gold": [[task, label] for task, label in self.gold.items()],
            "strata": [
                {"p0": p0, "tasks": list(tasks)}
                for p0, tasks in zip(self.strata.p0.tolist(), self.strata.tasks, strict=True)
            ],
        }

    def as_json(self) -> dict[str, Any]:
        """The whole plan."""
        return {
            **self.frozen(),
            "rounds": [one.as_json() for one in self.rounds],
            "extras": [{"task": task, **answer.as_json()} for task, answer in self.extras.items()],
            "repeats": [{"task": task, **answer.as_json()} for task, answer in self.repeats.items()],
        }


def to_text(record: Any) -> str:
    """JSON on one line, the same text for the same contents."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def fingerprint(record: Any) -> str:
    """SHA-256 of :func:`to_text`; for a whole plan, that of the file."""
    return sha256(to_text(record).encode("utf-8")).hexdigest()


# --------------------------------------------------------------------------------------------------------------------
# reading


def parse_plan(text: str) -> Plan:
    """A plan from the text of its file.

    Raises:
        InputError: the text is not a plan, is of a later version, or contradicts itself.
    """
    try:
        record = parse_json(text, unique_keys=True)
    except ValueError as error:
        raise InputError(f"the plan cannot be read as JSON ({error}): it is incomplete or was edited by hand") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f'this is not an audit plan: its "format" is not "{FORMAT}"')
    version = record.get("version")
    if type(version) is not int or version not in (VERSION, TAIL_VERSION):
        raise InputError(
            f"the plan has version {shown(version)}; this rarevote reads versions {VERSION} and {TAIL_VERSION}: use "
            "the version of rarevote that wrote it, or a newer one"
        )
    if ("tail" in record) != (version == TAIL_VERSION):
        raise InputError(
            f"the plan is damaged: only version {TAIL_VERSION} has the grades of a tail, and it needs them"
        )
    if type(record.get("planner", PLANNER)) is not int or record.get("planner", PLANNER) != PLANNER:
        raise InputError(
            f"the plan was made by planner {shown(record['planner'])}; this rarevote has planner {PLANNER}: use the "
            "version of rarevote that wrote it, or a newer one"
        )
    try:
        plan = _plan(record)
    except (InputError, ParameterError) as error:
        raise InputError(f"the plan is damaged: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError) as error:
        raise InputError(f"the plan is damaged: {type(error).__name__} {shown(str(error), 200)}") from None
    _check(plan)
    return plan


def _plan(record: Mapping[str, Any]) -> Plan:
    strata = record["strata"]
    return Plan(
        name=json_name(record["class"], "class"),
        classes=None if record["classes"] is None else _names(record["classes"], "class"),
        target=_rational(record["target"]),
        confidence=_rational(record["confidence"]),
        flag_cost=float(_numbers([record["flag_cost"]])[0]),
        aim=_one_of(record["aim"], *get_args(Aim)),
        budget=_of(record["budget"], int, type(None)),
        seed=int(_matching("[0-9a-f]{16}", record["seed"], "not a seed of 16 hexadecimal digits"), 16),
        started=_of(record["started"], str),
        labels_sha256=_of(record["labels_sha256"], str, type(None)),
        gold_sha256=_of(record["gold_sha256"], str, type(None)),
        source=checked_source(_written_as_read(record["source"])),
        earlier=_written_as_read([_of(one, dict) for one in _list(record["earlier"])]),
        gold=_once((json_name(task, "task"), json_name(label, "label")) for task, label in _list(record["gold"])),
        strata=Strata(
            tuple(tuple(_names(one["tasks"], "task")) for one in strata), _numbers([one["p0"] for one in strata])
        ),
        score=_of(record.get("score"), str, type(None)),
        population=_population(record["population"]) if "population" in record else None,
        planner=record.get("planner"),
        instructions=_instructions(record["instructions"]) if "instructions" in record else None,
        tail=None if "tail" not in record else _names(record["tail"], "grade"),
        rounds=[_round(one) for one in record["rounds"]],
        extras=_once((json_name(one["task"], "task"), _answer(one)) for one in record["extras"]),
        repeats=_once((json_name(one["task"], "task"), _answer(one)) for one in record["repeats"]),
    )


def _population(record: Mapping[str, Any]) -> Population:
    voted, unvoted, left_out = (_of(record[name], int) for name in ("voted", "unvoted", "left_out"))
    if min(voted, unvoted, left_out) < 0 or len(record) != 4:
        raise ValueError(f"{shown(record)} is not a population")
    return Population(voted, unvoted, left_out, _of(record["only_voted_items"], bool))


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A mapping by task; refuses two entries for one task."""
    found: dict[Any, Any] = {}
    for task, said in pairs:
        if task in found:
            raise ValueError(f"task {shown(task)} occurs twice")
        found[task] = said
    return found


def _matching(pattern: str, text: Any, what: str) -> str:
    if not re.fullmatch(pattern, _of(text, str)):
        raise ValueError(f"{shown(text)} is {what}")
    return str(text)


def _of(value: Any, *kinds: type) -> Any:
    """The value, if it has one of these types; a boolean is not a number."""
    if type(value) not in kinds:
        raise TypeError(f"{shown(value)} is a {type(value).__name__}")
    return value


def _one_of(value: Any, *known: Any) -> Any:
    if value not in known:
        raise ValueError(f"{shown(value)} is not one of {known}")
    return value


def _list(value: Any) -> list[Any]:
    return list(_of(value, list))


def _names(names: Any, what: str) -> list[Any]:
    return [json_name(name, what) for name in _list(names)]


def _instructions(record: Any) -> Instructions:
    found = Instructions.from_json(record)
    _names([name for name, _ in found.definitions], "class")
    return found


def checked_source(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """A record of where the labels are, or None, if its fields have the types that an audit uses.

    Raises:
        TypeError: one has another type.
        ValueError: a group of tasks has no class.
    """
    if record is None:
        return None
    source: dict[str, Any] = _of(record, dict)
    for place in _list(source.get("labels", [])):
        _of(place, str)
    for name in ("review_as", "score"):
        _of(source.get(name, ""), str)
    _of((_of(source.get("reading"), dict, type(None)) or {}).get("items"), str, type(None))
    for name in ("others", "grades"):
        for label, tasks in _list(source.get(name, [])):
            json_name(label, "class")
            _names(tasks, "task")
    return source


def _numbers(values: Any) -> NDArray[np.float64]:
    """A list of finite numbers."""
    array = np.array([float(_of(value, int, float)) for value in _list(values)], dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("a number is not finite")
    return array


def _optional_name(value: Any, what: str) -> Any:
    return None if value is None else json_name(value, what)


def _rational(text: Any) -> Fraction:
    """A rational number in our notation; a huge power of ten would be expanded to all digits."""
    return Fraction(_matching(r"[0-9]{1,30}(/[0-9]{1,30})?", text, "not a rational number"))


def _written_as_read(value: Any) -> Any:
    """Check that values that are only passed on can be stored in a plan."""
    inner: list[Any] = [[value]]
    for _ in range(_DEEPEST):
        inner = [one for outer in inner for one in _parts(outer) if isinstance(one, (dict, list))]
    if inner:
        raise ValueError("nested too deep")
    to_text(value)
    return value


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _round(record: Mapping[str, Any]) -> Round:
    stakes = Stakes(tuple(_list(record["w"])), _numbers(record["v"]), _numbers(record["gamma"]))
    answers = [None if answer is None else _answer(answer) for answer in _list(record["answers"])]
    return Round(stakes, _names(record["tasks"], "task"), answers)


def _answer(record: Mapping[str, Any]) -> Answer:
    who, when = _optional_name(record["who"], "expert"), _of(record["when"], str)
    if record.get("worst_case"):
        return Answer(None, who, when, worst_case=True)
    return Answer(json_name(record["label"], "label"), who, when)


def is_tail_of(name: Any, tail: list[Any], classes: list[Any] | None) -> bool:
    """Whether a tail consists of some of the classes, and its name is not a class and fits its grades.

    A name like ``>=severe`` ends the tail at this grade, unless no class has it (a grade without votes).
    """
    grades, known = set(map(name_key, tail)), set(map(name_key, classes or []))
    if not tail or len(grades) != len(tail) or not grades < known or name_key(name) in known:
        return False
    named = parse_tail(name)
    inner = None if named is None else find_name(named[1], as_name_array(classes or []))
    return inner is None or name_key((classes or [])[inner]) == name_key(tail[-1])


def _check(plan: Plan) -> None:
    n_strata = len(plan.strata.tasks)
    tasks = [task for group in plan.strata.tasks for task in group]
    if not tasks or not all(plan.strata.tasks):
        raise InputError("the plan is damaged: it has a stratum without tasks")
    if len(set(tasks)) != len(tasks) or not plan.gold.keys().isdisjoint(tasks):
        raise InputError("the plan is damaged: a task occurs twice")
    affordable = MIN_FLAG_COST <= plan.flag_cost <= MAX_FLAG_COST
    if not ((plan.strata.p0 >= 0) & (plan.strata.p0 <= 1)).all() or not affordable:
        raise InputError("the plan is damaged: its scores or its cost are out of range")
    known = None if plan.classes is None else set(map(name_key, plan.classes))
    if plan.tail is None and known is not None and name_key(plan.name) not in known:
        raise InputError(f"the plan is damaged: {shown(plan.name)} is not one of its classes")
    if plan.tail is not None and not is_tail_of(plan.name, plan.tail, plan.classes):
        raise InputError(f"the plan is damaged: {shown(plan.tail)} is not a tail of its classes")
    people = plan.population
    if people is not None:
        here, away = people.voted + people.unvoted, people.unvoted if people.only_voted_items else people.left_out
        if here != len(tasks) or away:
            raise InputError("the plan is damaged: its population does not match its strata")
        if plan.scored and people.only_voted_items:
            raise InputError("the plan is damaged: an audit of a table of scores leaves no items out")
    if not 0 < plan.target <= 1 or not 0 < plan.confidence < 1:
        raise InputError("the plan is damaged: its target or confidence is out of range")
    try:
        check_digits(plan.target)
    except ParameterError as error:
        raise InputError(f"the plan cannot be used: {error}") from None
    for number, one in enumerate(plan.rounds, 1):
        w, v, gamma = one.stakes.w, one.stakes.v, one.stakes.gamma
        try:
            check_weights(w, plan.strata.sizes)
        except InputError as error:
            raise InputError(f"the plan is damaged: round {number}: {error}") from None
        sound = (
            len(v) == n_strata
            and len(gamma) == n_strata - 1
            and bool(((v >= 0) & (v <= 1)).all() and ((gamma > 0) & (gamma < 1)).all())
            and 0 < len(one.tasks) == len(one.answers)
        )
        if not sound:
            raise InputError(f"the plan is damaged: round {number} has impossible rates, stakes or tasks")
        if number < len(plan.rounds) and None in one.answers:
            raise InputError(f"the plan is damaged: round {number} has open answers, but round {number + 1} was drawn")


# --------------------------------------------------------------------------------------------------------------------
# names and text


def json_name(value: Any, what: str) -> Any:
    """A task or label in JSON: text, a number or a boolean, exactly as given.

    Raises:
        InputError: it is something else.
    """
    value = plain_name(value)
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{what} {shown(value)} has half of a character, which no file can store") from None
    if isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value)):
        return value
    raise InputError(f"{what} {shown(value)} is neither text nor a number: an audit stores names in a JSON file")


def read_text(path: Path | str) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
