"""Pictures of Label Studio with our predictions and our column in it, for docs/howto/live.md.

    python -m proofs.live.pictures [--environment .venv-live]

Writes docs/live/*.png.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from tests.browser import WITHOUT, started_browser

from proofs.live.__main__ import REPOSITORY, SKILLS, Proof, people_annotate
from proofs.live.server import Person, install, running, sign_up

PICTURES = REPOSITORY / "docs" / "live"
N_ITEMS = 16
# What the table of tasks shows, as somebody would have chosen it.
HIDDEN = [
    "completed_at", "cancelled_annotations", "total_predictions", "annotators", "annotations_results",
    "annotations_ids", "predictions_score", "predictions_results", "file_upload",
    "storage_filename", "created_at", "updated_at", "updated_by", "avg_lead_time", "draft_exists", "inner_id",
]  # fmt: skip


def fill(url: str, lead: Person, people: dict[str, Person]) -> int:
    """A project that was pulled, aggregated and pushed; returns its number."""
    project = lead.project("Rails", [{"data": {"text": f"rail {number}"}} for number in range(N_ITEMS)])
    with tempfile.TemporaryDirectory() as name:
        proof = Proof(url, Path(name), lead, random.Random(3))
        people_annotate(proof, people, project)
        proof.run("pull", "label-studio", "--project", str(project), "--out", "export.json")
        proof.run("aggregate", "export.json", "--out", "result.csv", "-q")
        proof.run("push", "label-studio", "result.csv", "--export", "export.json", "--project", str(project),
                  "--column", "p_defect")  # fmt: skip
    names = [f"tasks:{name}" for name in HIDDEN]
    hidden = {"explore": names, "labeling": [*names, "tasks:predictions_model_versions"]}
    data = {"title": "By p_defect", "ordering": ["-tasks:data.p_defect"], "hiddenColumns": hidden, "type": "list"}
    lead.post("/api/dm/views/", {"project": project, "data": data})
    return project


def take(url: str, lead: Person, project: int) -> None:
    """Take the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    cookies: list[Any] = [{"name": one.name, "value": one.value, "url": url} for one in lead.browser.cookies.jar]
    first = max(lead.tasks(project), key=lambda task: task["data"]["p_defect"])["id"]
    with started_browser() as browser:
        assert browser is not None, WITHOUT
        context = browser.new_context(viewport={"width": 1180, "height": 520})
        context.add_cookies(cookies)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{url}/projects/{project}/data")
        page.get_by_text("rail 0").first.wait_for()
        page.wait_for_timeout(3000)
        page.screenshot(path=PICTURES / "column.png")
        page.goto(f"{url}/projects/{project}/data?task={first}")
        page.get_by_text("Compare All").wait_for()
        page.get_by_text("rarevote").first.click()
        page.wait_for_timeout(3000)
        page.screenshot(path=PICTURES / "prediction.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=REPOSITORY / ".venv-live")
    given = parser.parse_args()
    install(given.environment)
    with running(given.environment) as url:
        lead = sign_up(url, "lead@example.org")
        people = {one: sign_up(url, f"{one}@example.org") for one in SKILLS}
        take(url, lead, fill(url, lead, people))
    print(json.dumps(sorted(path.name for path in PICTURES.iterdir())))


if __name__ == "__main__":
    main()
