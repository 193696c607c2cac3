"""The parts of the page before any browser sees them: charts, colours, lists, sentences, small tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rarevote import GLAD, CCRasch, DawidSkene, MajorityVote, Rasch
from rarevote.charts.svg import COLOURS, inline_svg, style_variables
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.words import percent
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.jury import jury_sentences
from rarevote.diagnose.piles import Pile
from rarevote.errors import RarevoteError, speaking_flags
from rarevote.page import lines, sentences, tables
from rarevote.page import report as page
from rarevote.page.report import page_sections
from rarevote.page.sentences import About, Basis
from rarevote.page.tables import Flag, Shown, class_list, item_list, worker_list
from tests.page.crowds import HOSTILE_CLASS, HOSTILE_WORKER, decided, described_fit, hostile_crowd, random_crowd

ABOUT = About("labels.csv", "CC-Rasch", "", "as told", 0, "2026-01-31", "0.0")


@cache
def described(seed: int = 1, *, with_truth: bool = True) -> Diagnosis:
    crowd, truth = random_crowd(seed)
    return described_fit(CCRasch().fit(crowd), rare="yes", truth=truth if with_truth else None)


def built(found: Diagnosis, shown: Shown | None = None) -> str:
    return page.build_page(found, ABOUT, page_sections(found, ABOUT, shown=shown))


# -- colours and SVG ---------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_marks_stand_out(scheme: str) -> None:
    """The contrast that the web content accessibility guidelines ask for: 4.5 for words, 3 for marks."""
    paper = luminance(getattr(COLOURS["paper"], scheme))
    for name, wanted in {
        "ink": 7,
        "soft": 4.5,
        "link": 4.5,
        "rare": 4.5,
        "common": 3,
        "vote": 3,
        "good": 3,
        "odd": 3,
    }.items():
        light, dark = sorted((paper, luminance(getattr(COLOURS[name], scheme))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= wanted, name


def test_every_colour_has_its_variable_and_classes() -> None:
    style = style_variables()
    for name, colour in COLOURS.items():
        assert f"--{name}: {colour.light};" in style
        assert f"--{name}: {colour.dark};" in style
        assert f".fill-{name} {{ fill: var(--{name}); }}" in style


def svg(inside: str) -> str:
    ground = '<rect width="40" height="30" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">{ground}{inside}</svg>'


def test_only_what_a_chart_needs_survives() -> None:
    ink = COLOURS["ink"].light
    found = inline_svg(
        svg(
            f'<g onclick="alert(1)" style="color:red"><script>alert(2)</script><image href="http://x.invalid/"/>'
            f'<foreignObject><p>no</p></foreignObject><a href="javascript:alert(3)"><text>gone</text></a>'
            f'<text fill="{ink}" transform="translate(1.23456,2)">a &lt;b&gt; &amp; c</text>'
            f'<path role="graphics-symbol" aria-label="&lt;i&gt;" d="M0,0L1,1" stroke="{ink}" fill="none"/></g>'
        ),
        label='"quoted"',
    )
    root = ElementTree.fromstring(found)
    assert [element.tag for element in root.iter()] == ["svg", "g", "text", "path", "title"]
    text, path = root[0][0], root[0][1]
    assert (text.text, text.get("class"), text.get("transform")) == ("a <b> & c", "fill-ink", "translate(1.23,2)")
    assert (path[0].text, path.get("class"), path.get("fill")) == ("<i>", "stroke-ink", "none")
    assert root.get("aria-label") == '"quoted"'
    assert not any(name.startswith(("on", "style", "href")) for element in root.iter() for name in element.attrib)


def test_a_strange_colour_or_a_broken_chart_is_an_error() -> None:
    with pytest.raises(RarevoteError, match="colour #123456"):
        inline_svg(svg('<path d="M0,0" fill="#123456"/>'), label="")
    with pytest.raises(RarevoteError, match="could not be drawn"):
        inline_svg("<svg", label="")


# -- lists -------------------------------------------------------------------------------------------------------------


def test_the_item_list_says_what_the_records_say() -> None:
    found = described()
    shown = {"picture": [f"picture of {name}" for name in found.items.names.tolist()]}
    made = item_list(found, shown)
    titles = [column["title"] for column in made.columns]
    assert titles == ["Item", "picture", "Label", "P(yes)", "Majority", "Votes", "Split", "Ease", "Truth"]
    assert made.groups == 2
    place = {name: i for i, name in enumerate(found.items.names.tolist())}
    assert sorted(row[0] for row in made.rows) == sorted(place)
    assert found.truth is not None
    wrong = set(found.truth.items[found.truth.truth != found.truth.label].tolist())
    for row in made.rows:
        i = place[row[0]]
        assert row[1] == f"picture of {row[0]}"
        assert row[2] == found.items.label[i]
        assert row[3] == pytest.approx(found.items.probabilities[i, found.rare], abs=1e-4)
        assert {k: n for k, n in row[5]} == {k: n for k, n in enumerate(found.items.votes[i]) if n}  # noqa: C416
        flags = Flag(row[-1])
        assert (Flag.OVERRULED in flags) == (found.items.label[i] != found.items.majority[i])
        assert (Flag.SPLIT in flags) == (len(row[5]) > 1)
        assert (Flag.UNSURE in flags) == (found.items.confidence[i] < 0.8)
        assert (Flag.WRONG in flags) == (i in wrong)
        assert Flag.KNOWN not in flags


def test_the_item_list_has_the_ease_of_every_method_that_knows_difficulties() -> None:
    crowd, truth = random_crowd(1)
    for method, knows in ((GLAD(), True), (Rasch(), True), (DawidSkene(), False)):
        made = item_list(described_fit(method.fit(crowd, truth if isinstance(method, Rasch) else None)), {})
        assert ("Ease" in [column["title"] for column in made.columns]) == knows


def test_long_lists_keep_what_is_most_worth_a_look_and_say_so() -> None:
    found = described()
    made = item_list(found, {}, limit=7)
    assert (len(made.rows), made.n_all) == (7, 60)
    least_sure = np.argsort(found.items.confidence, kind="stable")[:7]
    assert [row[0] for row in made.rows] == found.items.names[least_sure].tolist()
    assert len(worker_list(found, limit=2).rows) == 2


def test_long_texts_and_long_tails_of_classes_are_cut() -> None:
    task = ["x" * 900] * 6 + ["y"]
    crowd = Annotations.from_arrays(task, [*"abcdef", "a"], [*"qrstuv", "q"])
    made = item_list(described_fit(MajorityVote().fit(crowd)), {"note": ["long " * 200, None]})
    row = next(row for row in made.rows if row[0].startswith("x"))
    assert len(row[0]) == 400
    assert row[0].endswith("…")
    assert row[1].endswith("…")
    votes = row[[column["title"] for column in made.columns].index("Votes")]
    assert votes[-1] == [-1, 2]
    assert sum(n for _, n in votes) == 6


def test_workers_are_listed_busiest_first_with_abstentions_where_there_are_any() -> None:
    crowd = Annotations.from_arrays([1, 1, 2, 2, 3], list("abbcb"), list("xyy?x"), abstain=["?"])
    made = worker_list(described_fit(MajorityVote().fit(crowd)))
    assert made.rows[0][0] == "b"
    titles = [column["title"] for column in made.columns]
    assert "Abstained" not in titles, "the only one who abstained never voted"
    crowd = Annotations.from_arrays([1, 1, 2, 2, 3], list("abbab"), list("xyy?x"), abstain=["?"])
    made = worker_list(described_fit(MajorityVote().fit(crowd)))
    assert [row[2] for row in made.rows] == [0, 1]


# -- sentences and tables ----------------------------------------------------------------------------------------------


def test_the_first_line_says_what_there_is_and_what_is_expected() -> None:
    found = described(with_truth=False)
    k = found.rare
    low, middle, high = (round(float(60 * end)) for end in (found.expected[k].prevalence.low,
                         found.expected[k].prevalence.value, found.expected[k].prevalence.high))  # fmt: skip
    flagged = int((found.items.label == k).sum())
    assert lines.have_line(found) == (
        f"60 items: {flagged} are flagged as “yes”; about {middle} are expected (90% interval: {low} to {high})."
    )
    known = described()
    assert known.truth is not None
    true = sum(known.truth.classes[code] == "yes" for code in known.truth.truth)
    assert lines.have_line(known) == f"60 items: {flagged} are flagged as “yes”; the truth has {true}."


def test_the_second_line_is_the_verdict_of_a_check_or_the_truth() -> None:
    crowd, truth = random_crowd(1)
    result = decided(CCRasch().fit(crowd), "yes")
    told = lines.three_lines(result.fitted.diagnose(result), Basis())
    check = result.fitted.check(result)
    assert told.weight == check.weight
    assert told.sure.startswith(f"{check.verdict[0].upper()}{check.verdict[1:]}; ")
    recall = check.expected.recall
    assert f"; {percent(recall.value)} ({recall.percent_range}) of all “yes” are expected" in told.sure
    known = lines.three_lines(result.fitted.diagnose(result, truth), Basis()).sure
    scores = result.score(truth)
    assert known.startswith(
        f"By the truth of 60 items, {percent(scores['accuracy'])} of the labels are right and "
        f"{percent(scores['recall']['yes'])} of all “yes” are found; with a majority vote "
    )


def test_a_crowd_that_cannot_answer_has_that_for_its_headline() -> None:
    result = decided(MajorityVote().fit(([1, 2, 3], ["ann"] * 3, ["x", "x", "y"])), "y")
    parts = result.page_parts()
    told = lines.three_lines(parts.found, parts.basis)
    assert told.headline == told.sure
    assert told.headline == "These votes cannot show which labels are right: all votes are by one annotator (ann)."
    text = page.build_page(parts.found, parts.about(""), [])
    assert not re.search(r"\d", re.sub(r"<[^>]*>", "", text[text.index("<h1>") : text.index("</h1>")]))
    assert text.count("all votes are by one annotator") == 2, "in the title and on top, not once more below"
    assert result.fitted.check(result).cannot_answer


def test_lines_at_the_edges() -> None:
    alone = described_fit(MajorityVote().fit(([1, 2], ["a", "b"], ["x", "x"])))
    assert lines.have_line(alone) == "2 items in 1 class: 2 “x”."
    same = described_fit(MajorityVote().fit(([1, 2, 3], ["a", "b", "a"], ["x", "x", "y"])), rare="y")
    assert lines.have_line(same) == "3 items: 1 is flagged as “y”; how many are is unknown without an audit."
    assert sentences.losses(same) == ["A majority vote gives every item the same label."]
    assert tables.moves_table(same) is None
    none = described_fit(CCRasch().fit(random_crowd(1)[0]), codes=np.zeros(60, dtype=np.int64), rare="yes")
    assert lines.have_line(none).startswith("60 items: 0 are flagged as")


def test_what_to_do_next_is_the_pile_and_an_hour_at_most() -> None:
    found = described(with_truth=False)
    n = found.piles.n_look
    assert n
    seconds = 10 * n
    said = lines.next_action(found, Basis(aggregate="my.csv --rare yes"))
    assert said.sentence.startswith(f"Look at these {n} items first ({round(seconds / 60)} minutes at 10 seconds")
    assert said.commands[0] == f'result.review({n}, "look.csv")'
    with speaking_flags():
        typed = lines.next_action(found, Basis(aggregate="my.csv --rare yes")).commands
    wanted = f"rarevote aggregate my.csv --rare yes --max-review {n} --review-out look.csv --out result.csv"
    assert typed == (wanted, "rarevote review look.csv")
    crowd, _ = random_crowd(2, n_tasks=2400)
    large = described_fit(DawidSkene().fit(crowd), rare="yes")
    assert large.piles.n_look > lines.MAX_LOOKS
    said = lines.next_action(large, Basis())
    assert said.sentence.startswith(f"Look at these 360 items first, of {large.piles.n_look} worth a look (60 min")
    small = described_fit(CCRasch().fit(random_crowd(1, n_tasks=20)[0]), rare="yes")
    assert lines.next_action(small, Basis()).sentence.startswith("Look at all 20 items (3 minutes")
    assert "look.answers.csv as gold" in said.sentence
    assert "gold" not in lines.next_action(found, Basis(takes_gold=False)).sentence


def test_the_pile_is_what_a_review_of_the_same_decision_lists() -> None:
    result = decided(CCRasch().fit(random_crowd(1)[0]), "yes")
    found = result.fitted.diagnose(result)
    listed = {item.row for item in result.review(found.piles.n_look).items}
    assert listed == set(np.flatnonzero(found.piles.pile == Pile.LOOK).tolist())
    rows = item_list(found, {}).rows
    assert {row[0] for row in rows[: len(listed)]} == {found.items.names[i] for i in listed}


def weaker_than_the_vote(*, with_truth: bool) -> Diagnosis:
    """Labels of which half of the rare ones that a majority vote finds were taken away."""
    crowd, truth = random_crowd(1, n_tasks=300)
    fitted = CCRasch().fit(crowd)
    labels = (crowd.votes()[:, 1] > crowd.votes()[:, 0]).astype(np.int64)
    labels[np.flatnonzero(labels)[::2]] = 0
    return described_fit(fitted, codes=labels, rare="yes", truth=truth if with_truth else None)


@pytest.mark.parametrize("with_truth", [False, True])
def test_less_than_a_majority_vote_is_a_warning_and_no_headline(with_truth: bool) -> None:
    found = weaker_than_the_vote(with_truth=with_truth)
    best = sentences.leading_trade_off(found)
    assert best.chosen.recall < best.majority.recall
    (warning,) = (said for said in sentences.cautions(found) if "more of “yes”" in said)
    assert warning.startswith("By the truth" if with_truth else "A majority vote is expected")
    assert not any("more of “yes”" in said for said in sentences.cautions(described()))


def test_the_numbers_of_the_class_are_the_same_wherever_they_stand() -> None:
    found = described(with_truth=False)
    one = found.expected[found.rare]
    labelled, recall = f"{(found.items.label == found.rare).sum()}", percent(one.recall.value)
    assert sentences.tiles(found)[0].labelled == labelled
    row = next(row for row in tables.trade_off_table(found).rows if row[0] == "yes (expected)")
    assert row[1] == labelled
    assert row[2].startswith(f"{recall} (")
    assert found.trade_offs[0].chosen.recall == one.recall.value
    share = tables.proportion_table(found)
    assert share is not None
    of_class = next(row for row in share.rows if row[0] == "yes")
    assert of_class[3].startswith(percent(one.prevalence.value))
    assert found.classes.n_expected[found.rare] == pytest.approx(60 * one.prevalence.value)
    assert found.classes.n_expected.sum() == pytest.approx(60), "of two classes, each is what the other is not"
    assert found.classes.expected_high[found.common] == pytest.approx(60 - found.classes.expected_low[found.rare])


@pytest.mark.parametrize("with_truth", [False, True])
def test_three_piles_hold_every_item_once(with_truth: bool) -> None:
    found = described(with_truth=with_truth)
    piles = sentences.piles(found)
    assert [pile.name for pile in piles] == ["take as yes", "worth a look", "take as not yes"]
    assert sum(int(pile.labelled) for pile in piles) == 60
    by_flag = dict.fromkeys((Flag.FLAGGED, Flag.LOOK, Flag.NOT_FLAGGED), 0)
    for row in item_list(found, {}).rows:
        (inside,) = (flag for flag in by_flag if flag in Flag(row[-1]))
        by_flag[inside] += 1
    assert [str(number) for number in by_flag.values()] == [pile.labelled for pile in piles]
    if with_truth:
        assert found.truth is not None
        known = [re.fullmatch(r"(\d+) of (\d+) labels right, by the truth", pile.details[1]) for pile in piles]
        counts = np.array([[int(n) for n in match.groups()] for match in known if match])
        right = found.truth.truth == found.truth.label
        assert counts.sum(axis=0).tolist() == [right.sum(), len(found.truth.items)]


def test_where_nothing_is_sure_one_line_stands_for_the_piles() -> None:
    crowd = Annotations.from_arrays([1, 1, 2, 2, 3, 3], list("ababab"), list("xyyxxy"))
    found = described_fit(MajorityVote().fit(crowd))
    assert found.piles.n_sure == 0
    (section,) = (one for one in page_sections(found, ABOUT) if one.name == "piles")
    assert section.values["piles"] == []
    (said,) = section.values["notes"]
    assert said == "No label can be taken without a look: none has a probability of 90% or more."


def test_a_pile_of_more_than_half_says_why() -> None:
    found = described(with_truth=False)
    pile = np.full(60, Pile.LOOK)
    pile[:10] = Pile.NOT_FLAGGED
    large = replace(found, piles=replace(found.piles, pile=pile, n_items=np.bincount(pile, minlength=3)))
    split = percent(float((found.items.votes.min(axis=1) > 0).mean()))
    assert lines.pile_sentences(large, Basis())[-1] == (
        f"More than half of the items are worth a look, because annotators disagree on {split} of the items."
    )


def test_classes_are_alike_where_none_is_rare_and_none_was_named() -> None:
    """Fewest votes above a fifth: no class leads, nothing on the page is about one of them."""
    draw = np.random.default_rng(0)
    rows = [(i, f"w{w}", "ab"[int(draw.random() < (0.9 if i % 3 == 0 else 0.1))]) for i in range(90) for w in range(4)]
    model = DawidSkene().fit(rows)
    share = model.annotations_.class_votes.min() / 360
    assert 0.2 < share < 0.4
    found = described_fit(model)
    assert found.leading is None
    labelled = np.bincount(found.items.label, minlength=2)
    first, second = np.argsort(-labelled, kind="stable")
    assert lines.have_line(found) == (
        f"90 items in 2 classes: {labelled[first]} “{'ab'[first]}” and {labelled[second]} “{'ab'[second]}”."
    )
    assert not any(tile.is_rare for tile in [*sentences.tiles(found), *sentences.piles(found)])
    assert [pile.name for pile in sentences.piles(found)] == ["worth a look", "take as labelled"]
    sections = {one.name: one for one in page_sections(found, ABOUT)}
    assert sections["lost"].charts == []
    assert sections["look"].rare == -1
    assert sections["trade-off"].values["steps"] is None
    assert not any("P(b)" in column["title"] for column in sections["look"].lists[0].columns)
    assert described_fit(model, rare="b").leading == 1


@cache
def many_classes(n_classes: int) -> Diagnosis:
    """A crowd in which the last class has two items."""
    names = tuple(f"c{k:02d}" for k in range(n_classes))
    crowd, truth = random_crowd(5, n_tasks=20 * n_classes, classes=names)
    last = [task for task, label in truth.items() if label == names[-1]][2:]
    keep = ~np.isin(crowd.tasks[crowd.task_of_annotation()], last) & (
        np.isin(crowd.tasks[crowd.task_of_annotation()], [t for t, label in truth.items() if label == names[-1]])
        | (crowd.classes[crowd.label] != names[-1])
    )
    task, worker, label = crowd.task_of_annotation()[keep], crowd.worker[keep], crowd.classes[crowd.label][keep]
    small = Annotations.from_arrays(crowd.tasks[task], crowd.workers[worker], label)
    return described_fit(MajorityVote().fit(small), truth={task: truth[task] for task in small.tasks.tolist()})


@pytest.mark.parametrize("n_classes", [5, 14])
def test_no_headline_is_about_a_class_with_two_items(n_classes: int) -> None:
    found = many_classes(n_classes)
    last = f"c{n_classes - 1:02d}"
    assert found.truth is not None
    assert sum(found.truth.classes[code] == last for code in found.truth.truth) == 2
    told = lines.three_lines(found, Basis())
    assert "flagged as" not in told.have
    assert found.leading is None
    right = f"{100 * found.truth.scores.accuracy:.0f}%"
    assert told.have.startswith(f"{len(found.items.label)} items in {n_classes} classes: ")
    assert told.sure == f"By the truth of {len(found.items.label)} items, {right} of the labels are right."
    assert not any(tile.is_rare for tile in sentences.tiles(found))
    text = built(found)
    assert ('id="per-class"' in text) == (n_classes == 14)
    assert 'id="lost"' not in text, "a majority vote is not compared with itself"


def test_a_clear_class_of_few_leads() -> None:
    for n_classes, leads in ((5, True), (14, False)):
        names = tuple(f"c{k:02d}" for k in range(n_classes))
        crowd, _ = random_crowd(5, n_tasks=100 * n_classes, classes=names)
        found = described_fit(MajorityVote().fit(crowd))
        rare = int(crowd.class_votes.argmin())
        assert found.rare == rare
        assert min(crowd.class_votes[rare], (found.items.label == rare).sum()) >= 10
        assert found.leading == (rare if leads else None), "of many classes none stands out"
        assert (f"flagged as “{names[rare]}”" in lines.have_line(found)) == leads


def test_a_class_with_two_items_leads_if_somebody_named_it() -> None:
    crowd, _ = random_crowd(5, n_tasks=200, classes=tuple(f"c{k:02d}" for k in range(5)))
    assert described_fit(MajorityVote().fit(crowd), rare="c02").leading == 2


def test_the_list_of_classes_counts_what_the_records_say() -> None:
    found = many_classes(14)
    made = class_list(found)
    titles = [column["title"] for column in made.columns]
    assert titles == [
        "Class",
        "Votes",
        "Labelled",
        "Majority",
        "Gained",
        "Lost",
        "Truth",
        "Recall",
        "Precision",
    ]
    assert len(made.rows) == 14
    votes = [row[1] for row in made.rows]
    assert votes == sorted(votes)
    assert found.truth is not None
    for name, n_votes, labelled, majority, _, _, true, recall, precision, _ in made.rows:
        k = found.classes.names.tolist().index(name)
        assert n_votes == (found.crowd.label == k).sum()
        assert labelled == (found.items.label == k).sum()
        assert majority == (found.items.majority == k).sum()
        has = found.truth.truth == found.truth.classes.index(name)
        got = found.truth.label == found.truth.classes.index(name)
        assert true == has.sum()
        assert recall == (pytest.approx((has & got).sum() / has.sum(), abs=1e-4) if has.any() else None)
        assert precision == (pytest.approx((has & got).sum() / got.sum(), abs=1e-4) if got.any() else None)


def test_what_a_majority_vote_loses_adds_up() -> None:
    found = described()
    said = " ".join(sentences.losses(found))
    assert f"{len(found.overruled.items)} item" in said
    table = tables.moves_table(found)
    assert table is not None
    assert sum(int(row[1]) for row in table.rows) == len(found.overruled.items)


def test_cautions() -> None:
    found = described()
    assert any("false alarms" in said for said in sentences.cautions(found)) == (
        found.true_trade_offs[0].chosen.precision < 0.5
    )
    sparse = described_fit(MajorityVote().fit((list(range(10)), ["a"] * 10, list("abcdefghij"))))
    assert any("There are only" in said for said in sentences.cautions(sparse))
    draw = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    task = np.repeat(np.arange(120), 5)
    wrong = np.where(draw.random(600) < 0.7, 1 - truth[task], truth[task])
    gold = {i: int(truth[i]) for i in range(0, 120, 2)}
    flipped = CCRasch().fit((task, np.tile(np.arange(5), 120), wrong), gold)
    assert any("worse than guessing" in said for said in sentences.cautions(described_fit(flipped)))


def test_the_jury_is_told_for_every_class() -> None:
    found = described()
    said = " ".join(jury_sentences(found.classes.jury, found.classes.names))
    for k, name in enumerate(found.classes.names):
        assert f"“{name}”" in said
        assert found.classes.jury.holds[k] == (f"For “{name}”" not in said)


def test_confusion_is_a_matrix_or_the_commonest_mistakes() -> None:
    found = described()
    matrix = tables.confusion(found)
    assert isinstance(matrix, tables.Matrix)
    assert sum(int(cell.text.replace(",", "")) for row in matrix.rows for cell in row) == 60
    assert [[cell.right for cell in row] for row in matrix.rows] == [[True, False], [False, True]]
    names = tuple(f"c{k:02d}" for k in range(14))
    crowd, truth = random_crowd(5, n_tasks=200, classes=names)
    many = described_fit(MajorityVote().fit(crowd), truth=truth)
    mistakes = tables.confusion(many)
    assert isinstance(mistakes, tables.SmallTable)
    counts = [int(row[1]) for row in mistakes.rows]
    assert counts == sorted(counts, reverse=True)
    assert tables.proportion_table(many) is None


def test_steps_reach_the_recall_they_name() -> None:
    found = described()
    table = tables.steps_table(found, ())
    assert table is not None
    probability = found.items.probabilities[:, found.rare]
    assert found.truth is not None
    is_rare = found.truth.truth == found.truth.classes.index("yes")
    for recall, flagged, _ in table.rows:
        top = np.sort(probability)[::-1][int(flagged) - 1]
        assert is_rare[probability >= top].sum() / is_rare.sum() >= float(recall.rstrip("%")) / 100 - 1e-9


@pytest.mark.parametrize("method", [CCRasch, DawidSkene, MajorityVote])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_method_gets_a_page(method: type, seed: int) -> None:
    crowd, truth = random_crowd(seed, classes=[("no", "yes"), ("a", "b", "c")][seed])
    text = built(described_fit(method().fit(crowd), truth=truth if seed else None))
    assert ">nan<" not in text.lower()


def test_a_page_of_a_single_item_and_class() -> None:
    text = built(described_fit(CCRasch().fit(([1], ["a"], ["x"]))))
    assert "1 item in 1 class: 1 “x”." in text


# -- what the page is made of ------------------------------------------------------------------------------------------


def test_names_are_escaped_in_markup_and_data() -> None:
    crowd, truth, texts = hostile_crowd()
    found = described_fit(CCRasch().fit(crowd), truth=truth)
    text = built(found, {"text": texts})
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert not set("<>&\u2028\u2029") & set(data.group(1))
    read = json.loads(data.group(1))
    assert HOSTILE_CLASS in read["of"][""]["classes"]
    assert {row[0] for row in read["lists"]["items"]["rows"]} == set(crowd.tasks.tolist())
    for name in (HOSTILE_CLASS, HOSTILE_WORKER, *crowd.tasks[:4].tolist()):
        assert name not in text or not set(name) & set("<>&")
    assert text.count("<script") == 2


def test_charts_are_exported_as_svg_and_png(tmp_path: Path) -> None:
    files = page.export_charts(tmp_path / "new" / "figures", page_sections(described(), ABOUT))
    assert {path.suffix for path in files} == {".svg", ".png"}
    assert {path.stem for path in files} >= {"ability-map", "class-counts", "convergence", "trade-off-1", "calibration"}
    for path in files:
        head = path.read_bytes()[:8]
        assert head[:4] == b"<svg" if path.suffix == ".svg" else head == b"\x89PNG\r\n\x1a\n"


def test_a_majority_vote_is_not_compared_with_itself() -> None:
    rows = [(i, w, f"c{(i * (1 + w)) % 5}") for i in range(30) for w in range(2)]
    for method, advised in ((MajorityVote(), False), (DawidSkene(), True)):
        cautions = sentences.cautions(described_fit(method.fit(rows)))
        (few,) = [said for said in cautions if "votes per item" in said]
        assert ("Compare with a majority vote" in few) == advised


def test_profiles_claim_only_what_the_intervals_support() -> None:
    """Three votes on a class cannot tell an annotator from chance."""
    rows = [(i, w, "yes" if i == 0 else "no") for i in range(60) for w in range(3)]
    table = tables.profile_table(described_fit(DawidSkene().fit(rows)))
    assert table is not None
    assert "chance is 1 in 2" in table.caption
    assert not any("keep" in cell for row in table.rows for cell in row)
    people = {row[0].partition(":")[0]: row[1] for row in table.rows}
    assert people["both classes"] == "0"
