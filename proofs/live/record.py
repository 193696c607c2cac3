"""Answers of a real Label Studio, recorded for the fake of the tests (tests/io/live/fake.py).

    python -m proofs.live.record [--environment .venv-live]

Writes tests/io/live/recorded.json: status and body of one answer of each kind that the live modules use. The key that a
token was exchanged for is replaced; the people and the items are made up.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import httpx

from proofs.live.server import CONTROL, Person, install, running, sign_up

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = REPOSITORY / "tests" / "io" / "live" / "recorded.json"
_ABOVE = {"operator": "greater", "type": "Number", "value": 0, "filter": "filter:tasks:id"}


def answers(url: str, lead: Person, ann: Person) -> dict[str, Any]:
    """One answer of each kind."""
    project = lead.project("rails", [{"data": {"text": f"rail {number}"}} for number in range(3)])
    first = lead.tasks(project)[0]["id"]
    ann.annotate(first, "defect")
    key = httpx.post(f"{url}/api/token/refresh/", json={"refresh": lead.token})
    client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key.json()['access']}"}, timeout=60)
    place = f"/api/projects/{project}"
    query = json.dumps({"ordering": ["tasks:id"], "filters": {"conjunction": "and", "items": [_ABOVE]}})
    pages: dict[str, str | int] = {"project": project, "page_size": 1, "resolve_uri": "false", "query": query}
    good = {"task": first, "result": [{**CONTROL, "value": {"choices": ["defect"]}}], "score": 0.9,
            "model_version": "rarevote"}  # fmt: skip
    strange = {**good, "result": [{**CONTROL, "from_name": "other", "value": {"choices": ["defect"]}}]}
    said = {
        "token refresh": key,
        "token refresh refused": httpx.post(f"{url}/api/token/refresh/", json={"refresh": "a.b.c"}),
        "project": client.get(f"{place}/"),
        "project not found": client.get("/api/projects/999/"),
        "legacy token refused": httpx.get(f"{url}{place}/", headers={"Authorization": f"Token {'a' * 40}"}),
        "no token": httpx.get(f"{url}{place}/"),
        "users": client.get("/api/users/"),
        "tasks": client.get("/api/tasks/", params={**pages, "fields": "all"}),
        "tasks only": client.get("/api/tasks/", params={**pages, "fields": "task_only", "include": "id,data,meta"}),
        "task": client.get(f"/api/tasks/{first}/", params={"resolve_uri": "false"}),
        "task not found": client.get("/api/tasks/99999/"),
        "predictions": client.post(f"{place}/import/predictions", json=[good]),
        "predictions that do not fit": client.post(f"{place}/import/predictions", json=[strange]),
        "predictions of no task": client.post(f"{place}/import/predictions", json=[{**good, "task": 99999}]),
        "model versions": client.get(f"{place}/model-versions/"),
        "deleted": client.request("DELETE", f"{place}/model-versions/", json={"model_version": "rarevote"}),
        "patched": client.patch(f"/api/tasks/{first}/", json={"data": {"text": "rail 0", "p_defect": 0.25},
                                                              "meta": {"rarevote_columns": ["p_defect"]}}),
        "imported": client.post(f"{place}/import", json=[{"data": {"text": "rail 9"}}]),
        "import refused": client.post(f"{place}/import", json=[{"data": {"task": "1"}}]),
    }  # fmt: skip
    return {name: {"status": one.status_code, "body": one.json()} for name, one in said.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=REPOSITORY / ".venv-live")
    given = parser.parse_args()
    install(given.environment)
    with running(given.environment) as url:
        found = answers(url, sign_up(url, "lead@example.org"), sign_up(url, "ann@example.org"))
    found["token refresh"]["body"] = {"access": "recorded.access.key"}
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
