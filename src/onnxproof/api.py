"""The Python interface: the verbs of the command line, with keyword-only options named as the flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxproof.errors import FindingError, UserError
from onnxproof.pipeline.conduct import Progress, conduct
from onnxproof.policy.latency import LatencyPolicy, share_of
from onnxproof.policy.policy import Policy, Tolerance, judge
from onnxproof.proof.blame import Blame
from onnxproof.proof.proof import Proof
from onnxproof.request.benchmark import BenchSettings, Scenario, parse_variant
from onnxproof.request.evaluation import EvaluateSettings, checked
from onnxproof.request.request import CPU, Exporter, ExportOptions, Job, Limits, SessionSettings, VerifySettings
from onnxproof.request.specs import ProviderSpec, Role, parse_provider, parse_range, parse_seconds, parse_sizes

Threshold = float | Mapping[str, float] | None


def make_policy(
    *,
    atol: Threshold = None,
    rtol: Threshold = None,
    max_abs: Threshold = None,
    noise: float | None = None,
    accept: Mapping[str, str] | None = None,
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float] | None = None,
    base: Policy | None = None,
) -> Policy:
    """A policy from what the user gave; a number for all outputs, or a mapping of outputs (`None` for the others)."""
    given = {"atol": atol, "rtol": rtol, "max_abs": max_abs}
    general = {k: v for k, v in ((k, _general(v)) for k, v in given.items()) if v is not None}
    for flag, gates in (("min", min), ("max", max), ("max_drop", max_drop), ("accept", accept)):
        if gates is not None and not isinstance(gates, Mapping):
            example = {"OX202": "why"} if flag == "accept" else {"recall": 0.8}
            raise UserError(f"{flag}: expected a mapping such as {example}, came {gates!r}")
    for flag, value in (*given.items(), ("noise", noise)):
        numbers = value.values() if isinstance(value, Mapping) else (value,)
        if any(isinstance(number, str) for number in numbers):
            raise UserError(f"{flag}: expected a number, came {value!r}")
    for flag, gates in (("min", min), ("max", max), ("max_drop", max_drop)):
        wrong = next((name for name, gate in (gates or {}).items() if gate != gate), None)
        if wrong is not None:
            raise UserError(f"{flag}: the gate of {wrong} is NaN; expected a number")
    start = base or Policy()
    tolerance = replace(start.tolerance, **general, promised=True) if general else start.tolerance
    if general.keys() & {"atol", "rtol"} and "max_abs" not in general and not start.tolerance.promised:
        # Who promises a tolerance does not also promise the default's absolute limit.
        tolerance = replace(tolerance, max_abs=float("inf"))
    outputs = dict(start.outputs)
    for key, value in given.items():
        for output, number in value.items() if isinstance(value, Mapping) else ():
            if output is not None:
                base_tolerance = outputs.get(output, replace(tolerance, max_abs=float("inf")))
                outputs[output] = replace(base_tolerance, promised=True, **{key: number})
    return Policy(
        tolerance=tolerance,
        outputs=outputs,
        noise=start.noise if noise is None else noise,
        accept={**start.accept, **(accept or {})},
        latency=start.latency,
        known=start.known,
        quality=replace(
            start.quality,
            minimum={**start.quality.minimum, **(min or {})},
            maximum={**start.quality.maximum, **(max or {})},
            max_drop={**start.quality.max_drop, **(max_drop or {})},
        ),
    )


def _general(value: Threshold) -> float | None:
    if isinstance(value, Mapping):
        return value.get(None)  # type: ignore[call-overload,no-any-return]  # None is the key for all other outputs
    return value


def limits_of(policy: Policy) -> Limits:
    """The tightest thresholds of a policy: what is beyond them is looked at more closely."""
    tolerances: list[Tolerance] = [policy.tolerance, *policy.outputs.values()]
    return Limits(
        policy.noise,
        min(t.atol for t in tolerances),
        min(t.rtol for t in tolerances),
        min(t.max_abs for t in tolerances),
    )


def prove(
    model: Any,
    inputs: Any = None,
    *,
    onnx: str | Path | None = None,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    range: Mapping[str, tuple[float, float]] | None = None,
    batch_sizes: str | Sequence[int] | None = None,
    data: str | None = None,
    opset: int | None = None,
    exporter: Exporter = "auto",
    keep_metadata: bool = False,
    no_optimize: bool = False,
    strict: bool = False,
    provider: str | Sequence[str] = (),
    optimization: str = "all",
    disable: Sequence[str] = (),
    threads: int | None = None,
    atol: Threshold = None,
    rtol: Threshold = None,
    max_abs: Threshold = None,
    noise: float | None = None,
    accept: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    nonfinite: bool = False,
    seed: int = 0,
    budget: float | str = 120.0,
    search: float | str = 0.0,
    memory: int | None = None,
    role: Mapping[str, Role] | None = None,
    heal: bool = False,
    bench: bool | BenchSettings = False,
    out: str | Path = "onnxproof-out",
    isolate: bool = False,
    case_timeout: float | str = 300.0,
    progress: Progress | None = None,
    verify_cases: bool = True,
    evaluate: bool = True,
    labels: str | None = None,
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float] | None = None,
) -> Proof:
    """Export the model (or take `onnx`), verify it under onnxruntime, and judge; data with labels are evaluated too.

    `bench=True` times both sides too; `verify_cases=False` leaves the planned cases out.

    `model` is a `torch.nn.Module` with `inputs` (a tuple of positional or a dict of keyword inputs), or a TARGET string.
    """
    policy = make_policy(
        atol=atol,
        rtol=rtol,
        max_abs=max_abs,
        noise=noise,
        accept=accept,
        min=min,
        max=max,
        max_drop=max_drop,
        base=policy,
    )
    wanted = EvaluateSettings(data, labels, seed=seed, required=False) if data is not None and evaluate else None
    job = Job(
        target=model if isinstance(model, str) else None,
        memory=None if isinstance(model, str) else (model, inputs),
        dynamic={name: dict(dims) for name, dims in dynamic.items()} if dynamic is not None else None,
        ranges=dict(parse_range(f"{name}:{low},{high}") for name, (low, high) in (range or {}).items()),
        onnx=str(onnx) if onnx is not None else None,
        out=str(out),
        export=ExportOptions(opset, exporter, keep_metadata, not no_optimize, strict),
        verify=VerifySettings(
            session=SessionSettings(_providers(provider), _level(optimization), threads, tuple(disable)),
            batch_sizes=_sizes(batch_sizes),
            data=data,
            seed=seed,
            budget=_seconds(budget),
            nonfinite=nonfinite,
            roles=dict(role or {}),
            search=_seconds(search),
            memory=memory,
            counterexamples=str(Path(out) / "counterexamples"),
            limits=limits_of(policy),
        ),
        bench=BenchSettings() if bench is True else bench or None,
        evaluate=wanted,
        case_timeout=_seconds(case_timeout),
    )
    proof = conduct(job, policy, isolate=isolate, verify=verify_cases, progress=progress)
    if heal:
        from onnxproof.heal.healing import heal as try_to_heal

        proof = try_to_heal(job, proof, policy, isolate=isolate, progress=progress)
    return proof


def verify(model: Any, inputs: Any = None, *, onnx: str | Path, **options: Any) -> Proof:
    """Verify a file against the model: `prove` with a given artifact, parity only."""
    return prove(model, inputs, onnx=onnx, **{"evaluate": False, **options})


def evaluate(
    model: Any,
    inputs: Any = None,
    *,
    data: Any,
    onnx: str | Path | None = None,
    labels: str | None = None,
    ids: str | None = None,
    train_data: str | None = None,
    task: str | None = None,
    output: str | None = None,
    classes: str | Sequence[str] = (),
    positive: str | None = None,
    threshold: float | None = None,
    goal: str | Sequence[str] = (),
    cost: str | None = None,
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float] | None = None,
    delta: float = 0.01,
    metric: str | Sequence[str] = (),
    preprocess: str | None = None,
    serve_preprocess: str | None = None,
    with_preprocess: bool = False,
    batch_size: int | None = None,
    workers: int | None = None,
    ray: str | None = None,
    resume: bool = True,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    range: Mapping[str, tuple[float, float]] | None = None,
    opset: int | None = None,
    exporter: Exporter = "auto",
    provider: str | Sequence[str] = (),
    optimization: str = "all",
    threads: int | None = None,
    accept: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    seed: int = 0,
    out: str | Path = "onnxproof-out",
    isolate: bool = False,
    case_timeout: float | str = 300.0,
    progress: Progress | None = None,
) -> Proof:
    """Run a data set with labels through both sides, and judge what changed; the answer is in `proof.quality`.

    `data` is a file or `file.py:name` as on the command line, or the object itself: arrays, batches, a `DataLoader`.
    """
    policy = make_policy(accept=accept, min=min, max=max, max_drop=max_drop, base=policy)
    settings = EvaluateSettings(
        data="",
        labels=labels,
        ids=ids,
        train_data=train_data,
        task=task,
        output=output,
        classes=tuple(classes.split(",")) if isinstance(classes, str) else tuple(classes),
        positive=positive,
        threshold=threshold,
        goals=(goal,) if isinstance(goal, str) else tuple(goal),
        cost=cost,
        delta=delta,
        metrics=(metric,) if isinstance(metric, str) else tuple(metric),
        preprocess=preprocess,
        serve_preprocess=serve_preprocess,
        with_preprocess=with_preprocess,
        batch_size=batch_size,
        workers=workers,
        ray=ray,
        resume=resume,
        seed=seed,
    )
    job = Job(
        target=model if isinstance(model, str) else None,
        memory=None if isinstance(model, str) else (model, inputs),
        dynamic={name: dict(dims) for name, dims in dynamic.items()} if dynamic is not None else None,
        ranges=dict(parse_range(f"{name}:{low},{high}") for name, (low, high) in (range or {}).items()),
        onnx=str(onnx) if onnx is not None else None,
        out=str(out),
        export=ExportOptions(opset, exporter, False),
        verify=VerifySettings(session=SessionSettings(_providers(provider), _level(optimization), threads), seed=seed),
        case_timeout=_seconds(case_timeout),
    )
    from onnxproof.quality.sources import held

    with held(data) as source:
        job = replace(job, evaluate=replace(checked(settings), data=source))
        return conduct(job, policy, isolate=isolate, verify=False, progress=progress)


def locate(model: Any, inputs: Any = None, **options: Any) -> Mapping[str, Blame]:
    """Case → who is to blame (step, nodes, modules, lines) for the differences found; empty where nothing parts."""
    return prove(model, inputs, **options).blame


def bench(
    model: Any,
    inputs: Any = None,
    *,
    onnx: str | Path | None = None,
    batch_sizes: Sequence[int] | None = None,
    lengths: Mapping[str, Sequence[int]] | None = None,
    threads: int | None = None,
    also: Sequence[str] = (),
    against: str | Path | None = None,
    compile: bool = False,
    scenario: Scenario = "single",
    rate: float | None = None,
    concurrency: int = 1,
    min_time: float = 1.0,
    min_count: int = 64,
    budget: float = 600.0,
    max_latency: Mapping[str, float] | None = None,
    min_speedup: float | None = None,
    max_memory: int | None = None,
    tune: bool = False,
    baseline: str | Path | None = None,
    policy: Policy | None = None,
    **options: Any,
) -> Proof:
    """Time the model against its export (or `onnx`): `proof.latency` has the numbers, the findings what they mean.

    `max_latency` maps percentiles to milliseconds; `min_time` and `budget` are seconds. Other options are those of `prove`.
    """
    start = policy or Policy()
    limits = LatencyPolicy(
        max_latency=start.latency.max_latency if max_latency is None else dict(max_latency),
        min_speedup=start.latency.min_speedup if min_speedup is None else min_speedup,
        max_memory=start.latency.max_memory if max_memory is None else max_memory,
    )
    settings = BenchSettings(
        lengths={name: tuple(sizes) for name, sizes in (lengths or {}).items()},
        min_time=min_time,
        min_count=min_count,
        budget=budget,
        scenario=scenario,
        rate=rate,
        concurrency=concurrency,
        also=tuple(parse_variant(text) for text in also),
        against=str(against) if against is not None else None,
        compile=compile,
        tune=tune,
        baseline=str(baseline) if baseline is not None else None,
        percentiles=tuple(share_of(name) for name in limits.max_latency),
    )
    return prove(
        model,
        inputs,
        onnx=onnx,
        batch_sizes=batch_sizes,
        threads=threads,
        policy=replace(start, latency=limits),
        bench=settings,
        **{"verify_cases": False, **options},
    )


def export(
    model: Any,
    inputs: Any = None,
    *,
    out: str | Path = "onnxproof-out",
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    opset: int | None = None,
    exporter: Exporter = "auto",
    keep_metadata: bool = False,
    no_optimize: bool = False,
    strict: bool = False,
    isolate: bool = False,
    progress: Progress | None = None,
) -> Proof:
    """Export only: the proof has the artifact and what was found on the way, and no cases."""
    job = Job(
        target=model if isinstance(model, str) else None,
        memory=None if isinstance(model, str) else (model, inputs),
        dynamic={name: dict(dims) for name, dims in dynamic.items()} if dynamic is not None else None,
        out=str(out),
        export=ExportOptions(opset, exporter, keep_metadata, not no_optimize, strict),
    )
    return conduct(job, Policy(), isolate=isolate, verify=False, progress=progress)


def lint(
    file: str | Path,
    *,
    provider: str | Sequence[str] = (),
    runtime: str | None = None,
    accept: Mapping[str, str] | None = None,
    policy: Policy | None = None,
) -> Proof:
    """Look at an ONNX file without building a session: the proof has findings and no cases."""
    from onnxproof.artifact.file import describe
    from onnxproof.graph.view import Graph
    from onnxproof.lints.graph import lint_graph

    path = Path(file)
    policy = make_policy(accept=accept, base=policy)
    providers = [spec.name for spec in _providers(provider)]
    artifact, findings = None, []
    try:
        graph = Graph.read(path)
        artifact = describe(graph).to_json()
        findings = lint_graph(graph, providers, runtime)
    except FindingError as error:
        findings = [error.finding]
    return Proof(
        subject={"name": path.name, "target": str(path)},
        artifact=artifact,
        environment={"providers": providers, "runtime": runtime},
        cases=(),
        findings=tuple(judge(findings, (), policy)),
        policy=policy,
    )


def _seconds(value: float | str) -> float:
    """A number of seconds, or as on the command line: 30s, 2m."""
    return parse_seconds(value) if isinstance(value, str) else float(value)


def _sizes(value: str | Sequence[int] | None) -> tuple[int, ...] | None:
    if isinstance(value, str):
        return parse_sizes(value)
    return None if value is None else tuple(value)


def _providers(given: str | Sequence[str]) -> tuple[ProviderSpec, ...]:
    texts = [given] if isinstance(given, str) else list(given)
    return tuple(parse_provider(text) for text in texts) or (CPU,)


def _level(text: str) -> str:
    known = ("disable", "basic", "extended", "all")
    if text not in known:
        raise UserError(f"optimization {text!r}: expected one of {', '.join(known)}")
    return text
