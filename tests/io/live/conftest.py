"""A fake Label Studio with a project that four people have annotated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from rarevote.io.live import connection
from rarevote.io.live.label_studio import Project
from tests.io.live.fake import LEGACY, PERSONAL, FakeLabelStudio, Served

SKILLS = {"ann": 0.95, "bob": 0.9, "cy": 0.85, "dee": 0.2}


class Site:
    """The fake, where it is, and the project that people annotated."""

    def __init__(self, fake: FakeLabelStudio, url: str, n_tasks: int, skills: Mapping[str, float]) -> None:
        self.fake, self.url = fake, url
        self.opened: list[Project] = []
        self.project = fake.project([f"rail {number}" for number in range(n_tasks)])
        dice = random.Random(0)
        self.votes: dict[tuple[int, str], str] = {}
        for task in fake.of(self.project):
            for name, skill in skills.items():
                truth = self.truth(task["data"]["text"])
                label = truth if dice.random() < skill else {"defect": "sound", "sound": "defect"}[truth]
                fake.annotate(task["id"], f"{name}@example.org", label)
                self.votes[task["id"], f"{name}@example.org"] = label

    def open(self, number: int, token: str | None = None) -> Project:
        """A project, closed after the test."""
        self.opened.append(Project(self.url, number, token=token))
        return self.opened[-1]

    @staticmethod
    def truth(text: str) -> str:
        return "defect" if int(text.split()[-1]) % 5 == 0 else "sound"

    @property
    def ids(self) -> list[int]:
        return [task["id"] for task in self.fake.of(self.project)]


@contextmanager
def served_site(
    monkeypatch: pytest.MonkeyPatch, *, n_empty: int = 0, n_tasks: int = 12, skills: Mapping[str, float] = SKILLS
) -> Iterator[Site]:
    """The fake at work; its annotated project comes after ``n_empty`` others."""
    monkeypatch.setattr(connection, "_WAITS", (0.001, 0.001))
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", PERSONAL)
    fake = FakeLabelStudio()
    for _ in range(n_empty):
        fake.project()
    served = Served(fake)
    monkeypatch.setenv("LABEL_STUDIO_URL", served.url)
    made = Site(fake, served.url, n_tasks, skills)
    try:
        yield made
    finally:
        for project in made.opened:
            project.close()
        served.close()
    assert fake.faults == []


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with served_site(monkeypatch) as made:
        yield made


__all__ = ["LEGACY", "PERSONAL", "Site"]
