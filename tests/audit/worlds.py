"""Populations, experts and a replay that knows nothing of the implementation."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from rarevote.audit import Audit


def world(n: int = 400, *, seed: int = 0, rate: float = 0.2) -> tuple[list[float], list[bool]]:
    """Scores that are right on average, and a truth."""
    generator = np.random.default_rng(seed)
    p = generator.beta(4 * rate, 4 * (1 - rate), n)
    return p.tolist(), (generator.random(n) < p).tolist()


def started(n: int = 400, *, seed: int = 1, **options: Any) -> tuple[Audit, list[bool]]:
    scores, truth = world(n)
    options = {"name": "defect", "target": 0.9, "seed": seed, **options}
    return Audit.start(range(n), scores, **options), truth


def finished(n: int = 400, *, seed: int = 1, **options: Any) -> tuple[Audit, list[bool]]:
    audit, truth = started(n, seed=seed, **options)
    while review := audit.round():
        audit.answer({task: truth[task] for task in review}, who="anna")
    return audit, truth


def independent_replay(text: str) -> list[float]:
    """The log wealth of every set, from the text of a plan alone: draws, bets and nothing else."""
    plan = json.loads(text)
    rho = Fraction(plan["target"])
    c, rows = (1 - rho) / rho, [list(one["tasks"]) for one in plan["strata"]]
    B, wealth = len(rows), [0.0] * (len(rows) - 1)
    G = sum(label == plan["class"] for _, label in plan["gold"])
    S = [-c * G] * (B - 1)
    for number, one in enumerate(plan["rounds"], 1):
        w, v, gamma = one["w"], [Fraction(x) for x in one["v"]], one["gamma"]
        for index, (task, answer) in enumerate(zip(one["tasks"], one["answers"], strict=True)):
            if answer is None:
                return wealth
            R = [len(row) for row in rows]
            omega = sum(a * b for a, b in zip(w, R, strict=True))
            hashed = hashlib.sha256(f"{plan['seed']}:{number}:{index}".encode()).digest()
            point, b = int.from_bytes(hashed[:16], "big") * omega // 2**128, 0
            while point >= sum(w[a] * R[a] for a in range(b + 1)):
                b += 1
            place = int.from_bytes(hashed[16:], "big") * R[b] // 2**128
            assert rows[b][place] == task
            rows[b][place] = rows[b][-1]
            rows[b].pop()
            y = None if answer.get("worst_case") else int(answer["label"] == plan["class"])
            for j in range(B - 1):
                C = S[j] - c * sum(R[a] * v[a] for a in range(j + 1))
                most = [Fraction(omega, w[a]) * (1 if a > j else c * v[a]) for a in range(B) if R[a]]
                top = C + max(most)
                X = top if y is None else C + Fraction(omega, w[b]) * (y if b > j else -c * (y - v[b]))
                wealth[j] = math.inf if top <= 0 else wealth[j] + math.log(1 - Fraction(gamma[j]) * X / top)
                S[j] += (y is None or y) if j < b else -c * (y or 0)
    if not any(rows):
        wealth = [math.inf if S[j] <= 0 else wealth[j] for j in range(B - 1)]
    return wealth
