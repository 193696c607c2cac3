"""One annotator, no annotator, some without names: said first, in one sentence, with what would help."""

from __future__ import annotations

import pytest

import rarevote
from rarevote.errors import InputError, RarevoteWarning
from rarevote.io.platforms import read_export
from tests.command import rarevote as command
from tests.io.platforms.exports import FIXTURES


def test_one_annotator_is_said_first() -> None:
    path = FIXTURES / "label_studio_one.json"
    sentence = (
        "all answers are from one annotator (ana@example.org), so there are no others to compare with: export the "
        "answers of the whole team, or ask two more people about the same items"
    )
    assert read_export(path).cautions == (sentence,)
    with pytest.warns(RarevoteWarning, match=r"label_studio_one.json: all answers are from one annotator \(ana@"):
        rarevote.read(path)
    for verb in ("aggregate", "convert"):
        said = command(verb, path).stderr.splitlines()
        assert said[0] == f"rarevote: warning: {path}: {sentence}"


def test_nobody_is_named() -> None:
    with pytest.raises(InputError) as caught:
        read_export(FIXTURES / "prodigy_unnamed.jsonl")
    assert str(caught.value).partition("prodigy_unnamed.jsonl: ")[2] == (
        "none of the 12 answers has an annotator, so reliability cannot be estimated. Prodigy "
        "records names if annotators open the app with ?session=NAME."
    )


def test_some_are_not_named() -> None:
    export = read_export(FIXTURES / "prodigy_some_unnamed.jsonl")
    nameless, times = export.cautions
    assert nameless.startswith("3 of 12 answers have no annotator and are ignored. Prodigy records names")
    assert times.startswith("1 annotator is named after the start time of the server")
    assert len(export) == 9
    said = command("aggregate", FIXTURES / "prodigy_some_unnamed.jsonl", "-m", "majority-vote").stderr.splitlines()
    assert "3 of 12 answers have no annotator" in said[0]


def test_a_model_beside_one_person_is_somebody_to_compare_with() -> None:
    export = read_export(FIXTURES / "label_studio.json", question="damage", include_predictions=True)
    assert export.models
    assert all(name.startswith("model:") for name in export.models)
    crowd = rarevote.read(FIXTURES / "label_studio.json", question="damage", include_predictions=True)
    assert crowd.models == export.models
