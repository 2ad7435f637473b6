"""Scores as a run would have kept them, and what is made of them."""

from __future__ import annotations

import json

import numpy as np

from onnxproof.policy.quality import judge_quality
from onnxproof.proof.codec import decode, to_plain
from onnxproof.proof.quality import Quality
from onnxproof.proof.traps import Traps
from onnxproof.quality.accumulate import Shard, merge
from onnxproof.quality.assemble import assemble
from onnxproof.quality.task import decide, encode, select_scores
from onnxproof.quality.task_plan import make_plan
from onnxproof.request.evaluation import EvaluateSettings, parse_cost, parse_goal
from onnxproof.request.thresholds import QualityPolicy


def scores_of(labels, baseline, candidate=None, settings=None, **plan_options):
    """Scores as a run would have kept them."""
    settings = settings or EvaluateSettings("none")
    plan = make_plan({"y": np.asarray(baseline)}, np.asarray(labels), settings)
    sides = {"baseline": baseline, "candidate": baseline if candidate is None else candidate}
    kept = {side: select_scores(np.asarray(v), plan) for side, v in sides.items()}
    flipped = 0
    if plan.classification:
        from onnxproof.quality.flips import find_changed

        flipped = int(find_changed(decide(kept["baseline"], plan), decide(kept["candidate"], plan)).sum())
    columns = {"labels": encode(np.asarray(labels), plan), **kept}
    return merge([Shard(0, len(labels), columns, flipped=flipped)], plan)


def quality_of(labels, baseline, candidate=None, **options):
    options["goals"] = tuple(map(parse_goal, options.get("goals", ())))
    options["cost"] = parse_cost(options["cost"]) if "cost" in options else None
    settings = EvaluateSettings("none", **options)
    scores = scores_of(labels, baseline, candidate, settings)
    made = assemble(scores, settings, traps=Traps(), preprocessing=None, rows=len(labels), workers=1, where="local")
    return decode(json.loads(json.dumps(to_plain(made))), Quality)


def codes_of(quality, **policy):
    return {f.code: f for f in judge_quality(quality, QualityPolicy(**policy))}


def binary(n=1000, share=0.5, seed=0, noise=1.0):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < share).astype(np.int64)
    logits = (labels * 2 - 1) * 1.5 + generator.normal(0, noise, n)
    return labels, logits.astype(np.float32)
