"""Data traps: each code of OX6xx with its trigger and its near miss, on real runs of the two sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evaluated
import onnxproof
from conftest import codes

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traps")
    for name in ("points", "images"):
        assert onnxproof.export(f"{HERE / 'evaluated.py'}:{name}", out=folder / name).artifact is not None
    return folder


@pytest.fixture
def run(model, tmp_path):
    """Evaluate some rows, with training data or without."""

    def evaluate(x, y, train=None, *, name="points", ids=None, train_ids=None, **options):
        def save(file, rows, labels, numbers):
            extra = {"id": numbers} if numbers is not None else {}
            np.savez(tmp_path / file, x=rows, labels=labels, **extra)
            return str(tmp_path / file)

        data = save("test.npz", x, y, ids)
        if train is not None:
            options["train_data"] = save("train.npz", *train, train_ids)
        target = f"{HERE / 'evaluated.py'}:{name}"
        return onnxproof.evaluate(target, data=data, onnx=model / name / "model.onnx", out=tmp_path, **options)

    return evaluate


TRAPS = {f"OX{n}" for n in range(601, 616)}


def test_clean_data_are_not_accused(run):
    proof = run(*evaluated.blobs(), evaluated.blobs(3000, seed=0), ids=np.arange(1500), train_ids=np.arange(5000, 8000))
    assert not codes(proof) & TRAPS


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["blobs", "few columns", "categories"])
def test_no_leakage_is_reported_on_clean_data(kind, seed, run):
    if kind == "blobs":
        test, train = evaluated.blobs(600, seed=10 + seed), evaluated.blobs(2000, seed=20 + seed)
    else:
        generator = np.random.default_rng(seed)
        draw = (
            (lambda n: generator.integers(0, 3, (n, evaluated.FEATURES)) * (np.arange(evaluated.FEATURES) < 5))
            if kind == "categories"
            else (lambda n: generator.normal(size=(n, evaluated.FEATURES)) * (np.arange(evaluated.FEATURES) < 2))
        )
        test, train = ((draw(n).astype(np.float32), generator.integers(0, 3, n)) for n in (600, 2000))
    assert not codes(run(*test, train)) & {"OX601", "OX602", "OX603", "OX610"}


@pytest.mark.parametrize("rows", [200, 1500])
def test_ox601_one_percent_of_copies_is_found(rows, run):
    x, y = evaluated.blobs(rows)
    train = evaluated.blobs(3000, seed=0)
    places = np.arange(0, rows, 100)
    x[places] = train[0][places * 2]
    proof = run(x, y, train)
    assert "OX601" in codes(proof, "review")
    assert proof.quality.traps.training.duplicates.count == len(places)


@pytest.mark.parametrize("noise", [1e-4, 0.02])
def test_ox602_one_percent_of_noisy_copies_is_found(noise, run):
    x, y = evaluated.blobs()
    train = evaluated.blobs(3000, seed=0)
    places = np.arange(0, 1500, 100)
    x[places] = train[0][places] + np.random.default_rng(0).normal(0, noise, (15, evaluated.FEATURES))
    proof = run(x, y, train)
    assert "OX602" in codes(proof, "review")
    assert "OX601" not in codes(proof)


def test_ox603_ids_on_both_sides(run):
    x, y = evaluated.blobs(300)
    train = evaluated.blobs(1000, seed=0)
    assert "OX603" in codes(run(x, y, train, ids=np.arange(300), train_ids=np.arange(299, 1299)), "review")
    assert "OX603" not in codes(run(x, y, train, ids=np.arange(300), train_ids=np.arange(300, 1300)))


def test_ox604_ox605_and_ox606_values(run):
    x, y = evaluated.blobs(300)
    clean = run(x, y, range={"x": (float(x.min()), float(x.max()))})
    assert not codes(clean) & {"OX604", "OX605", "OX606"}
    assert "OX606" in codes(run(x, y, range={"x": (-1, 1)}), "review")
    broken = x.copy()
    broken[7, 3] = np.nan
    proof = run(broken, y)
    assert "OX604" in codes(proof, "review")
    assert proof.quality.traps.inputs["x"].nonfinite_rows == 1
    still = x.copy()
    still[:, 4] = 1.5
    assert "OX605" in codes(run(still, y), "note")
    assert "OX605" in codes(run(np.tile(x[:1], (300, 1)), y), "review")


def pictures(n=60, scale=1.0, seed=0):
    generator = np.random.default_rng(seed)
    tint = np.array([0.9, 0.5, 0.2])[:, None, None]
    return (generator.random((n, 3, 8, 8)) * tint * scale).astype(np.float32), np.arange(n) % 2


@pytest.mark.slow
def test_ox607_ox608_ox614_and_ox615_images(run):
    x, y = pictures()
    train = pictures(200, seed=1)
    assert not codes(run(x, y, train, name="images")) & {"OX607", "OX608", "OX614", "OX615"}
    assert "OX607" in codes(run(x * 255, y, name="images"), "review")
    assert "OX607" not in codes(run(x * 1.1, y, name="images"))
    assert "OX607" in codes(run(x * 255, y, train, name="images"), "review")
    assert "OX615" in codes(run((x * 255).astype(np.uint8), y, name="images"), "note")
    layout = run(x.transpose(0, 2, 3, 1), y, name="images")
    assert "OX608" in codes(layout, "block")
    assert "channels last" in layout.findings[0].message
    assert "OX614" in codes(run(x[:, ::-1].copy(), y, train, name="images"), "review")
    assert "OX614" not in codes(
        run((x * np.array([1.1, 1, 1])[:, None, None]).astype(np.float32), y, train, name="images")
    )


def test_ox609_data_beyond_the_parity_cases(run):
    x, y = evaluated.blobs(300)
    assert "OX609" not in codes(run(x, y))
    assert "OX609" in codes(run(x + 5000, y), "note")
    assert "OX609" not in codes(run(x + 5000, y, range={"x": (4980, 5020)})), "declared: parity cases are made there"


def test_ox610_a_feature_that_is_the_label(run):
    x, y = evaluated.blobs(600)
    leaky = x.copy()
    leaky[:, 5] = y + np.random.default_rng(0).normal(0, 0.05, 600)
    proof = run(leaky, y)
    assert "OX610" in codes(proof, "review")
    assert proof.quality.traps.leaks[0].feature == 5
    strong = x.copy()
    strong[:, 5] = y + np.random.default_rng(0).normal(0, 0.35, 600)
    assert "OX610" not in codes(run(strong, y))


def test_ox611_learnt_by_heart(run):
    """Training data that the model fits and test data whose labels were shuffled in part."""
    x, y = evaluated.blobs(800)
    train = evaluated.blobs(2000, seed=0)
    assert "OX611" not in codes(run(x, y, train))
    wrong = np.where(np.arange(800) % 3 == 0, (y + 1) % 3, y)
    assert "OX611" in codes(run(x, wrong, train), "review")


def test_ox612_training_and_test_data_differ(run):
    x, y = evaluated.blobs(800)
    train = evaluated.blobs(2000, seed=0)
    assert "OX612" not in codes(run(x, y, train))
    moved = x.copy()
    moved[:, 2] += 3 * x[:, 2].std()
    proof = run(moved, y, train)
    assert "OX612" in codes(proof, "review")
    assert proof.quality.traps.training.shift[0].feature == 2
