"""The subject that a request speaks of, and what is told about it."""

from __future__ import annotations

import hashlib
import os
import platform
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import onnx
import torch

from onnxproof.candidates import INSTALLED, choose_candidate
from onnxproof.errors import TargetError
from onnxproof.graph.view import Graph, list_names, read_dims
from onnxproof.proof.environment import Environment
from onnxproof.proof.subject import SubjectFacts, TensorFacts
from onnxproof.request.request import Request
from onnxproof.subject.assembly import make_subject
from onnxproof.subject.onnx_module import GraphModule
from onnxproof.subject.subject import Subject
from onnxproof.subject.target import load_target, resolve
from onnxproof.version import __version__


def seed_everything() -> None:
    """The same random numbers in every child, so that a TARGET with random weights is the same model in each."""
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def fingerprint_weights(subject: Subject) -> str:
    """A hash of all weights: two children must have built the same module."""
    held = sorted(subject.module.state_dict().items())
    # Several at once: a large module has gigabytes of them, and hashing lets other threads run.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        digests = threads.map(_digest_state, (value for _, value in held))
        parts = [(name, digest) for (name, _), digest in zip(held, digests, strict=True)]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _digest_state(value: Any) -> str | None:
    """Of a tensor that is there; a module may keep other things, and weights that are still to come."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_meta:
        return None
    # As bytes, since numpy has no bfloat16; flat, since torch does not view a single number so.
    held = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return hashlib.blake2b(held.data, digest_size=16).hexdigest()


def load_subject(request: Request) -> Subject:
    """The subject that a request speaks of."""
    if request.held is not None:
        module, inputs = request.held
        name = type(module).__name__
    elif request.pickled is not None:
        # This run wrote the file itself; a whole module is more than weights.
        sys.path.insert(0, "")  # where the classes of the caller may lie
        module, inputs = torch.load(request.pickled, weights_only=False, map_location="cpu")
        name = type(module).__name__
    elif request.target is not None:
        value, name = load_target(request.target, trust=request.trust)
        module, inputs = resolve(value, name)
    else:
        raise TargetError("there is no TARGET")
    if request.original is not None and isinstance(module, GraphModule):
        module = GraphModule(module.path, request.original)
        module.open()
    if request.evaluate is not None and request.evaluate.with_preprocess:
        from onnxproof.quality.preprocessing_export import combine

        module, inputs = combine(module, request.evaluate)
    asked = _read_asked(request)
    return make_subject(
        module, inputs, name=name, specs=request.inputs, dynamic=request.dynamic, ranges=request.ranges, asked=asked
    )


def _read_asked(request: Request) -> dict[str, dict[int, str]]:
    """The inputs of the file that is given, and how it names their sizes; one that cannot be read is told where it is needed."""
    if request.onnx is None:
        return {}
    with suppress(Exception):
        inputs = Graph.read(Path(str(request.onnx))).inputs
        dims = [enumerate(read_dims(value) or ()) for value in inputs]
        named = [{dim: size for dim, size in some if isinstance(size, str)} for some in dims]
        return dict(zip(list_names(inputs), named, strict=True))
    return {}


def load_anew(request: Request) -> Subject:
    """The subject in a process of its own, with the random numbers that every such process has."""
    seed_everything()
    return load_subject(request)


def describe_subject(subject: Subject, request: Request) -> SubjectFacts:
    """The subject as plain data."""
    module = subject.module
    return SubjectFacts(
        name=subject.name,
        target=request.target,
        class_=f"{type(module).__module__}.{type(module).__qualname__}",
        parameters=sum(p.numel() for p in module.parameters()),
        inputs={
            n: TensorFacts(tuple(t.shape), str(t.dtype).removeprefix("torch."))
            for n, t in subject.inputs.tensors.items()
        },
        constants={name: repr(value) for name, value in subject.inputs.constants.items()},
        dynamic={name: {str(d): size for d, size in dims.items()} for name, dims in subject.dynamic.items()},
        weights=fingerprint_weights(subject),
        ranges={name: (r.low, r.high) for name, r in subject.ranges.items()},
        limits=dict(subject.limits),
    )


def describe_environment(request: Request) -> Environment:
    """What the answer depends on besides the model."""
    versions = choose_candidate(request.verify.session).versions()
    return Environment(
        onnxproof=__version__,
        python=platform.python_version(),
        torch=str(torch.__version__),
        onnx=onnx.__version__,
        onnxruntime=versions.get("onnxruntime"),
        runtime=versions.get("runtime"),
        original=None if request.original is None else request.original.runtime or INSTALLED,
        numpy=numpy.__version__,
        platform=platform.platform(),
        machine=platform.machine(),
        cpus=os.cpu_count(),
        torch_threads=torch.get_num_threads(),
    )


def check_weights(subject: Subject, request: Request, weights: str | None) -> None:
    """Raise where this process built another module than the one that was exported."""
    if weights is not None and fingerprint_weights(subject) != weights:
        raise TargetError(
            f"{request.target} builds a module with other weights each time it is called: load fixed weights, or seed the generator it uses"
        )
