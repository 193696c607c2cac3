"""Grades in order: severity from none to critical, with answers outside the scale.

How-to: docs/howto/grades.md
"""

from __future__ import annotations

import numpy as np

import rarevote

GRADES = ["none", "mild", "severe", "critical"]


def rated_items(n_items: int = 300, n_people: int = 6, seed: int = 0) -> tuple[list[tuple[int, str, str]], list[str]]:
    """Votes of people who err to neighbouring grades, one of whom rates high; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, n_items, p=[0.5, 0.3, 0.15, 0.05])
    votes = []
    for item, grade in enumerate(truth.tolist()):
        for person in range(n_people):
            lean = 1 if person == 0 and rng.random() < 0.5 else 0
            said = int(np.clip(grade + lean + rng.choice([-1, 0, 0, 0, 1]), 0, 3))
            votes.append((item, f"person {person}", "broken photo" if rng.random() < 0.03 else GRADES[said]))
    return votes, [GRADES[grade] for grade in truth]


def main() -> None:
    """Severity by four rules, which items are severe or worse, who leans which way, and how far people agree."""
    votes, truth = rated_items()
    fitted = rarevote.fit(votes, ordered=GRADES)
    for rule in ("levelled", "median", "mean", "argmax"):
        labels = fitted.decide(rule).labels
        print(f"{rule:9} right on {np.mean(labels == np.array(truth, dtype=object)):.0%} of the items")
    severe = fitted.decide().find(">=severe")
    print(f"severe or critical: {severe.flagged.sum()} items, the most probable of them {severe.p.argmax()}")
    print("mean grade of the first items:", fitted.decide().columns()["grade"][:5].round(2).tolist())
    if isinstance(fitted.method, rarevote.AnchoredOrdered):
        print(fitted.method.leans_)
    agreement = fitted.diagnose().on_grades
    assert agreement is not None
    print(f"agreement: alpha {agreement.alpha:.2f}, AC2 {agreement.ac2:.2f}, kappa {agreement.quadratic_kappa:.2f}")


if __name__ == "__main__":
    main()
