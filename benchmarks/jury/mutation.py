"""Small wrong changes of a right file: each is one that an exporter, a rewrite or a hurried hand could make."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper


@dataclass(frozen=True)
class Mutant:
    """A changed file, what was changed, and the nodes whose meaning it changed."""

    model: onnx.ModelProto
    kind: str
    what: str
    culprits: tuple[str, ...]


class Place:
    """A node of a model that may be changed."""

    def __init__(self, model: onnx.ModelProto, number: int, chance: random.Random) -> None:
        self.model, self.node, self.chance = model, model.graph.node[number], chance

    def read(self, at: int) -> np.ndarray | None:
        """The constant that is this input, if it is one."""
        if at >= len(self.node.input):
            return None
        name = self.node.input[at]
        for tensor in self.model.graph.initializer:
            if tensor.name == name:
                return numpy_helper.to_array(tensor)
        for node in self.model.graph.node:
            if node.op_type == "Constant" and node.output[0] == name and node.attribute[0].name == "value":
                return numpy_helper.to_array(node.attribute[0].t)
        return None

    def write(self, at: int, array: np.ndarray) -> None:
        """Another constant, for this node only."""
        name = f"{self.node.name}_changed_{at}"
        self.model.graph.initializer.append(numpy_helper.from_array(np.array(array, order="C"), name))
        self.node.input[at] = name

    def find(self, name: str) -> onnx.AttributeProto | None:
        return next((a for a in self.node.attribute if a.name == name), None)

    def put(self, name: str, value: object) -> None:
        """An attribute, whether there was one or not."""
        old = self.find(name)
        if old is not None:
            self.node.attribute.remove(old)
        self.node.attribute.append(onnx.helper.make_attribute(name, value))

    def count(self, name: str, default: int = 0) -> int:
        found = self.find(name)
        return int(found.i) if found is not None else default


Change = Callable[[Place], str | None]
"""Changes the node and says how, or leaves it and says None."""
CHANGES: dict[str, Change] = {}


def change(function: Change) -> Change:
    CHANGES[function.__name__] = function
    return function


RELATIVES = {
    "Relu": ("LeakyRelu", "Elu", "Softplus"),
    "LeakyRelu": ("Relu",),
    "Elu": ("Celu", "Selu", "Relu"),
    "Celu": ("Elu",),
    "Selu": ("Elu",),
    "Sigmoid": ("HardSigmoid",),
    "HardSigmoid": ("Sigmoid",),
    "HardSwish": ("Mish",),
    "Mish": ("HardSwish",),
    "Softplus": ("Relu",),
    "Tanh": ("Erf", "Softsign"),
    "Erf": ("Tanh",),
    "Softsign": ("Tanh",),
    "Less": ("LessOrEqual",),
    "LessOrEqual": ("Less",),
    "Greater": ("GreaterOrEqual",),
    "GreaterOrEqual": ("Greater",),
    "And": ("Or", "Xor"),
    "Or": ("Xor", "And"),
    "Xor": ("Or",),
    "Max": ("Min",),
    "Min": ("Max",),
    "Floor": ("Round", "Ceil"),
    "Ceil": ("Floor", "Round"),
    "Round": ("Floor", "Ceil"),
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mul": ("Div",),
    "Div": ("Mul",),
    "Sin": ("Cos",),
    "Sinh": ("Tanh",),
    "Asinh": ("Atan",),
    "Atan": ("Asinh",),
    "Softmax": ("LogSoftmax",),
    "LogSoftmax": ("Softmax",),
    "ReduceMean": ("ReduceSum", "ReduceMax"),
    "ReduceSum": ("ReduceMean", "ReduceL1"),
    "ReduceMax": ("ReduceMin", "ReduceMean"),
    "ReduceMin": ("ReduceMax",),
    "ReduceL2": ("ReduceL1",),
    "ReduceL1": ("ReduceL2", "ReduceSum"),
    "ReduceLogSumExp": ("ReduceMax",),
    "ArgMax": ("ArgMin",),
    "ArgMin": ("ArgMax",),
    "Abs": ("Relu",),
    "BitwiseAnd": ("BitwiseOr",),
    "GlobalAveragePool": ("GlobalMaxPool",),
}
ORDERED = ("Sub", "Div", "Pow", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Mod", "MatMul")


@change
def relative(place: Place) -> str | None:
    kin = RELATIVES.get(place.node.op_type)
    if kin is None:
        return None
    before, place.node.op_type = place.node.op_type, place.chance.choice(kin)
    return f"{before} as {place.node.op_type}"


@change
def exchanged(place: Place) -> str | None:
    """Two inputs of an operator that does not commute."""
    first = {"Where": 1}.get(place.node.op_type, 0 if place.node.op_type in ORDERED else -1)
    taken = place.node.input
    if first < 0 or len(taken) <= first + 1 or taken[first] == taken[first + 1]:
        return None
    taken[first], taken[first + 1] = taken[first + 1], taken[first]
    return f"{place.node.op_type} with inputs exchanged"


@change
def epsilon(place: Place) -> str | None:
    found = place.find("epsilon")
    if found is None:
        return None
    found.f = place.chance.choice((0.1, 10.0, 100.0)) * found.f
    return f"{place.node.op_type} with epsilon {found.f:g}"


@change
def gelu(place: Place) -> str | None:
    if place.node.op_type != "Gelu":
        return None
    found = place.find("approximate")
    other = "none" if found is not None and found.s == b"tanh" else "tanh"
    place.put("approximate", other)
    return f"Gelu approximated: {other}"


WORDS = {
    "coordinate_transformation_mode": ("align_corners", "half_pixel", "pytorch_half_pixel", "asymmetric"),
    "nearest_mode": ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
    "padding_mode": ("zeros", "border", "reflection"),
    "mode": (),
    "direction": ("forward", "reverse"),
}
MODES = {"Resize": ("nearest", "linear", "cubic"), "Pad": ("constant", "reflect", "edge", "wrap"), "GridSample": ()}


@change
def word(place: Place) -> str | None:
    """Another of the words that an attribute may be."""
    fitting = [a for a in place.node.attribute if a.name in WORDS and a.s != b"bidirectional"]
    if not fitting:
        return None
    found = place.chance.choice(fitting)
    words = MODES.get(place.node.op_type, ()) if found.name == "mode" else WORDS[found.name]
    others = [w for w in words if w.encode() != found.s]
    if not others:
        return None
    found.s = place.chance.choice(others).encode()
    return f"{place.node.op_type} with {found.name} {found.s.decode()}"


FLAGS = {
    "MaxPool": ("ceil_mode",),
    "AveragePool": ("ceil_mode", "count_include_pad"),
    "LpPool": ("ceil_mode",),
    "GridSample": ("align_corners",),
    "CumSum": ("exclusive", "reverse"),
    "Mod": ("fmod",),
    "GRU": ("linear_before_reset",),
    "ArgMax": ("select_last_index",),
    "ArgMin": ("select_last_index",),
    "Trilu": ("upper",),
}
SET = {("Trilu", "upper"): 1}


@change
def flag(place: Place) -> str | None:
    names = FLAGS.get(place.node.op_type)
    if names is None:
        return None
    name = place.chance.choice(names)
    value = 1 - place.count(name, SET.get((place.node.op_type, name), 0))
    place.put(name, value)
    return f"{place.node.op_type} with {name} {value}"


@change
def largest(place: Place) -> str | None:
    if place.node.op_type != "TopK":
        return None
    value = 1 - place.count("largest", 1)
    place.put("largest", value)
    return f"TopK with largest {value}"


@change
def axis(place: Place) -> str | None:
    """Off by one."""
    found = place.find("axis")
    if found is not None:
        found.i += place.chance.choice((-1, 1))
        return f"{place.node.op_type} along {found.i}"
    axes = place.read(1) if place.node.op_type.startswith("Reduce") or place.node.op_type == "CumSum" else None
    if axes is None or not axes.size:
        return None
    place.write(1, axes + place.chance.choice((-1, 1)))
    return f"{place.node.op_type} over axes off by one"


@change
def scalar(place: Place) -> str | None:
    """A number beside a value: a scale, a limit, an epsilon, a divisor."""
    if place.node.op_type not in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Clip", "Where", "Mod"):
        return None
    fitting = [(i, a) for i in range(len(place.node.input)) if (a := place.read(i)) is not None and a.size == 1]
    if not fitting:
        return None
    at, array = place.chance.choice(fitting)
    if array.dtype.kind == "f":
        ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "in float16": lambda a: a.astype(np.float16),
            "a hundredth more": lambda a: a * 1.01,
            "a tenth of it": lambda a: a * 0.1,
            "one more": lambda a: a + 1,
            "its negative": lambda a: -a,
            "as an integer": np.trunc,
        }
        how = place.chance.choice(list(ways))
        changed = ways[how](array).astype(array.dtype)
    elif array.dtype.kind == "i":
        how = place.chance.choice(("one more", "one less"))
        changed = array + (1 if how == "one more" else -1)
    else:
        return None
    if np.array_equal(changed, array):
        return None
    place.write(at, changed)
    return f"{place.node.op_type}: {array.reshape(()).item():g}, {how}"


@change
def limit(place: Place) -> str | None:
    """A clamp without one of its limits."""
    given = [i for i in (1, 2) if i < len(place.node.input) and place.node.input[i]]
    if place.node.op_type != "Clip" or not given:
        return None
    at = place.chance.choice(given)
    place.node.input[at] = ""
    return f"Clip without its {'least' if at == 1 else 'most'}"


@change
def mask(place: Place) -> str | None:
    """A large number where a mask had minus infinity."""
    for at in range(len(place.node.input)):
        array = place.read(at)
        if array is not None and array.dtype == np.float32 and np.isneginf(array).any():
            weak = place.chance.choice((-1e4, -10.0))
            place.write(at, np.where(np.isneginf(array), np.float32(weak), array))
            return f"{place.node.op_type}: {weak:g} for −inf"
    return None


@change
def window(place: Place) -> str | None:
    """Slices, pads and shifts that move by one and keep the shape."""
    kind = place.node.op_type
    if kind == "Slice":
        starts, ends = place.read(1), place.read(2)
        if starts is None or ends is None or not starts.size:
            return None
        step = place.chance.choice((-1, 1))
        if int(starts.ravel()[0]) + step < 0 <= int(starts.ravel()[0]):
            step = 1
        far = ends > 1 << 40
        place.write(1, starts + step)
        place.write(2, np.where(far, ends, ends + step))
        return f"Slice moved by {step}"
    pads = place.find("pads")
    if pads is not None and len(pads.ints) >= 2 and any(pads.ints):
        half = len(pads.ints) // 2
        at = place.chance.randrange(half)
        step = 1 if pads.ints[at + half] else -1
        if pads.ints[at] + step < 0:
            return None
        pads.ints[at] += step
        pads.ints[at + half] -= step
        return f"{kind} with pads {list(pads.ints)}"
    return None


@change
def spread(place: Place) -> str | None:
    """Dilation, stride or group of a window changed: shapes often tell."""
    found = place.find(place.chance.choice(("dilations", "strides")))
    if found is None or not found.ints:
        return None
    at = place.chance.randrange(len(found.ints))
    found.ints[at] = 1 if found.ints[at] > 1 else 2
    return f"{place.node.op_type} with {found.name} {list(found.ints)}"


@change
def number(place: Place) -> str | None:
    """A float that an operator has: a slope, a factor."""
    fitting = [a for a in place.node.attribute if a.type == a.FLOAT and a.name != "epsilon" and a.f]
    if not fitting:
        return None
    found = place.chance.choice(fitting)
    found.f = found.f * place.chance.choice((1.01, 0.5, -1.0))
    return f"{place.node.op_type} with {found.name} {found.f:g}"


@change
def order(place: Place) -> str | None:
    """Two axes of a permutation exchanged."""
    found = place.find("perm")
    if found is None or len(found.ints) < 2:
        return None
    at = place.chance.randrange(len(found.ints) - 1)
    found.ints[at], found.ints[at + 1] = found.ints[at + 1], found.ints[at]
    return f"Transpose by {list(found.ints)}"


@change
def flipped(place: Place) -> str | None:
    """A matrix product with the wrong side transposed, or letters of an Einsum exchanged."""
    if place.node.op_type == "Gemm":
        name = place.chance.choice(("transA", "transB"))
        place.put(name, 1 - place.count(name))
        return f"Gemm with {name} changed"
    found = place.find("equation")
    if found is None:
        return None
    left, right = found.s.decode().split("->")
    if len(right) < 2:
        return None
    place.put("equation", f"{left}->{right[:-2]}{right[-1]}{right[-2]}")
    return f"Einsum by {left}->{right[:-2]}{right[-1]}{right[-2]}"


@change
def weight(place: Place) -> str | None:
    """A tensor of weights that is not quite the module's."""
    fitting = [
        (i, a)
        for i in range(len(place.node.input))
        if (a := place.read(i)) is not None and a.size > 1 and a.dtype == np.float32
    ]
    if not fitting:
        return None
    at, array = place.chance.choice(fitting)
    changed = array.copy()
    one = place.chance.randrange(array.size)
    how = place.chance.choice(("in float16", "one number 1 % off", "one sign", "rows turned", "transposed", "one lost"))
    match how:
        case "in float16":
            changed = array.astype(np.float16).astype(np.float32)
        case "one number 1 % off":
            changed.flat[one] *= np.float32(1.01)
        case "one sign":
            changed.flat[one] *= -1
        case "one lost":
            changed.flat[one] = 0
        case "rows turned":
            changed = array[::-1]
        case "transposed" if array.ndim > 1 and array.shape[-1] == array.shape[-2]:
            changed = np.swapaxes(array, -1, -2)
    if np.array_equal(changed, array, equal_nan=True):
        return None
    place.write(at, changed)
    return f"{place.node.op_type}: weight {how}"


@change
def index(place: Place) -> str | None:
    """Integers that choose or place: off by one."""
    at = {"Gather": 1, "GatherElements": 1, "GatherND": 1, "ScatterND": 1, "ScatterElements": 1}.get(place.node.op_type)
    array = place.read(at) if at is not None else None
    if at is None or array is None or not array.size:
        return None
    place.write(at, np.maximum(array + place.chance.choice((-1, 1)), -1))
    return f"{place.node.op_type} at another index"


@change
def scattered(place: Place) -> str | None:
    if not place.node.op_type.startswith("Scatter"):
        return None
    found = place.find("reduction")
    now = found.s.decode() if found is not None else "none"
    other = place.chance.choice([word for word in ("none", "add", "mul", "max", "min") if word != now])
    place.put("reduction", other)
    return f"{place.node.op_type} with reduction {other}"


@change
def skipped(place: Place) -> str | None:
    """A node that does nothing any more."""
    if place.node.op_type in ("Constant", "Identity", "Shape", "Cast") or len(place.node.output) != 1:
        return None
    before, place.node.op_type = place.node.op_type, "Identity"
    if not place.node.input:
        return None
    del place.node.attribute[:]
    del place.node.input[1:]
    return f"no {before}"


@change
def rounded(place: Place) -> str | None:
    """A cast that cuts off where the graph rounded, or a detour through float16."""
    if place.node.op_type not in ("Cast", "Mul", "Add", "MatMul", "Conv", "Gemm", "Softmax"):
        return None
    model, name = place.model, place.node.input[0]
    if place.node.op_type == "Cast":
        if place.count("to") != onnx.TensorProto.INT64:
            return None
        for maker in model.graph.node:
            if name in maker.output and maker.op_type in ("Round", "Floor", "Ceil"):
                place.node.input[0] = maker.input[0]
                return f"Cast without {maker.op_type}"
        return None
    spot = next(i for i, node in enumerate(model.graph.node) if node.output[0] == place.node.output[0])
    inner = f"{place.node.name}_narrow"
    for kind, took, gave in ((onnx.TensorProto.FLOAT, inner, f"{inner}_wide"), (onnx.TensorProto.FLOAT16, name, inner)):
        made = onnx.helper.make_node("Cast", [took], [gave], f"{gave}_cast", to=kind)
        model.graph.node.insert(spot, made)
    place.node.input[0] = f"{inner}_wide"
    return f"{place.node.op_type}: its input through float16"


@change
def wiring(place: Place) -> str | None:
    """Another value of the same type, one that is computed before."""
    infos = {i.name: i.type.tensor_type for i in (*place.model.graph.value_info, *place.model.graph.input)}
    shapes = {name: (t.elem_type, str(t.shape)) for name, t in infos.items()}
    known = {i.name for i in place.model.graph.input}
    for node in place.model.graph.node:
        if node is place.node or node.output[0] == place.node.output[0]:
            break
        known.update(node.output)
    for at in place.chance.sample(range(len(place.node.input)), len(place.node.input)):
        name = place.node.input[at]
        fellows = [o for o in sorted(known) if o != name and name in shapes and shapes.get(o) == shapes[name]]
        if fellows:
            place.node.input[at] = place.chance.choice(fellows)
            return f"{place.node.op_type} takes {place.node.input[at]} for {name}"
    return None


def mutate(model: onnx.ModelProto, chance: random.Random) -> Iterator[Mutant]:
    """Mutants without end, kinds of changes before places: what is rare in graphs is not rare here."""
    model = onnx.shape_inference.infer_shapes(model)
    while True:
        kind = chance.choice(list(CHANGES))
        numbers = chance.sample(range(len(model.graph.node)), len(model.graph.node))
        for number in numbers:
            changed = copy.deepcopy(model)
            place = Place(changed, number, chance)
            if any(a.type == a.GRAPH for a in place.node.attribute):
                continue
            node = place.node.name
            what = CHANGES[kind](place)
            if what is not None:
                del changed.graph.value_info[:]
                added = {n.name for n in changed.graph.node} - {n.name for n in model.graph.node}
                yield Mutant(changed, kind, what, (node, *sorted(added)))
                break
