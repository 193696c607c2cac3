"""Does an altered plan that `verify` accepts certify more than an honest audit would?

Every execution takes the plan of an honest audit (true draws, true answers), alters
one to three things in it, makes the certificate that follows from the altered plan, as a forger would, and verifies
both. What is accepted is held against an honest audit of the altered frozen part (scores, strata, target, costs) with
the same round sizes and the same true answers: an altered plan must not certify a smaller set. `refused` counts plans
that `verify` does not accept, `accepted` those that it does, `certify_more` the accepted ones that certify a smaller
set than the honest audit, which must be 0.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from proofs import sources
from proofs.battery import Job, Proof, Row, parts
from rarevote.audit import Audit, verify
from rarevote.audit.plan_file import parse_plan, to_text
from rarevote.audit.planning import choices, left_to_estimate, stakes_for
from rarevote.errors import InputError, ParameterError

Record = dict[str, Any]


class Honest:
    """An honest audit that is one answer away from a certificate, so that the least gain of a forgery shows.

    Attributes:
        truth: whether each task is positive.
        text: the plan.
    """

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        n = int(generator.choice([60, 90]))
        p = np.where(np.arange(n) < n // 3, 0.9, 0.03) - 1e-4 * np.arange(n)
        self.truth = [bool(x) for x in generator.random(n) < p]
        gold = {0: self.truth[0], 5: self.truth[5]} if generator.random() < 0.5 else None
        audit = Audit.start(
            range(n), p, name="defect", target="4/5", seed=seed, gold=gold, flag_cost=4.0, confidence="9/10",
            aim="estimate" if generator.random() < 0.3 else "certificate", budget=n,
        )  # fmt: skip
        size = int(generator.integers(3, 15))
        self.text = audit.to_json()
        while review := audit.round(size):
            audit.answer({task: self.truth[task] for task in review})
            if not audit.is_certified:
                self.text = audit.to_json()
            elif size > 1:
                audit, size = Audit.from_json(self.text), 1
            else:
                break


def honest_set(altered: Record, truth: Mapping[Any, bool] | Sequence[bool]) -> int:
    """The set that an honest audit of the altered frozen part certifies, with its round sizes and true answers."""
    plan = parse_plan(to_text({**altered, "rounds": [], "extras": [], "repeats": []}))
    audit = Audit(plan)
    for one in altered["rounds"]:
        review = audit.round(len(one["tasks"]))
        audit.answer({task: truth[task] for task in review})
    return audit.certified


def _place(generator: np.random.Generator, values: list[Any]) -> int:
    return int(generator.integers(len(values)))


def _near(generator: np.random.Generator, value: float) -> float:
    """Another number: next to this one, of another size, or anywhere between 0 and 1."""
    way = generator.random()
    if way < 0.4:
        return value * (1 + float(generator.choice([-1, 1])) * 10 ** float(generator.uniform(-13, -1)))
    return value * 2 ** float(generator.uniform(-3, 3)) if way < 0.6 else float(generator.random())


def _some_round(generator: np.random.Generator, plan: Record) -> Record:
    found: Record = plan["rounds"][_place(generator, plan["rounds"])]
    return found


def _alter_stake(name: str) -> Callable[[np.random.Generator, Record], None]:
    def alter(generator: np.random.Generator, plan: Record) -> None:
        values = _some_round(generator, plan)[name]
        grid = [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.999999]
        everywhere = generator.random() < 0.3
        for i in range(len(values)) if everywhere else [_place(generator, values)]:
            if name == "gamma" and generator.random() < 0.6:
                values[i] = float(generator.choice(grid))
            else:
                values[i] = min(max(_near(generator, values[i]), 1e-9), 1 - 1e-9)

    return alter


def _bet_in_hindsight(generator: np.random.Generator, plan: Record) -> None:
    """What a forger does: in some rounds stake little where they lose and much where they win."""
    for one in generator.choice(plan["rounds"], min(len(plan["rounds"]), 3), replace=False).tolist():
        wealth = []
        for gamma in (0.01, 0.98):
            one["gamma"] = [gamma] * len(one["gamma"])
            wealth.append(Audit.from_json(json.dumps(plan)).wealth.log_wealth)
        one["gamma"] = np.where(wealth[0] > wealth[1], 0.01, 0.98).tolist()


def _alter_weight(generator: np.random.Generator, plan: Record) -> None:
    values = _some_round(generator, plan)["w"]
    i = _place(generator, values)
    values[i] = int(generator.choice([values[i] + 1, values[i] - 1, 2**32, 2**53, 2**63 // 100, 1, values[i] // 2]))


def _alter_score(generator: np.random.Generator, plan: Record) -> None:
    one = plan["strata"][_place(generator, plan["strata"])]
    one["p0"] = min(max(_near(generator, one["p0"]), 0.0), 1.0)


def _alter_shares(name: str) -> Callable[[np.random.Generator, Record], None]:
    def alter(generator: np.random.Generator, plan: Record) -> None:
        digits = 10 ** int(generator.integers(1, 11))
        plan[name] = f"{int(generator.integers(digits // 2, digits))}/{digits}"

    return alter


def _alter_cost(generator: np.random.Generator, plan: Record) -> None:
    plan["flag_cost"] = abs(_near(generator, plan["flag_cost"]))


def _alter_budget(generator: np.random.Generator, plan: Record) -> None:
    plan["budget"] = None if generator.random() < 0.3 else int(generator.integers(1, 200))


def _alter_aim(generator: np.random.Generator, plan: Record) -> None:
    plan["aim"] = str(generator.choice(["certificate", "estimate"]))


def _alter_sizes(generator: np.random.Generator, plan: Record) -> None:
    """Cut a round short, or give its last items to the next one."""
    i = _place(generator, plan["rounds"])
    cut = int(generator.integers(0, len(plan["rounds"][i]["tasks"]) + 1))
    for name in ("tasks", "answers"):
        moved = plan["rounds"][i][name][cut:]
        del plan["rounds"][i][name][cut:]
        if i + 1 < len(plan["rounds"]) and generator.random() < 0.5:
            plan["rounds"][i + 1][name][:0] = moved


def _alter_gold(generator: np.random.Generator, plan: Record) -> None:
    del generator
    plan["gold"] = plan["gold"][:-1]


def _alter_rounds(generator: np.random.Generator, plan: Record) -> None:
    """Drop a round, write one twice, or let two change places."""
    rounds, i = plan["rounds"], _place(generator, plan["rounds"])
    way = generator.random()
    if way < 0.4:
        del rounds[i]
    elif way < 0.7:
        rounds.insert(i, copy.deepcopy(rounds[i]))
    else:
        j = _place(generator, rounds)
        rounds[i], rounds[j] = rounds[j], rounds[i]


_ALTERATIONS: dict[str, Callable[[np.random.Generator, Record], None]] = {
    "hindsight": _bet_in_hindsight,
    "gamma": _alter_stake("gamma"), "v": _alter_stake("v"), "w": _alter_weight, "p0": _alter_score,
    "target": _alter_shares("target"), "confidence": _alter_shares("confidence"), "flag_cost": _alter_cost,
    "budget": _alter_budget, "aim": _alter_aim, "sizes": _alter_sizes, "gold": _alter_gold, "round": _alter_rounds,
}  # fmt: skip


def _choose_among_ties(generator: np.random.Generator, plan: Record, truth: Sequence[bool]) -> None:
    """A forger who knows all answers: an extreme cost, and the best of all weights that then reach the objective."""
    cost = float(generator.choice([1e-300, 1e-6, 1e6, 1.7e308]))
    audit, drawn = Audit(parse_plan(to_text({**plan, "rounds": [], "extras": [], "repeats": []}))), 0
    for one in plan["rounds"]:
        to_estimate = left_to_estimate(plan["aim"], len(truth) - len(plan["gold"]), drawn)
        rates, text = audit.recalibration.rates, audit.to_json()
        tried = []
        for weights in choices(audit.wealth, rates, cost, to_estimate)[0]:
            found = Audit.from_json(text)
            found._replay.add_round(stakes_for(found.wealth, rates, weights), len(one["tasks"]))
            found.answer({task: truth[task] for task in found.pending})
            tried.append(found)
        audit = min(tried, key=lambda found: (found.certified, *-found.wealth.log_wealth[: found.certified][-1:]))
        drawn += len(one["tasks"])
    plan["flag_cost"], plan["rounds"] = cost, json.loads(audit.to_json())["rounds"]


_KINDS = (*_ALTERATIONS, "ties")


def executed(honest: Honest, generator: np.random.Generator, kind: str) -> str:
    """What became of one altered plan: refused, accepted, or certify_more."""
    plan = json.loads(honest.text)
    if kind == "ties":
        _choose_among_ties(generator, plan, honest.truth)
    else:
        _ALTERATIONS[kind](generator, plan)
    for other in generator.choice(list(_ALTERATIONS), int(generator.integers(0, 3))).tolist():
        if plan["rounds"] and other != "hindsight":  # which needs a plan that can be read
            _ALTERATIONS[other](generator, plan)
    try:
        altered = Audit.from_json(json.dumps(plan))
        refused = bool(verify(altered, altered.certificate()))
    except (InputError, ParameterError):
        refused = True
    if refused:
        return "refused"
    return "certify_more" if altered.certified < honest_set(plan, honest.truth) else "accepted"


def fuzzed(n: int, seed: int, n_plans: int = 40) -> dict[str, Counter[str]]:
    """What became of ``n`` altered plans, by what was altered first."""
    generator = np.random.default_rng(seed)
    plans = [Honest(seed * n_plans + number) for number in range(n_plans)]
    found = {kind: Counter[str]() for kind in _KINDS}
    for number in range(n):
        kind = _KINDS[number % len(_KINDS)]
        found[kind][executed(plans[_place(generator, plans)], generator, kind)] += 1
    return found


def run(job: Job) -> dict[str, Any]:
    """Altered plans of one seed."""
    return {kind: dict(counts) for kind, counts in fuzzed(job.size, job.part).items()}


def rows(name: str, results: list[dict[str, Any]]) -> list[Row]:
    """A row for each thing that was altered first."""
    del name
    found = []
    for kind in _KINDS:
        counts = Counter[str]()
        for result in results:
            counts.update(result[kind])
        outcomes = {outcome: counts[outcome] for outcome in ("refused", "accepted", "certify_more")}
        found.append({"altered": kind, "executions": sum(counts.values()), **outcomes})
    return found


PROOF = Proof(
    "plan_fuzz",
    jobs=lambda scale: parts("plan_fuzz", "plans", 52_000 * scale, 2_600),
    sources=lambda _: (*sources.AUDIT, "proofs/plan_fuzz.py"),
    run=run,
    rows=rows,
    findings=lambda row: int(row["certify_more"]),
    row_of=lambda _: "plans",
)
