"""The registry against the data, data folders good and bad, imports of small files of ours."""

from __future__ import annotations

import collections
import csv
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rarevote.crowd.annotations import Annotations
from rarevote.errors import ColumnsError, InputError, MissingExtraError, ParameterError, RarevoteWarning
from rarevote.methods.majority import MajorityVote
from rarevote.study import datasets
from rarevote.study.datasets import (
    fetch,
    find_dataset,
    import_cifar10h,
    import_jigsaw,
    list_datasets,
    load_annotations,
    load_dataset,
    locate,
)
from tests.study.dataset_cache import isolate, left_behind

PRESENT = [info.slug for info in list_datasets() if info.access != "import"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return isolate(tmp_path / "cache", monkeypatch)


# --------------------------------------------------------------------------------------------------------------------
# the registry


def test_the_registry_holds_the_paper_s_33_datasets_and_four_variants() -> None:
    infos = list_datasets()
    assert len(infos) == 37
    assert len({info.slug for info in infos}) == 37
    assert len([info for info in infos if info.paper_name]) == 33
    assert collections.Counter(info.access for info in infos) == {"download": 16, "folder": 19, "import": 2}
    assert all(info.note and info.licence and info.source_repository and info.source_group for info in infos)


def test_datasets_that_overlap_share_a_group() -> None:
    groups: dict[str, set[str]] = collections.defaultdict(set)
    for info in list_datasets():
        groups[info.source_group].add(info.slug)
    for together in (
        {"cf", "cf-star", "weather-sentiment-amt"},
        {"bird-107", "bird-108", "bird-crowdfm"},
        {"medical-all", "medical-cause", "medical-treat"},
        {"zc-all", "zc-in", "zc-us"},
        {"trec", "nist-trec-relevance", "nist-trec-relevance-full"},
        {"loneliness-intervention", "loneliness-older-adults", "loneliness-technology"},
        {"amazon-sentiment-book", "amazon-sentiment-negative"},
        {"sp", "sentiment-popularity-amt"},
    ):
        assert together in groups.values()
    assert groups["rte"] == {"rte"}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("cf-star", "cf-star"),
        ("CF*", "cf-star"),
        ("cf", "cf"),
        ("Bird", "bird-crowdfm"),
        ("bird", "bird-107"),
        ("Loneliness (Older Adults)", "loneliness-older-adults"),
        ("labelme", "labelme"),
        ("LABELME", "labelme"),
        ("jigsaw", "jigsaw"),
    ],
)
def test_a_dataset_is_found_by_its_slug_and_by_the_paper_s_name(name: str, slug: str) -> None:
    assert find_dataset(name).slug == slug


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("labelmee", "did you mean labelme"),
        ("cifar-10h", "did you mean cifar10h"),
        ("wether-sentiment", "did you mean .*weather-sentiment-amt"),
        ("BIRD", "did you mean .*bird-107"),
        ("zzzzzz", "there are .*rte"),
        ("", "there are .*rte"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(ParameterError, match=hint):
        load_dataset(name)


def test_what_the_registry_says_of_the_absent_two_is_the_paper_s() -> None:
    assert (find_dataset("jigsaw").imbalance, find_dataset("jigsaw").annotations_per_item) == (6.13, 19.93)
    assert (find_dataset("cifar10h").imbalance, find_dataset("cifar10h").annotations_per_item) == (1.0, 51.42)


# --------------------------------------------------------------------------------------------------------------------
# the real data


@pytest.mark.parametrize("slug", PRESENT)
def test_the_registry_agrees_with_the_data(slug: str, shared_folder: Path) -> None:
    info = find_dataset(slug)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crowd, truth = load_annotations(slug, data=shared_folder / "datasets")
    counts = collections.Counter(truth.values())
    assert info.n_items == crowd.n_tasks
    assert info.n_items_truth == len(truth)
    assert info.n_workers == crowd.n_workers
    assert info.n_classes == crowd.n_classes == len(counts)
    assert info.n_annotations == crowd.n_annotations
    assert info.imbalance == pytest.approx(max(counts.values()) / min(counts.values()), abs=0.005)
    assert info.annotations_per_item == pytest.approx(crowd.n_annotations / crowd.n_tasks, abs=0.005)


def test_the_registry_agrees_with_the_paper(shared_folder: Path) -> None:
    with (shared_folder / "paper" / "results_per_dataset.csv").open(newline="") as handle:
        # The first row of a dataset counts: the last of "bird" carries the figures of "Bird".
        printed = {row["dataset"]: row for row in reversed(list(csv.DictReader(handle)))}
    infos = [info for info in list_datasets() if info.paper_name]
    assert {info.paper_name for info in infos} == set(printed)
    for info in infos:
        assert info.imbalance == float(printed[info.paper_name]["imbalance"])
        assert info.annotations_per_item == float(printed[info.paper_name]["annotations_per_item"])


# --------------------------------------------------------------------------------------------------------------------
# a data folder


def write_dataset(folder: Path, labels: str, truth: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "labels.csv").write_text(labels)
    (folder / "truth.csv").write_text(truth)
    return folder


LABELS = "task,worker,label\n007,w1,1\n007,w2,NA\n10,w1,1\n10,w1,NA\n"
TRUTH = "task,label\n007,1\n10,NA\n"


def test_loading_gives_crowd_kit_s_layout_and_keeps_text_as_it_is(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data" / "rte", LABELS, TRUTH)
    labels, truth = load_dataset("RTE", data=tmp_path / "data")
    assert isinstance(labels, pd.DataFrame)
    assert labels.columns.tolist() == ["task", "worker", "label"]
    assert labels.to_numpy().tolist() == [line.split(",") for line in LABELS.splitlines()[1:]]
    assert isinstance(truth, pd.Series)
    assert (truth.name, truth.index.name) == ("true_label", "task")
    assert truth.to_dict() == {"007": "1", "10": "NA"}
    assert MajorityVote().fit(labels).labels_.index.tolist() == ["007", "10"]


def test_without_pandas_loading_gives_columns_that_fit_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path / "data" / "rte", LABELS, TRUTH)
    monkeypatch.setitem(sys.modules, "pandas", None)
    labels, truth = load_dataset("rte", data=tmp_path / "data")
    assert {name: column.tolist() for name, column in labels.items()} == {
        "task": ["007", "007", "10", "10"],
        "worker": ["w1", "w2", "w1", "w1"],
        "label": ["1", "NA", "1", "NA"],
    }
    assert truth == {"007": "1", "10": "NA"}
    assert MajorityVote().fit(labels).annotations_.n_tasks == 2


def test_without_the_extra_what_is_here_loads_and_a_download_says_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(cache / "datasets" / "rte", LABELS, TRUTH)
    for name in ("joblib", "pandas", "pooch", "requests", "scipy"):
        monkeypatch.setitem(sys.modules, name, None)
    columns, known = load_dataset("rte")
    assert set(columns) == {"task", "worker", "label"}
    assert known
    with pytest.raises(MissingExtraError, match=r"needs pooch: pip install 'rarevote\[study\]'"):
        load_dataset("sp")
    assert left_behind(cache) == ["rte", "rte/labels.csv", "rte/truth.csv"]


def test_annotations_come_without_a_frame(tmp_path: Path) -> None:
    write_dataset(tmp_path / "rte", LABELS, TRUTH)
    crowd, truth = load_annotations("rte", data=tmp_path)
    assert isinstance(crowd, Annotations)
    assert (crowd.n_tasks, crowd.n_workers, crowd.n_classes, crowd.n_annotations) == (2, 2, 2, 4)
    assert truth == {"007": "1", "10": "NA"}


def test_truth_without_labels_is_counted_and_left_out(tmp_path: Path) -> None:
    write_dataset(tmp_path / "rte", LABELS, TRUTH + "11,1\n12,1\n")
    with pytest.warns(RarevoteWarning, match=r"2 of 4 tasks is left out.*'11'") as caught:
        _, truth = load_dataset("rte", data=tmp_path)
    assert [Path(entry.filename) for entry in caught] == [Path(__file__)]
    assert truth.index.tolist() == ["007", "10"]


def test_truth_of_which_no_task_has_labels_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path / "rte", LABELS, "task,label\n7,1\n")
    with pytest.raises(InputError, match=r"none of its 1 tasks has labels.*'7'"):
        load_annotations("rte", data=tmp_path)


def test_a_data_folder_that_is_not_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load_annotations("rte", data=tmp_path / "absent")
    with pytest.raises(InputError, match=r"holds none of the datasets; expected labels\.csv .* and truth\.csv"):
        load_annotations("rte", data=tmp_path)
    write_dataset(tmp_path / "rte", LABELS, TRUTH)
    (tmp_path / "rte" / "truth.csv").unlink()
    with pytest.raises(InputError, match=r"rte: has no truth\.csv; expected"):
        load_annotations("rte", data=tmp_path)
    (tmp_path / "rte" / "labels.csv").unlink()
    with pytest.raises(InputError, match=r"has no labels\.csv and no truth\.csv"):
        load_annotations("rte", data=tmp_path)


def test_a_data_folder_with_other_columns_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path / "rte", "question,worker,label\n1,2,3\n", TRUTH)
    with pytest.raises(ColumnsError, match=r"labels\.csv has no column 'task'"):
        load_annotations("rte", data=tmp_path)


def test_the_environment_names_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_dataset(tmp_path / "data" / "rte", LABELS, TRUTH)
    monkeypatch.setenv("RAREVOTE_DATA", str(tmp_path / "data"))
    assert locate("rte") == folder
    monkeypatch.setenv("RAREVOTE_DATA", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="RAREVOTE_DATA"):
        locate("rte")


def test_the_data_folder_comes_before_the_cache_and_the_cache_before_the_network(tmp_path: Path, cache: Path) -> None:
    kept = write_dataset(cache / "datasets" / "rte", LABELS, TRUTH)
    imported = write_dataset(cache / "datasets" / "cifar10h", LABELS, TRUTH)
    given = write_dataset(tmp_path / "data" / "rte", LABELS, TRUTH)
    assert locate("rte") == kept
    assert fetch("rte") == kept
    assert locate("rte", data=tmp_path / "data") == given
    assert locate("cifar10h", data=tmp_path / "data") == imported
    assert locate("web", data=tmp_path / "data") is None
    with pytest.raises(InputError, match=r"dataset web is neither in .* datasets fetch web"):
        load_annotations("web", data=tmp_path / "data")


@pytest.mark.parametrize(
    ("slug", "advice"),
    [
        (
            "medical-all",
            r"put medical-all/labels\.csv and medical-all/truth\.csv into a folder .* --data or RAREVOTE_DATA",
        ),
        ("cifar10h", r"get cifar10h-raw\.csv .* rarevote datasets import cifar10h FILE"),
        ("jigsaw", r"get toxicity_individual_annotations\.csv .* rarevote datasets import jigsaw FILE"),
    ],
)
def test_a_dataset_without_download_says_what_to_do(slug: str, advice: str) -> None:
    for ask in (load_dataset, fetch):
        with pytest.raises(InputError, match=advice):
            ask(slug)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert datasets.cache_folder(tmp_path / "mine") == tmp_path / "mine" / "datasets"
    assert datasets.cache_folder() == tmp_path / "cache" / "datasets"
    monkeypatch.delenv("RAREVOTE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert datasets.cache_folder() == tmp_path / "xdg" / "rarevote" / "datasets"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / ".cache" / "rarevote" / "datasets"


# --------------------------------------------------------------------------------------------------------------------
# imports

CIFAR_HEADER = "annotator_id,trial_index,is_attn_check,true_label,chosen_label,cifar10_test_test_idx\n"
CIFAR_ROWS = (
    "0,0,0,3,3,10\n"
    "0,1,1,5,5,-99999\n"  # an attention check by both marks
    "1,0,0,3,5,10\n"
    "1,1,1,5,5,2\n"  # by its flag only
    "1,2,0,5,5,-99999\n"  # by its number only
    "2,0,0,8,8,2\n"
)


def test_cifar10h_is_imported_without_attention_checks(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "cifar10h-raw.csv"
    file.write_text(CIFAR_HEADER + CIFAR_ROWS)
    folder = import_cifar10h(file)
    assert folder == cache / "datasets" / "cifar10h" == locate("cifar10h")
    assert (folder / "labels.csv").read_text() == "task,worker,label\n10,0,3\n10,1,5\n2,2,8\n"
    assert (folder / "truth.csv").read_text() == "task,label\n2,8\n10,3\n"
    crowd, truth = load_annotations("cifar10h")
    assert (crowd.n_tasks, crowd.n_workers, truth) == (2, 3, {"2": "8", "10": "3"})


def test_cifar10h_without_the_flag_and_with_windows_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "it's raw.csv"
    file.write_bytes(
        b"\xef\xbb\xbfannotator_id,chosen_label,true_label,cifar10_test_test_idx\r\n0,3,3,10\r\n0,1,1,-99999\r\n"
    )
    folder = import_cifar10h(file, tmp_path / "other")
    assert folder == tmp_path / "other" / "datasets" / "cifar10h"
    assert (folder / "labels.csv").read_text() == "task,worker,label\n10,0,3\n"


def test_an_import_replaces_the_one_before(tmp_path: Path, cache: Path) -> None:
    file = tmp_path / "raw.csv"
    file.write_text(CIFAR_HEADER + CIFAR_ROWS)
    import_cifar10h(file)
    file.write_text(CIFAR_HEADER + "7,0,0,1,1,5\n")
    folder = import_cifar10h(file)
    assert (folder / "labels.csv").read_text() == "task,worker,label\n5,7,1\n"
    assert left_behind(cache) == ["cifar10h", "cifar10h/labels.csv", "cifar10h/truth.csv"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,worker,toxic\n1,2,0\n", "has no column 'annotator_id', 'chosen_label'.*right file"),
        (b"", "has no column"),
        (CIFAR_HEADER.encode(), "holds no votes"),
        (CIFAR_HEADER.encode() + b"0,0,1,3,3,10\n", "holds no votes"),
        (CIFAR_HEADER.encode() + b"0,0,0,3,,10\n0,0,,3,,11\n", "2 rows have no label"),
        (CIFAR_HEADER.encode() + b"0,0,0,3,3,10\n1,0,0,4,4,10\n", "image 10 has two true labels, 3 and 4"),
        (CIFAR_HEADER.encode() + b"0,0,0\n", r"cannot be imported \(.*Line: 2"),
        (b"PK\x03\x04rest", "zip archive; unpack it"),
        (b"\xff\xfe\x00", "not a CSV file in UTF-8"),
    ],
)
def test_a_file_that_is_not_cifar10h_is_refused(tmp_path: Path, cache: Path, content: bytes, message: str) -> None:
    file = tmp_path / "raw.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        import_cifar10h(file)
    assert "\n" not in str(caught.value)
    assert left_behind(cache) == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.csv: no such file"):
        import_cifar10h(tmp_path / "absent.csv")


JIGSAW = (
    "id,worker,toxic,severe_toxic\n"
    "59848,394,1,0\n59848,395,0.0,0\n"  # a tie is toxic
    "07,394,0,0\n07,396,0,0\n07,397,1.0,0\n"
    "9,395,1,1\n"
)


def test_jigsaw_takes_its_truth_from_half_of_the_judgements(tmp_path: Path) -> None:
    file = tmp_path / "toxicity_individual_annotations.csv"
    file.write_text(JIGSAW)
    folder = import_jigsaw(file)
    assert (folder / "labels.csv").read_text() == (
        "task,worker,label\n59848,394,1\n59848,395,0\n07,394,0\n07,396,0\n07,397,1\n9,395,1\n"
    )
    assert (folder / "truth.csv").read_text() == "task,label\n07,0\n59848,1\n9,1\n"
    folder = import_jigsaw(file, threshold=0.6, min_votes=2)
    assert (folder / "truth.csv").read_text() == "task,label\n07,0\n59848,0\n"
    assert load_annotations("jigsaw")[0].n_annotations == 5


@pytest.mark.parametrize("column", ["toxicity", "target"])
def test_jigsaw_can_take_the_published_shares(tmp_path: Path, column: str) -> None:
    file, published = tmp_path / "judgements.csv", tmp_path / "all_data.csv"
    file.write_text(JIGSAW)
    published.write_text(f'id,comment_text,{column}\n59848,"two\nlines",0.4\n9,"a, ""b""",0.5\n123,not voted on,1\n')
    folder = import_jigsaw(file, truth=published)
    assert (folder / "truth.csv").read_text() == "task,label\n59848,0\n9,1\n"
    published.write_text(f"id,{column}\n123,1\n")
    with pytest.raises(InputError, match=r"no comment is in .*all_data\.csv"):
        import_jigsaw(file, truth=published)
    published.write_text("id,sentiment\n123,1\n")
    with pytest.raises(ColumnsError, match="no column 'toxicity' or 'target'"):
        import_jigsaw(file, truth=published)


def test_jigsaw_rows_without_a_judgement_are_counted_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / "judgements.csv"
    file.write_text(JIGSAW + "9,397,,0\n")
    with pytest.warns(RarevoteWarning, match="1 rows without a judgement"):
        folder = import_jigsaw(file)
    assert len((folder / "labels.csv").read_text().splitlines()) == 7


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ("1,2,maybe,0\n", {}, InputError, "1 values of toxic are neither 0 nor 1, such as 'maybe'"),
        (",2,1,0\n", {}, InputError, "1 row has no task"),
        ("", {"min_votes": 9}, InputError, "no comment with 9 judgements or more"),
        ("", {"threshold": 0.0}, ParameterError, "threshold must be above 0"),
        ("", {"min_votes": 0}, ParameterError, "min_votes must be at least 1"),
    ],
)
def test_bad_jigsaw_input_is_refused(
    tmp_path: Path, cache: Path, rows: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    file = tmp_path / "judgements.csv"
    file.write_text(JIGSAW + rows)
    with pytest.raises(error, match=message):
        import_jigsaw(file, **options)
    assert left_behind(cache) == []
