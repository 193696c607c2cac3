"""Several labels in one crowd: check boxes that eight inspectors ticked, decided label by label.

How-to: docs/howto/several-labels.md
"""

from __future__ import annotations

import random

import rarevote

SHARES = {"crack": 0.05, "dent": 0.2, "rust": 0.5}


def answers() -> list[tuple[str, str, list[str]]]:
    """What the inspectors ticked: item, annotator, choices."""
    draw = random.Random(7)
    sees = {(f"inspector-{n}", name): draw.uniform(0.5, 0.9) for n in range(8) for name in SHARES}
    rows = []
    for number in range(200):
        has = [name for name, share in SHARES.items() if draw.random() < share]
        for n in draw.sample(range(8), 5):
            who = f"inspector-{n}"
            ticked = [name for name in SHARES if draw.random() < (sees[who, name] if name in has else 0.04)]
            rows.append((f"photo-{number:03d}", who, ticked))
    return rows


def main() -> None:
    """How many items get each label, and what to expect of it."""
    fitted = rarevote.fit_each(answers(), multilabel=True)
    result = fitted.decide()
    for label, one in result.items():
        expected = one.expect("yes")
        print(label, result.flagged(label), f"flagged, recall {expected.recall.description}")
    sheet = result.sheet()
    print({name: sheet[name][0] for name in ("task", *SHARES)})
    # A label of its own: a recall target for cracks alone.
    wide = fitted.decide(min_recall={"crack": 0.95})
    print("crack", wide.flagged("crack"), "flagged for a recall of 0.95")


if __name__ == "__main__":
    main()
