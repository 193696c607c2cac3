"""Models on disk: what comes back predicts the same to the last bit, and a file that cannot be trusted is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rarevote
from rarevote import GLAD, CCRasch, DawidSkene, GoldDawidSkene, Wawa, simulate_crowd
from rarevote.errors import InputError, NotFittedError, ParameterError
from rarevote.io.model_files import SavedModel
from rarevote.methods.new_tasks import _checked
from rarevote.methods.registry import METHODS, methods_that
from tests.tables import METHOD_ROWS

KINDS = {name: entry.load() for name, entry in METHODS.items()}
CAN = [row for row in METHOD_ROWS if row.name in methods_that("predict")]
CANNOT = sorted(set(METHODS) - set(methods_that("predict")))


def crowds(n_classes: int = 3) -> tuple[pd.DataFrame, pd.DataFrame, dict[Any, Any]]:
    """Votes to fit, votes on other tasks by the same workers, and some truth of the first."""
    made = simulate_crowd(120, 15, n_classes=n_classes, votes_per_task=6, imbalance=3, random_state=4)
    frame = pd.DataFrame({"task": made.task, "worker": made.worker, "label": made.label})
    old = frame.task < 80
    truth = dict(enumerate(made.truth[:20].tolist()))
    return frame[old], frame[~old], truth


@pytest.mark.parametrize("row", CAN, ids=lambda row: row.name)
@pytest.mark.parametrize("kind_of_names", ["numbers", "text"])
@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_what_comes_back_predicts_the_same(row: Any, kind_of_names: str, tmp_path: Path) -> None:
    old, new, truth = crowds(2 if row.binary else 3)
    if kind_of_names == "text":
        old, new = (frame.assign(worker="w" + frame.worker.astype(str), label="c" + frame.label.astype(str))
                    for frame in (old, new))  # fmt: skip
        truth = {task: f"c{label}" for task, label in truth.items()}
    model = row.make()
    model.fit(old, truth) if row.needs_gold else model.fit(old)
    model.save(tmp_path / "model")
    back = rarevote.load(tmp_path / "model")
    assert type(back) is type(model)
    assert repr(back) == repr(model)
    pd.testing.assert_frame_equal(back.predict_proba(new), model.predict_proba(new), check_exact=True)
    pd.testing.assert_series_equal(back.predict(new), model.predict(new))
    assert (back.n_iter_, back.converged_, back.status_) == (model.n_iter_, model.converged_, model.status_)
    assert len(back.labels_.to_dict()) == 0, "no task is in the file"


@pytest.mark.parametrize("name", CANNOT)
def test_methods_that_cannot_say_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=f"^{name} cannot label new tasks: choose one of anchored-rasch, cc-rasch"):
        KINDS[name]().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_parameters_keep_their_types(tmp_path: Path) -> None:
    votes = ([0, 0, 1, 1], ["a", "b"] * 2, [7, 7, 9, 7])
    model = CCRasch(sigma_alpha={7: 0.4, 9: 0.6}, prior=np.array([0.75, 0.25]), n_jobs=1).fit(votes)
    model.save(tmp_path / "model")
    back = rarevote.load(tmp_path / "model")
    assert isinstance(back, CCRasch)
    assert back.sigma_alpha == {7: 0.4, 9: 0.6}
    assert back.prior == [0.75, 0.25]
    assert back.classes_.tolist() == [7, 9]
    assert back.abilities_.to_pandas().equals(model.abilities_.to_pandas())


def test_single_precision_is_remembered(tmp_path: Path) -> None:
    old, new, _ = crowds()
    model = CCRasch(dtype=np.dtype("float32")).fit(old)  # type: ignore[arg-type]
    model.save(tmp_path / "model")
    back = rarevote.load(tmp_path / "model")
    assert back.get_params()["dtype"] == "float32"
    assert np.array_equal(back.label_new(new).posterior, model.label_new(new).posterior)


def test_unseen_workers_count_as_average(tmp_path: Path) -> None:
    old, new, _ = crowds()
    model = CCRasch().fit(old)
    model.save(tmp_path / "model")
    back = rarevote.load(tmp_path / "model")
    strange = new.assign(worker="nobody")
    assert back.label_new(strange).n_unseen_workers == 1
    assert back.label_new(new).n_unseen_workers == 0
    assert np.array_equal(back.label_new(strange).posterior, model.label_new(strange).posterior)


def test_what_is_known_of_workers_comes_back(tmp_path: Path) -> None:
    old, _, _ = crowds()
    for model, attribute in ((Wawa(), "skills_"), (GLAD(), "alphas_"), (DawidSkene(), "errors_")):
        model.fit(old)
        model.save(tmp_path / "model")
        back = getattr(rarevote.load(tmp_path / "model"), attribute).to_pandas()
        assert np.array_equal(back.to_numpy(), getattr(model, attribute).to_numpy())


def test_a_loaded_model_has_no_items_and_no_gold(tmp_path: Path) -> None:
    old, _, _ = crowds()
    DawidSkene().fit(old).save(tmp_path / "model")
    back = rarevote.load(tmp_path / "model")
    assert (back.annotations_.n_tasks, back.gold_codes_.tolist()) == (0, [])


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        CCRasch().save(tmp_path / "model")
    with pytest.raises(InputError, match="without votes has nothing to save"):
        CCRasch().fit(([], [], [])).save(tmp_path / "model")
    with pytest.raises(InputError, match="workers named by tuple values"):
        CCRasch().fit(([1, 2], [(1, 2), (1, 3)], ["x", "y"])).save(tmp_path / "model")
    with pytest.raises(InputError, match="cannot be written"):
        CCRasch().fit(([1], ["a"], ["x"])).save(tmp_path / "absent" / "model")
    assert not list(tmp_path.iterdir())


# -- files that cannot be trusted ------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    CCRasch().fit(([0, 0, 1, 1], ["a", "b"] * 2, ["x", "x", "y", "x"])).save(path)
    return path


def rewritten(path: Path, **changes: Any) -> Path:
    """The file with another description or other arrays; None leaves an array out."""
    with np.load(path) as file:
        arrays = dict(file)
    description = json.loads(arrays["description"].tobytes())
    description.update(changes.pop("description", {}))
    arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    arrays.update({f"parameter:{name}": value for name, value in changes.items() if value is not None})
    for name, value in changes.items():
        if value is None:
            del arrays[f"parameter:{name}"]
    with path.open("wb") as handle:
        np.savez(handle, **arrays)
    return path


def test_files_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read \\(No such file"):
        rarevote.load(tmp_path / "absent")
    for name, content in (("text", b"task,label\n1,x\n"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="not a rarevote model"):
            rarevote.load(tmp_path / name)
    with (tmp_path / "arrays").open("wb") as handle:
        np.savez(handle, a=np.arange(3))
    with pytest.raises(InputError, match="not a rarevote model"):
        rarevote.load(tmp_path / "arrays")


def test_objects_are_never_unpickled(saved: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self) -> Any:
            return ran.touch, ()

    rewritten(saved, mu_alpha=np.array([Trap()], dtype=object))
    with pytest.raises(InputError, match="damaged"):
        rarevote.load(saved)
    assert not ran.exists()


def test_every_cut_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    for size in range(0, len(whole), 97):
        saved.write_bytes(whole[:size])
        with pytest.raises(InputError):
            rarevote.load(saved)


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_changed_byte_inside_an_array_is_noticed(saved: Path, place: float) -> None:
    whole = bytearray(saved.read_bytes())
    begin, end = whole.index(b'{"format"'), whole.index(b"PK", whole.index(b'{"format"'))
    whole[begin + int(place * (end - begin))] ^= 0xFF
    saved.write_bytes(bytes(whole))
    with pytest.raises(InputError, match="damaged"):
        rarevote.load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"description": {"version": 2}}, "reads layouts up to 1: install a newer rarevote"),
        ({"description": {"format": "other"}}, "not a rarevote model"),
        ({"description": {"method": "nonsense"}}, "a model of 'nonsense', which is not a method"),
        ({"description": {"method": "plat"}}, "a model of 'plat', which is not a method"),
        ({"description": {"parameters": {"power": 3}}}, "no parameter 'power'"),
        ({"description": {"parameters": {"prior": [1.0, 2.0, 3.0]}}}, "prior"),
        ({"description": {"workers": "ab"}}, "workers are not names"),
        ({"description": {"workers": ["a", "b", "c"]}}, "ability_deviation does not fit cc-rasch"),
        ({"description": {"notes": {}}}, "damaged"),
        ({"log_prior": None}, "log_prior is missing"),
        ({"log_prior": np.array([0.0, np.nan])}, "log_prior does not fit cc-rasch"),
        ({"intercept": np.zeros((2, 2))}, "intercept does not fit cc-rasch"),
        ({"log_prior": np.array([0.7, -0.7])}, "log_prior is out of range"),
        ({"description": {"parameters": {"n_iter": "many"}}}, "parameter n_iter cannot be 'many'"),
        ({"description": {"parameters": {"accelerate": [1]}}}, r"parameter accelerate cannot be \[1\]"),
        ({"description": {"parameters": {"m_step": "magic"}}}, "parameter m_step cannot be 'magic'"),
    ],
)
def test_descriptions_that_do_not_fit(saved: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        rarevote.load(rewritten(saved, **changes))
    assert str(saved) in str(caught.value)


def test_negative_probabilities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    DawidSkene().fit(([0, 0, 1, 1], ["a", "b"] * 2, ["x", "x", "y", "x"])).save(path)
    rarevote.load(path)
    with pytest.raises(InputError, match="worker_votes is out of range"):
        rarevote.load(rewritten(path, worker_votes=-np.ones((2, 2))))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_shares_and_errors_that_no_fit_gives(tmp_path: Path) -> None:
    """Probabilities that do not sum to one were a silent wrong answer."""
    path, votes = tmp_path / "model", ([0, 0, 1, 1, 2, 2], ["a", "b"] * 3, ["x", "x", "y", "x", "y", "y"])
    rarevote.AnchoredRasch().fit(votes).save(path)
    rewritten(path, shares=np.array([0.25, 1e-300]))
    with pytest.raises(InputError, match="shares are shares, and do not sum to 1"):
        rarevote.load(path)
    rarevote.AnchoredRasch().fit(votes).save(path)
    rewritten(path, errors=np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="no probabilities: its file is damaged or was altered"):
        rarevote.load(path).predict(([7, 7], ["a", "b"], ["x", "y"]))


def test_shares_may_miss_one_by_rounding_alone() -> None:
    def saved_with(*shares: float) -> SavedModel:
        return SavedModel("wawa", {}, np.array(["x", "y"]), np.array(["a"]), {"shares": np.array(shares)}, {})

    for shares in ((0.75, 0.25), (0.7504, 0.25)):
        assert _checked(saved_with(*shares), {"shares": "k:share"})["shares"].tolist() == [*shares]
    for shares in ((0.752, 0.25), (0.748, 0.25), (0.5, 0.0)):
        with pytest.raises(ValueError, match="shares are shares, and do not sum to 1"):
            _checked(saved_with(*shares), {"shares": "k:share"})


def test_a_header_of_an_array_that_never_ends(saved: Path, tmp_path: Path) -> None:
    """NumPy reads the header of an array with Python's own tokenizer, whose error is none of the usual."""
    out = tmp_path / "cut"
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(out, "w") as copy:
        for info in archive.infolist():
            content = archive.read(info)
            copy.writestr(info.filename, content.replace(b"}", b" ", 1) if "prior" in info.filename else content)
    with pytest.raises(InputError, match="the model is damaged"):
        rarevote.load(out)


def test_a_description_nested_without_end_is_no_model(saved: Path) -> None:
    with np.load(saved) as file:
        arrays = dict(file)
    arrays["description"] = np.frombuffer(b'{"format": ' + b"[" * 100_000, dtype=np.uint8)
    with saved.open("wb") as handle:
        np.savez(handle, **arrays)
    with pytest.raises(InputError, match="not a rarevote model"):
        rarevote.load(saved)


def test_an_older_file_survives_a_failure(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(InputError):
        GoldDawidSkene().fit(([1], [(1, 2)], ["x"]), {1: "x"}).save(saved)
    assert saved.read_bytes() == before
