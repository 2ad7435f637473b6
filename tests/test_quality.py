"""Task quality: statistics against other libraries and published numbers, metrics, thresholds, streams, traps, opinions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn import metrics as sk
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

from onnxproof.errors import InputError, UserError
from onnxproof.policy.quality import check_gates, judge_quality
from onnxproof.proof.codec import decode, plain
from onnxproof.proof.quality import Quality
from onnxproof.proof.traps import Traps
from onnxproof.quality import intervals
from onnxproof.quality.accumulate import Shard, merge
from onnxproof.quality.assemble import assemble
from onnxproof.quality.metrics import measure
from onnxproof.quality.task import Plan, decide, encode, make_plan, score_columns
from onnxproof.quality.thresholds import Sweep
from onnxproof.request.evaluation import EvaluateSettings, parse_cost, parse_goal
from onnxproof.request.judgement import parse_gate
from onnxproof.request.option import Expected
from onnxproof.request.thresholds import QualityPolicy


def scores_of(labels, baseline, candidate=None, settings=None, **plan_options):
    """Scores as a run would have kept them."""
    settings = settings or EvaluateSettings("none")
    plan = make_plan({"y": np.asarray(baseline)}, np.asarray(labels), settings)
    sides = {"baseline": baseline, "candidate": baseline if candidate is None else candidate}
    kept = {side: score_columns(np.asarray(v), plan) for side, v in sides.items()}
    flipped = 0
    if plan.classification:
        from onnxproof.quality.flips import changed

        flipped = int(changed(decide(kept["baseline"], plan), decide(kept["candidate"], plan)).sum())
    columns = {"labels": encode(np.asarray(labels), plan), **kept}
    return merge([Shard(0, len(labels), columns, flipped=flipped)], plan)


def quality_of(labels, baseline, candidate=None, **options):
    options["goals"] = tuple(map(parse_goal, options.get("goals", ())))
    options["cost"] = parse_cost(options["cost"]) if "cost" in options else None
    settings = EvaluateSettings("none", **options)
    scores = scores_of(labels, baseline, candidate, settings)
    made = assemble(scores, settings, traps=Traps(), preprocessing=None, rows=len(labels), workers=1, where="local")
    return decode(json.loads(json.dumps(plain(made))), Quality)


def codes_of(quality, **policy):
    return {f.code: f for f in judge_quality(quality, QualityPolicy(**policy))}


def binary(n=1000, share=0.5, seed=0, noise=1.0):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < share).astype(np.int64)
    logits = (labels * 2 - 1) * 1.5 + generator.normal(0, noise, n)
    return labels, logits.astype(np.float32)


# --- intervals and tests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (87, 263), (999, 1000)])
def test_wilson_is_statsmodels(successes, n):
    ours = intervals.wilson(successes, n)
    low, high = proportion_confint(successes, n, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("events", "n"), [(0, 100), (0, 1000), (3, 500)])
def test_the_upper_bound_is_clopper_and_pearson(events, n):
    assert intervals.upper_bound(events, n) == pytest.approx(stats.beta.ppf(0.95, events + 1, n - events))
    _, two_sided = proportion_confint(events, n, alpha=0.10, method="beta")
    assert intervals.upper_bound(events, n) == pytest.approx(two_sided, abs=1e-9)


def test_zero_flips_bound_the_rate():
    assert intervals.upper_bound(0, 100) == pytest.approx(0.0295, abs=1e-4)
    assert intervals.upper_bound(0, 1000) == pytest.approx(0.0030, abs=1e-4)
    assert intervals.clean_examples_needed(0.03) == 99


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (1, 7), (12, 12), (30, 9)])
def test_mcnemar_is_statsmodels(lost, gained):
    table = [[50, lost], [gained, 50]]
    expected = statsmodels_mcnemar(table, exact=True).pvalue if lost + gained else 1.0
    assert intervals.mcnemar(lost, gained) == pytest.approx(expected)


def test_tango_is_the_published_interval():
    # Airway hyper-responsiveness before and after transplantation, 1, 1, 7, 12 of 21 (Bentur et al. 2009), as worked out
    # in Fagerland, Lydersen and Laake (2014).
    low, high = intervals.tango(1, 7, 21)
    assert (low, high) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert intervals.tango(7, 1, 21) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("gained", "lost", "n", "confidence", "expected"),
    [(20, 60, 1000, 0.95, (-0.0584, -0.0231)), (28, 25, 618, 0.90, (-0.0148, 0.0247))],
)
def test_tango_is_that_of_propcis(gained, lost, n, confidence, expected):
    # R's PropCIs::scoreci.mp(lost, gained, n, confidence), as it was reported with four digits.
    assert intervals.tango(gained, lost, n, confidence) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("gained", "lost", "n"), [(7, 3, 50), (0, 4, 40), (25, 24, 300), (1, 0, 44)])
def test_tango_inverts_the_score_test(gained, lost, n):
    """At each end the score statistic, with nuisance parameters fitted numerically, is the normal quantile."""

    def statistic(difference):
        def unlikely(q):
            shares = np.array([q + difference, q, 1 - 2 * q - difference])
            return -np.sum(np.array([gained, lost, n - gained - lost]) * np.log(np.maximum(shares, 1e-300)))

        ends = max(0.0, -difference), (1 - difference) / 2
        q = optimize.minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
        return (gained - lost - n * difference) / math.sqrt(n * (2 * q + difference * (1 - difference)))

    low, high = intervals.tango(gained, lost, n)
    z = stats.norm.ppf(0.975)
    assert statistic(low) == pytest.approx(z, abs=1e-3)
    assert statistic(high) == pytest.approx(-z, abs=1e-3)


def test_tango_without_discordant_pairs_is_not_empty():
    low, high = intervals.tango(0, 0, 100)
    z = stats.norm.ppf(0.975) ** 2
    assert high == pytest.approx(z / (100 + z), abs=1e-9)
    assert low == pytest.approx(-high)


def test_how_many_examples_would_settle_it():
    needed = intervals.examples_needed(0, 0, 100, 0.01)
    assert needed is not None
    for size, within in ((needed, True), (int(needed * 0.97), False)):
        low, high = intervals.tango(0, 0, size, 0.90)
        assert (low > -0.01 and high < 0.01) is within
    assert intervals.examples_needed(5, 25, 1000, 0.01) is None


def test_the_bootstrap_is_scipys():
    labels, logits = binary(600)
    measured = measure(scores_of(labels, logits))

    def auc(index):
        rows = index.astype(int)
        return sk.roc_auc_score(labels[rows], logits[rows])

    theirs = stats.bootstrap(
        (np.arange(600),), auc, vectorized=False, n_resamples=500, method="percentile", random_state=0
    ).confidence_interval
    assert measured.intervals["roc_auc"]["candidate"] == pytest.approx([theirs.low, theirs.high], abs=0.006)


def test_blocks_of_many_examples_give_the_same_width():
    generator = np.random.default_rng(1)
    values = generator.exponential(1.0, 200_000)
    bootstrap = intervals.Bootstrap(len(values))
    cells = np.zeros(len(values), np.int64)
    sums = np.concatenate([bootstrap.sums(cells, values, 1), bootstrap.sums(cells, None, 1)], axis=1)
    low, high = intervals.percentile(bootstrap.totals(sums)[:, 0] / bootstrap.totals(sums)[:, 1])
    width = 2 * 1.96 * values.std() / math.sqrt(len(values))
    assert high - low == pytest.approx(width, rel=0.12)
    assert low < values.mean() < high


# --- metrics and thresholds -------------------------------------------------------------------------------------------


def test_binary_metrics_are_scikit_learns():
    labels, logits = binary(2000, 0.2)
    values = measure(scores_of(labels, logits)).values["candidate"]
    p, decided = 1 / (1 + np.exp(-logits.astype(np.float64))), (logits >= 0).astype(int)
    expected = {
        "accuracy": sk.accuracy_score(labels, decided),
        "precision": sk.precision_score(labels, decided),
        "recall": sk.recall_score(labels, decided),
        "f1": sk.f1_score(labels, decided),
        "roc_auc": sk.roc_auc_score(labels, logits),
        "pr_auc": sk.average_precision_score(labels, logits),
        "log_loss": sk.log_loss(labels, p),
        "brier": sk.brier_score_loss(labels, p),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_multiclass_metrics_are_scikit_learns():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 1500)
    logits = (np.eye(4)[labels] * 1.5 + generator.normal(size=(1500, 4))).astype(np.float32)
    measured = measure(scores_of(labels, logits))
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    decided = logits.argmax(axis=1)
    expected = {
        "accuracy": sk.accuracy_score(labels, decided),
        "recall": sk.recall_score(labels, decided, average="macro"),
        "f1_weighted": sk.f1_score(labels, decided, average="weighted"),
        "roc_auc": sk.roc_auc_score(labels, p, multi_class="ovr", average="macro"),
        "log_loss": sk.log_loss(labels, p),
    }
    values = measured.values["candidate"]
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert measured.confusion.candidate == sk.confusion_matrix(labels, decided).tolist()
    for name, ends in measured.intervals.items():
        assert ends["candidate"][0] <= values[name] + 0.01, name
        assert ends["candidate"][1] >= values[name] - 0.01, name


def test_multilabel_and_regression_metrics_are_scikit_learns():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (800, 5))
    p = np.clip(labels * 0.4 + generator.random((800, 5)) * 0.6, 0, 1).astype(np.float32)
    scores = scores_of(labels, p)
    assert scores.plan.task == "multilabel"
    values = measure(scores).values["candidate"]
    assert values["f1"] == pytest.approx(sk.f1_score(labels, p >= 0.5, average="macro"))
    assert values["pr_auc"] == pytest.approx(sk.average_precision_score(labels, p, average="macro"))
    assert values["accuracy"] == pytest.approx(sk.accuracy_score(labels, p >= 0.5))
    y = generator.normal(size=700)
    guess = (y + generator.normal(0, 0.3, 700)).astype(np.float32)
    numbers = measure(scores_of(y, guess[:, None])).values["candidate"]
    assert numbers["mae"] == pytest.approx(sk.mean_absolute_error(y, guess))
    assert numbers["r2"] == pytest.approx(sk.r2_score(y, guess))
    assert numbers["rmse"] == pytest.approx(math.sqrt(sk.mean_squared_error(y, guess)))


def test_a_sweep_answers_for_every_threshold():
    labels, logits = binary(500, 0.3)
    logits = np.round(logits, 1)  # ties
    sweep = Sweep.of(logits, labels == 1)
    assert sweep.roc_auc() == pytest.approx(sk.roc_auc_score(labels, logits))
    assert sweep.average_precision() == pytest.approx(sk.average_precision_score(labels, logits))
    for threshold in (-2.0, -0.05, 0.3, 1.7, 9.0):
        decided = logits >= threshold
        counts = sweep.at(threshold)
        assert counts.tp == int((decided & (labels == 1)).sum())
        assert counts.fp == int((decided & (labels == 0)).sum())


def test_goals_choose_what_trying_all_thresholds_chooses():
    labels, logits = binary(400, 0.2, seed=3)
    sweep = Sweep.of(logits, labels == 1)
    tried = [sweep.at(t) for t in np.unique(logits)]
    threshold = sweep.choose(parse_goal("recall>=0.9"))
    assert sweep.at(threshold).precision == max(c.precision for c in tried if c.recall >= 0.9)
    assert sweep.at(threshold).recall >= 0.9
    assert sweep.at(sweep.choose(parse_goal("max:f1"))).f1 == max(c.f1 for c in tried)
    cheap = sweep.at(sweep.choose(parse_cost("fn=100,fp=1")))
    assert 100 * cheap.fn + cheap.fp == min(100 * c.fn + c.fp for c in tried)
    assert sweep.choose(parse_goal("precision>=1.0")) is not None or max(c.precision for c in tried) < 1
    assert len(Sweep.of(np.arange(10_000.0), np.arange(10_000) % 7 == 0).curve().recall) <= 512


@pytest.mark.parametrize("text", ["recall>0.9", "recall>=2", "min:f1", "max:beauty", "f1>=0.5"])
def test_goals_that_are_none_are_refused(text):
    with pytest.raises(Expected, match="or max:f1"):
        parse_goal(text)


def test_gates_and_costs_are_parsed():
    assert [parse_gate("recall=0.8"), parse_gate("recall[a=b]=0.5")] == [("recall", 0.8), ("recall[a=b]", 0.5)]
    for wrong in ("recall", "=0.8", "recall=high"):
        with pytest.raises(Expected, match="metric=number"):
            parse_gate(wrong)
    with pytest.raises(Expected, match="fn=100"):
        parse_cost("fn=100,missed=3")


# --- tasks ------------------------------------------------------------------------------------------------------------

RANDOM = np.random.default_rng(0)
FLOATS = RANDOM.normal(size=(60, 3)).astype(np.float32) * 3
SOFT = np.exp(FLOATS) / np.exp(FLOATS).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("scores", "labels", "task", "scale"),
    [
        (FLOATS[:, :1], RANDOM.integers(0, 2, 60), "binary", "logit"),
        (SOFT[:, 0], RANDOM.integers(0, 2, 60).astype(np.float32), "binary", "probability"),
        (FLOATS[:, :2], RANDOM.integers(0, 2, 60).astype(bool), "binary", "logit"),
        (SOFT[:, :2] / SOFT[:, :2].sum(axis=1, keepdims=True), np.array(["no", "yes"] * 30), "binary", "probability"),
        (FLOATS, RANDOM.integers(0, 3, 60), "multiclass", "logit"),
        (SOFT, RANDOM.integers(0, 3, 60)[:, None], "multiclass", "probability"),
        (np.log(SOFT), np.eye(3, dtype=int)[RANDOM.integers(0, 3, 60)], "multiclass", "log-probability"),
        (FLOATS, np.array(["a", "b", "c"] * 20), "multiclass", "logit"),
        (FLOATS, RANDOM.integers(0, 2, (60, 3)) | np.eye(3, dtype=int)[np.arange(60) % 3], "multilabel", "logit"),
        (FLOATS[:, 0], RANDOM.normal(size=60), "regression", "value"),
        (FLOATS[:, :1], RANDOM.integers(0, 50, 60), "regression", "value"),
        (FLOATS, RANDOM.normal(size=(60, 3)), "regression", "value"),
        (RANDOM.integers(0, 3, 60), RANDOM.integers(0, 3, 60), "multiclass", "decision"),
    ],
)
def test_the_task_is_inferred(scores, labels, task, scale):
    plan = make_plan({"y": scores}, labels, EvaluateSettings("none"))
    assert (plan.task, plan.scale) == (task, scale)
    kept = score_columns(scores, plan)
    assert len(kept) == 60
    if plan.classification:
        assert decide(kept, plan).shape[0] == 60
        assert encode(labels, plan).shape[0] == 60


def test_labels_that_fit_no_column_are_refused():
    with pytest.raises(InputError, match="--classes"):
        make_plan({"y": FLOATS}, np.array([1, 9] * 30), EvaluateSettings("none"))
    with pytest.raises(InputError, match="5 values"):
        make_plan({"y": FLOATS}, np.array(list("abcde") * 12), EvaluateSettings("none"))
    with pytest.raises(InputError, match="no output of the model looks like scores"):
        make_plan({"y": RANDOM.normal(size=(60, 2, 2))}, np.zeros(60, int), EvaluateSettings("none"))


def test_minus_one_and_one_are_two_classes_and_the_positive_one_can_be_chosen():
    labels = np.array([-1, 1] * 30)
    plan = make_plan({"y": FLOATS[:, 0]}, labels, EvaluateSettings("none"))
    assert encode(labels, plan).tolist() == [0, 1] * 30
    other = make_plan({"y": FLOATS[:, 0]}, labels, EvaluateSettings("none", positive="-1"))
    same = decide(score_columns(FLOATS[:, 0], plan), plan) == decide(score_columns(FLOATS[:, 0], other), other)
    assert same.all()
    assert (score_columns(FLOATS[:, 0], other) == -FLOATS[:, 0]).all()


def test_the_scores_are_found_among_the_outputs():
    outputs = {
        "hidden": RANDOM.normal(size=(60, 7, 2)),
        "loss": np.zeros(()),
        "digit": RANDOM.integers(0, 3, 60),
        "logits": FLOATS,
    }
    labels = RANDOM.integers(0, 3, 60)
    assert make_plan(outputs, labels, EvaluateSettings("none")).output == "logits"
    assert make_plan(outputs, labels, EvaluateSettings("none", output="digit")).scale == "decision"
    with pytest.raises(InputError, match="no output 'nope'"):
        make_plan(outputs, labels, EvaluateSettings("none", output="nope"))


def test_nan_decides_for_nothing():
    plan = Plan("multiclass", "y", "logit", 3, ("a", "b", "c"), (0, 1, 2))
    scores = np.array([[1, 2, 3], [np.nan, 1, 2]], np.float32)
    assert decide(scores, plan).tolist() == [2, -1]


def test_shards_in_any_order_are_one(tmp_path):
    labels, logits = binary(1000)
    whole = scores_of(labels, logits)
    cuts = [(0, 300), (300, 301), (301, 1000)]
    parts = [
        Shard(a, b - a, {"labels": whole.labels[a:b], "baseline": logits[a:b], "candidate": logits[a:b]})
        for a, b in cuts
    ]
    for i, shard in enumerate(parts):
        shard.save(tmp_path / f"shard-{i}.npz", "mark")
    assert Shard.load(tmp_path / "shard-0.npz", "other") is None
    (tmp_path / "shard-9.npz").write_bytes((tmp_path / "shard-0.npz").read_bytes()[:100])
    assert Shard.load(tmp_path / "shard-9.npz", "mark") is None
    loaded = [Shard.load(tmp_path / f"shard-{i}.npz", "mark") for i in (2, 0, 1)]
    merged = merge(loaded, whole.plan)
    assert merged.n == 1000
    assert (merged.sides["candidate"].scores == logits).all()
    assert measure(merged).confusion == measure(whole).confusion


# --- opinions: each code of OX5xx with its trigger and its near miss --------------------------------------------------


def rare_class(found_share, n=2000):
    """2 % positives of which a share is found, and no false alarm."""
    labels = np.zeros(n, np.int64)
    labels[: n // 50] = 1
    logits = np.full(n, -3.0, np.float32) + np.random.default_rng(0).normal(0, 0.1, n).astype(np.float32)
    logits[: round(n // 50 * found_share)] = 2.0
    return labels, logits


def test_ox505_a_rare_class_that_is_missed_blocks_whatever_the_accuracy():
    labels, logits = rare_class(0.12)
    quality = quality_of(labels, logits)
    assert quality.candidate["accuracy"] > 0.98
    found = codes_of(quality)
    assert found["OX505"].severity == "block"
    assert "OX512" in found
    near = codes_of(quality_of(*rare_class(0.7)))
    assert "OX505" not in near
    assert "OX505" not in codes_of(quality, minimum={"recall": 0.1}), "the user says what is enough"


def test_ox504_and_ox509_gates():
    labels, logits = binary(400, 0.3)
    quality = quality_of(labels, logits)
    recall = quality.candidate["recall"]
    assert codes_of(quality, minimum={"recall": recall + 0.01})["OX504"].severity == "block"
    near = codes_of(quality, minimum={"recall": recall - 0.001})
    assert "OX504" not in near
    assert near["OX509"].severity == "note"
    assert not {"OX504", "OX509"} & codes_of(quality, minimum={"recall": recall - 0.3}).keys()
    assert "OX504" in codes_of(quality, minimum={"recall[0]": 0.9999})
    assert "OX504" in codes_of(quality, maximum={"log_loss": 0.0001})
    with pytest.raises(UserError, match="no such metric"):
        check_gates(QualityPolicy(minimum={"beauty": 1}), quality)
    with pytest.raises(UserError, match="needs an evaluation"):
        check_gates(QualityPolicy(minimum={"recall": 1}), None)


def test_ox509_more_examples_settle_a_gate():
    def recalled(n):
        labels = np.arange(2 * n) % 2
        logits = np.where(labels == 1, np.where(np.arange(2 * n) // 2 % 20 < 17, 2.0, -2.0), -3.0).astype(np.float32)
        return codes_of(quality_of(labels, logits), minimum={"recall": 0.8})

    assert "OX509" in recalled(20)
    assert not {"OX504", "OX509"} & recalled(2000).keys()


def test_ox506_low_accuracy():
    labels, logits = binary(1000, noise=3.0)
    quality = quality_of(labels, logits)
    assert quality.candidate["accuracy"] < 0.8
    assert codes_of(quality)["OX506"].severity == "review"
    assert "OX506" not in codes_of(quality, minimum={"accuracy": 0.5})
    assert "OX506" not in codes_of(quality_of(*binary(1000)))


def test_ox507_a_drop():
    labels, logits = binary(1000, noise=0.7)
    worse = logits.copy()
    wrong = np.flatnonzero((logits > 0) == (labels == 1))[:40]
    worse[wrong] *= -1
    assert codes_of(quality_of(labels, logits, worse))["OX507"].severity == "review"
    assert codes_of(quality_of(labels, logits, worse), max_drop={"accuracy": 0.01})["OX507"].severity == "block"
    assert "OX507" not in codes_of(quality_of(labels, logits, worse), max_drop={"accuracy": 0.05})
    few = quality_of(labels[:50], logits[:50], np.where(np.arange(50) == wrong[0], -logits[:50], logits[:50]))
    assert "OX507" not in codes_of(few), "one of fifty is chance"


def test_ox508_too_few_examples():
    labels, logits = binary(100)
    found = codes_of(quality_of(labels, logits))["OX508"]
    assert "about 268 examples" in found.message or "about 27" in found.message
    assert quality_of(labels, logits).flip_rate.high == pytest.approx(0.0295, abs=1e-4)
    assert "OX508" not in codes_of(quality_of(*binary(1000)))


def test_ox510_and_ox511_thresholds():
    labels, logits = binary(1000, 0.3)
    moved = codes_of(quality_of(labels, logits, logits - 1.0, goals=("recall>=0.95",)))
    assert moved["OX510"].severity == "review"
    jitter = logits + np.random.default_rng(0).normal(0, 1e-6, 1000).astype(np.float32)
    near = quality_of(labels, logits, jitter, goals=("recall>=0.95",))
    assert "OX510" not in codes_of(near)
    assert abs(near.thresholds.goals[0].moved) < 1e-4
    hopeless = np.where(np.arange(1000) == 0, 50.0, logits).astype(np.float32)
    labels[0] = 0
    assert codes_of(quality_of(labels, hopeless, goals=("precision>=1.0",)))["OX511"].severity == "review"
    assert "OX511" not in codes_of(quality_of(labels, hopeless, goals=("precision>=0.6",)))
    with pytest.raises(InputError, match="--goal"):
        quality_of(np.arange(60) % 3, FLOATS, goals=("recall>=0.9",))


def test_ox512_and_ox513_balance():
    labels, logits = binary(1000, 0.3)
    assert not {"OX512", "OX513"} & codes_of(quality_of(labels, logits)).keys()
    assert "OX512" in codes_of(quality_of(*binary(2000, 0.01)))
    assert codes_of(quality_of(np.arange(60) % 2, FLOATS))["OX513"].severity == "review"
    assert "OX513" not in codes_of(quality_of(np.arange(60) % 3, FLOATS))


def test_quality_is_judged_again_from_json():
    quality = quality_of(*binary(500, 0.3), goals=("max:f1",), cost="fn=10,fp=1")
    assert [goal.goal for goal in quality.thresholds.goals] == ["max:f1", "cost fn=10,fp=1"]
    future = decode({**plain(quality), "from_the_future": 1}, Quality)
    assert {f.code for f in judge_quality(future, QualityPolicy())} == set(codes_of(quality))
