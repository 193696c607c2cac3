"""From a labelling platform: an export of Label Studio is read as it is, ground truth as gold.

How-to: docs/howto/platforms.md
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import rarevote


def annotation(who: int, choice: str, *, truth: bool = False) -> dict[str, object]:
    """What one person chose, as the platform writes it."""
    result = {
        "id": f"r{who}", "from_name": "damage", "to_name": "image", "type": "choices", "value": {"choices": [choice]},
    }  # fmt: skip
    return {"completed_by": who, "was_cancelled": False, "ground_truth": truth, "result": [result]}


def main() -> None:
    """Two images, three people, one answer by the expert."""
    export = [
        {
            "id": 1,
            "data": {"image": "wing-1.jpg"},
            "annotations": [annotation(3, "crack"), annotation(4, "sound"), annotation(5, "crack")],
        },
        {
            "id": 2,
            "data": {"image": "wing-2.jpg"},
            "annotations": [annotation(3, "sound"), annotation(4, "sound"), annotation(9, "sound", truth=True)],
        },
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "project.json"
        path.write_text(json.dumps(export))
        crowd = rarevote.read(path)
        print(crowd.annotations.n_annotations, "votes; gold:", crowd.gold)
        result = rarevote.fit(crowd, "majority-vote").decide()
        print(dict(zip(result.tasks.tolist(), result.labels.tolist(), strict=True)))


if __name__ == "__main__":
    main()
