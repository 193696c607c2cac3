"""Which question of a form is meant: ranked, proposed, refused as free text, or all of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rarevote.errors import InputError, speaking_flags
from rarevote.io.platforms import read_export
from rarevote.io.platforms.base import ALL
from rarevote.io.platforms.questions import EveryQuestionError, QuestionSurvey, is_free_text
from rarevote.io.read.crowd import read, read_each
from tests.command import rarevote, rows
from tests.io.platforms.exports import FIXTURES


def survey_of(answers: dict[str, list[str]], wanted: str | None = None, n_workers: int = 3) -> QuestionSurvey:
    """A survey of forms; the n-th answer to each question is by worker n modulo ``n_workers``."""
    survey = QuestionSurvey("form.csv", wanted)
    for question, given in answers.items():
        for number, answer in enumerate(given):
            survey.note(question, answer, f"t{number // n_workers}", f"w{number % n_workers}")
    return survey


CHOICE = ["yes", "no", "yes", "yes", "yes", "no"] * 6
N = len(CHOICE)


@pytest.mark.parametrize(
    ("name", "answers", "why"),
    [
        ("remark", [f"I saw {n} of them" for n in range(N)], "free text"),
        ("comments", ["ok", "", "ok"] * 12, "free text"),
        ("Feedback", ["fine", "bad"] * 18, "free text"),
        ("userAgent", ["Mozilla/5.0"] * N, "a hidden input"),
        ("browser", ["Firefox", "Safari"] * 18, "a hidden input"),
        ("time_spent", [str(10 + n % 3) for n in range(N)], "times"),
        ("when", [f"2026-03-02 09:{n:02d}:00" for n in range(N)], "times"),
        ("clicked", [str(1767225600 + n) for n in range(N)], "times"),
        ("slider", [f"{n / 3:.4f}" for n in range(N)], "numbers"),
        ("agree", ["on"] * N, "always the same"),
        ("item_shown", [("left", "right")[n // 3 % 2] for n in range(N)], "always the same for one item"),
        ("gender", [("f", "m", "f")[n % 3] for n in range(N)], None),  # three people are too few to say
        ("unused", [""] * N, "not answered"),
    ],
)
def test_what_is_no_choice_is_never_proposed(name: str, answers: list[str], why: str | None) -> None:
    survey = survey_of({name: answers, "damage": CHOICE})
    plausible, others = survey.ranked()
    assert others == ({} if why is None else {name: why})
    assert plausible == (["damage"] if why else plausible)
    if why is not None:
        assert survey.choose() == "damage"


def test_what_people_are_is_no_question_about_the_item() -> None:
    # Six people, each always of one age; the answers about the items differ.
    ages = {f"age of w{n}": n for n in range(6)}
    survey = QuestionSurvey("form.csv", None)
    for task in range(12):
        for n, who in enumerate(ages):
            survey.note("age", ("18-30", "31-50", "51+")[n % 3], f"t{task}", who)
            survey.note("damage", "yes" if (task + n) % 4 else "no", f"t{task}", who)
    assert survey.ranked() == (["damage"], {"age": "always the same for one annotator"})


def test_a_crowd_of_one_mind_is_asked_a_question_all_the_same() -> None:
    unanimous = [("yes", "no")[n // 3 % 2] for n in range(N)]
    assert survey_of({"damage": unanimous, "kind": unanimous}).ranked()[0] == ["damage", "kind"]


def test_rank_few_answers_first_and_seldom_answered_ones_last() -> None:
    many = [f"kind {n % 3}" for n in range(N)]
    seldom = [("a", "b")[n % 2] if n % 3 == 0 else "" for n in range(N)]
    assert survey_of({"follow-up": seldom, "kind": many, "damage": CHOICE}).ranked()[0] == [
        "damage",
        "kind",
        "follow-up",
    ]


def test_the_message_proposes_and_says_why_not() -> None:
    survey = survey_of(
        {"damage": CHOICE, "kind": ["a", "b", "c"] * 12, "comment": [f"text {n} here" for n in range(N)]}
    )
    with pytest.raises(InputError) as caught:
        survey.choose()
    assert str(caught.value) == (
        "form.csv: 3 questions were asked: 'damage', 'kind', 'comment'. Choose one: question='damage' (yes, no; 36 "
        "answers) or question='kind' (a, b, c; 36 answers); all of them: rarevote.read_each(...). Not proposed: "
        "comment (free text)"
    )
    with (
        speaking_flags(),
        pytest.raises(InputError, match=r"--question damage \(yes, no; 36 answers\) or --question kind"),
    ):
        survey.choose()


def test_none_is_a_choice() -> None:
    survey = survey_of({"why": [f"because of {n}" for n in range(N)], "remark": [f"see {n} there" for n in range(N)]})
    with pytest.raises(
        InputError, match=r"None looks like a choice: why \(free text\), remark \(free text\).*free_text"
    ):
        survey.choose()
    with pytest.raises(InputError, match="no question looks like a choice"):
        survey_of({"why": [f"because of {n}" for n in range(N)]}, ALL).choose()


def test_the_tenth_is_exact() -> None:
    # More different answers than a tenth of all are free text; as many as a tenth are classes.
    for n_classes in (11, 12, 40):
        assert not is_free_text(Counter({str(k): 10 for k in range(n_classes)}), 10 * n_classes)
        assert is_free_text(Counter({str(k): 10 for k in range(n_classes)}), 10 * n_classes - 1)


def test_small_files_are_not_refused() -> None:
    assert not is_free_text(Counter(crack=1, sound=1, dent=1), 3)
    assert not is_free_text(Counter({"strongly agree": 2, "agree": 2, "not sure": 1, "do not agree": 2}), 7)
    assert is_free_text(
        Counter(
            {
                "a sentence of which one can see that nobody ticked it": 1,
                "and another one, by somebody else and as long": 1,
            }
        ),
        2,
    )


def test_what_names_the_item_is_no_question() -> None:
    ids = [f"frame{n // 12}" for n in range(12 * 12)]
    remarks = [f"because of {n}" for n in range(len(ids))]
    assert survey_of({"keyframeid": ids, "why": remarks}, n_workers=12).ranked()[0] == []
    with pytest.raises(InputError, match=r"None looks like a choice: keyframeid \(always the same for one item\)"):
        survey_of({"keyframeid": ids}, n_workers=12).choose()
    # Where nothing marks questions, whatever is the same for all answers to an item was shown with it.
    colours = [("red", "green")[n // 3 % 2] for n in range(N)]
    assert survey_of({"colour": colours}).choose() == "colour"
    survey = QuestionSurvey("form.csv", None, marked=False)
    for number, colour in enumerate(colours):
        survey.note("colour", colour, f"t{number // 3}", f"w{number % 3}")
    with pytest.raises(InputError, match=r"colour \(always the same for one item\).*question='colour'"):
        survey.choose()


# -- exports as real files are ---------------------------------------------------------------------------------------


def test_mturk_form_with_hidden_inputs_times_and_comments() -> None:
    path = FIXTURES / "mturk_form.csv"
    with pytest.raises(InputError) as caught:
        read_export(path)
    message = str(caught.value)
    assert "question='sure' (yes, no; 24 answers) or question='damage' (sound, crack, dent; 24 answers)" in message
    for aside in ("time_spent (times)", "ua (a hidden input)", "comments (free text)", "image_shown (always the same"):
        assert aside in message.partition("Not proposed: ")[2]
    export = read_export(path, question="damage")
    assert (len(export), len(set(export.task)), len(set(export.worker))) == (24, 8, 5)
    assert set(export.label) == {"crack", "dent", "sound"}
    with pytest.raises(InputError, match=r"the answers to 'comments' are free text: 9 different ones in 9 answers"):
        read_export(path, question="comments")
    assert len(read_export(path, question="comments", free_text=True)) == 9


def test_the_only_choice_is_taken() -> None:
    for name, question, others in (
        ("toloka_outputs.tsv", "verdict", {"comment", "clicks", "duration"}),
        ("appen_comments.csv", "relevant", {"why"}),
    ):
        export = read_export(FIXTURES / name)
        assert export.question == question
        assert set(export.questions) == {question, *others}
    # EXPIRED comes with empty outputs; 24 rows, one of them so.
    assert len(read_export(FIXTURES / "toloka_outputs.tsv")) == 23
    assert read_export(FIXTURES / "toloka_outputs.tsv").gold == {"t1": "ok"}


def test_an_id_beside_free_text_is_not_taken_for_the_question() -> None:
    path = FIXTURES / "appen_constant.csv"
    with pytest.raises(InputError) as caught:
        read_export(path)
    message = str(caught.value)
    assert "None looks like a choice" in message
    assert "keyframeid (always the same for one item)" in message
    assert "describe_the_frame (free text)" in message
    assert "question='describe_the_frame', free_text=True" in message
    assert len(set(read_export(path, question="describe_the_frame", free_text=True).label)) == 132
    # A person may still say so.
    assert len(set(read_export(path, question="keyframeid").label)) == 12


def test_label_studio_form() -> None:
    with pytest.raises(InputError, match="2 questions were asked: 'where', 'damage'"):
        read_export(FIXTURES / "label_studio_form.json")
    assert set(read_export(FIXTURES / "label_studio_form.json", question="where").label) == {"tip", "root", "edge"}


def test_a_text_question_that_comes_first_is_read_past(tmp_path: Path) -> None:
    # Without settings a text question of Argilla's looks like any other.
    records = [
        {
            "id": f"r{n}",
            "fields": {"text": "x"},
            "responses": {
                "why": [{"value": f"reason {n} of {who}", "user_id": who} for who in ("u1", "u2")],
                "toxic": [{"value": "yes" if n % 3 else "no", "user_id": who} for who in ("u1", "u2")],
            },
        }
        for n in range(8)
    ]
    path = tmp_path / "records.json"
    path.write_text(json.dumps(records))
    export = read_export(path)
    assert export.question == "toxic"
    assert len(export) == 16


# -- all of them -----------------------------------------------------------------------------------------------------


def test_every_question_of_an_export() -> None:
    with pytest.raises(EveryQuestionError) as caught:
        read(FIXTURES / "mturk_form.csv", question="all")
    assert caught.value.questions == {"sure": False, "damage": False}
    crowds = read_each(FIXTURES / "mturk_form.csv")
    assert {name: crowd.annotations.classes.tolist() for name, crowd in crowds.items()} == {
        "sure": ["no", "yes"],
        "damage": ["crack", "dent", "sound"],
    }
    # Several choices in one answer become one yes/no problem each, without being asked.
    several = read_each(FIXTURES / "toloka.tsv")
    assert several["tags"].annotations.classes.tolist() == ["no", "yes"]
    assert several["result"].annotations.classes.tolist() == ["cat", "dog"]


def test_a_folder_of_results(tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = rarevote("aggregate", FIXTURES / "mturk_form.csv", "-m", "majority-vote", "--question", "all", "--out", out)
    assert {path.name for path in out.iterdir()} == {"sure.csv", "damage.csv"}
    assert "wrote" in done.stderr
    alone = rarevote("aggregate", FIXTURES / "mturk_form.csv", "-m", "majority-vote", "--question", "damage").stdout
    assert rows((out / "damage.csv").read_text()) == rows(alone)
    again = rarevote(
        "aggregate", FIXTURES / "mturk_form.csv", "-m", "majority-vote", "--question", "all", "--out", out, code=1
    )
    assert "the folder is not empty" in again.stderr


def test_a_question_without_a_name(tmp_path: Path) -> None:
    """A column `Answer..yes`, as a damaged header has it, was asked for again without end."""
    path = tmp_path / "batch.csv"
    path.write_text(
        "HITId,WorkerId,Answer.about.place,Answer..yes\n"
        "H1,ann,false,true\nH1,bob,true,false\nH2,ann,false,true\nH2,bob,true,true\n"
    )
    crowds = read_each(path)
    assert list(crowds) == ["about", ""]
    votes = {name: crowd.annotations.votes().tolist() for name, crowd in crowds.items()}
    assert votes == {"about": [[1.0, 1.0], [1.0, 1.0]], "": [[1.0, 1.0], [0.0, 2.0]]}
