"""Whether onnxproof exports as people do: the operators and weights of its files beside those of a plain `torch.onnx.export`; writes docs/plain.json.

    python -m benchmarks.plain [NAME …]

Every right model of the zoo is exported by onnxproof, and once more by a plain call with what the first export ended with: exporter, opset, optimiser
and dynamic dimensions. Order and names aside, both files must hold the same nodes with the same attributes, and the same weights.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import torch

from benchmarks.jury.trial import in_children, warm_up
from benchmarks.zoo import ZOO

PAGE = Path(__file__).parents[1] / "docs" / "plain.json"
Record = dict[str, Any]


def compare(name: str) -> Record:
    """What only one of the two files has."""
    import onnxproof

    entry = ZOO[name]
    options = {one: entry.options[one] for one in ("dynamic", "opset", "exporter") if one in entry.options}
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        module, inputs = entry.make()
        artifact = onnxproof.export(module, inputs, out=Path(folder), **options).artifact
        if artifact is None:
            return {"skipped": "onnxproof writes no file"}
        if artifact.strict:
            return {"skipped": "captured strictly, which a plain call does by itself"}
        ours = count_parts(Path(artifact.path))
        module, inputs = entry.make()
        plain = Path(folder) / "plain.onnx"
        try:
            export_plainly(module.eval(), inputs, artifact, plain)
        except Exception as error:
            return {"skipped": f"the plain call fails: {type(error).__name__}: {str(error).splitlines()[:1]}"[:300]}
        theirs = count_parts(plain)
    return {
        "exporter": artifact.exporter,
        "only_ours": _list_parts(ours - theirs),
        "only_plain": _list_parts(theirs - ours),
    }


def export_plainly(module: torch.nn.Module, inputs: Any, artifact: Any, file: Path) -> None:
    """As people call it, with the dimensions that are dynamic in the artifact."""
    args, kwargs = ((), dict(inputs)) if isinstance(inputs, dict) else (tuple(inputs), {})
    sizes = [
        {dim: size for dim, size in enumerate(port.shape or ()) if isinstance(size, str)} for port in artifact.inputs
    ]
    leaves = [one for one in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    if len(leaves) != len(sizes):
        raise ValueError(f"{len(leaves)} tensors for {len(sizes)} inputs of the file")
    if artifact.exporter == "torchscript":
        names = [port.name for port in artifact.inputs]
        axes = {name: dims for name, dims in zip(names, sizes, strict=True) if dims}
        torch.onnx.export(
            module,
            args,
            str(file),
            kwargs=kwargs or None,
            dynamo=False,
            input_names=names,
            dynamic_axes=axes,
            opset_version=artifact.opset,
        )
        return
    each = iter(sizes)
    spread = torch.utils._pytree.tree_map(
        lambda one: next(each) if isinstance(one, torch.Tensor) else None, (args, kwargs)
    )
    torch.onnx.export(
        module,
        args,
        str(file),
        kwargs=kwargs or None,
        dynamo=True,
        dynamic_shapes=spread[1] if kwargs else spread[0],
        opset_version=artifact.opset,
        optimize=artifact.optimized is not False,
        verbose=False,
    )


def count_parts(file: Path) -> Counter[str]:
    """Nodes with their attributes and weights with their numbers, wherever they stand."""
    model = onnx.load(file)
    graphs = [model.graph, *(graph for node in model.graph.node for graph in _list_subgraphs(node))]
    found = Counter(_sign_node(node) for graph in graphs for node in graph.node if node.op_type != "Constant")
    found.update(_sign_weight(onnx.numpy_helper.to_array(one)) for graph in graphs for one in graph.initializer)
    found.update(
        _sign_weight(onnx.numpy_helper.to_array(one.t))
        for graph in graphs
        for node in graph.node
        for one in node.attribute
        if node.op_type == "Constant" and one.type == one.TENSOR
    )
    return found


def _list_subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        for graph in [attribute.g] * (attribute.type == attribute.GRAPH) + list(attribute.graphs):
            yield graph
            for inner in graph.node:
                yield from _list_subgraphs(inner)


def _sign_node(node: onnx.NodeProto) -> str:
    plain = sorted(
        f"{one.name}={onnx.helper.get_attribute_value(one)}"
        for one in node.attribute
        if one.type not in (one.GRAPH, one.TENSOR)
    )
    return f"{node.domain}{node.op_type}({', '.join(plain)})"


def _sign_weight(array: Any) -> str:
    numbers = str(array.tolist()) if array.size <= 4 else f"{hash(array.tobytes()):x}"
    return f"{array.dtype}{list(array.shape)} {numbers}"


def _list_parts(parts: Counter[str]) -> list[str]:
    return [f"{number} × {part}"[:200] for part, number in sorted(parts.items())]


def render(folder: Path) -> list[str]:
    """The page's part."""
    file = folder / PAGE.name
    if not file.is_file():
        return []
    records: dict[str, Record] = json.loads(file.read_text(encoding="utf-8"))
    different = [name for name, one in records.items() if one.get("only_ours") or one.get("only_plain")]
    reasons = {name: str(one["skipped"]) for name, one in records.items() if "skipped" in one}
    cached = [name for name, why in reasons.items() if "inputs of the file" in why]
    refused = [name for name in reasons if name not in cached]
    told = f"different: {', '.join(different)}" if different else "none is different"
    same = len(records) - len(different) - len(reasons)
    return [
        "",
        "## Exported as people do",
        "",
        "Every right model, exported by onnxproof and by a plain `torch.onnx.export` call with the same exporter, opset and dynamic dimensions "
        f"(`python -m benchmarks.plain`): of {len(records)} pairs of files {same} hold the same nodes with the same attributes and the same weights, names and "
        f"order aside; {told}. Not compared: {len(cached)} whose caches a plain call does not take as tensors ({', '.join(cached)}), and {len(refused)} that the "
        f"plain call refuses ({', '.join(refused)}).",
        "",
    ]


def main() -> None:
    """Every model in a process of its own, forked from a warm one."""
    warm_up()
    names = sys.argv[1:] or list(ZOO)
    records = {}
    for name, record in in_children(names, compare, 2):
        records[name] = record
        if record.get("only_ours") or record.get("only_plain") or "only_ours" not in record:
            print(name, json.dumps(record)[:1500], flush=True)
    same = sum(record.get("only_ours") == [] == record.get("only_plain") for record in records.values())
    skipped = sum("skipped" in record for record in records.values())
    print(f"{same} of {len(records)} the same, {skipped} not compared")
    if not sys.argv[1:]:
        PAGE.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
