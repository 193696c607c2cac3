"""Five judges, three of them of one make: who makes the same mistakes, and how many independent ones that leaves.

How-to: docs/howto/language-models-as-judges.md
"""

from __future__ import annotations

import rarevote


def main() -> None:
    """A made-up jury with gold for some items."""
    jury = rarevote.simulate_jury(600, 5, groups=[(0, 1, 2)], together=0.9, random_state=1)
    gold = {task: int(jury.truth[task]) for task in range(150)}
    alike = rarevote.fit(jury.arrays, gold=gold).diagnose().alike
    for sentence in [*alike.sentences(), *alike.warnings]:
        print(sentence)
    agreement = rarevote.agreement(jury.arrays)
    print(f"Krippendorff's alpha {agreement.alpha:.2f}, Gwet's AC1 {agreement.ac1:.2f}")


if __name__ == "__main__":
    main()
