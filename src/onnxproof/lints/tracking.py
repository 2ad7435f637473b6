"""Which names of a function hold tensors that come from its inputs, and which hold their sizes. Modest: what is unclear is neither."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# `tensor`, `size` or `batch` (the size of dimension 0).
Kind = str

# Annotations of parameters that are no tensors.
PLAIN = frozenset({"int", "float", "bool", "str", "list", "dict", "tuple", "set", "List", "Dict", "Tuple", "Sequence"})
# What a tensor says about itself, and what is no tensor any more.
ABOUT = frozenset(
    {"shape", "size", "ndim", "dtype", "device", "layout", "requires_grad", "is_cuda", "names", "training"}
)
VALUES = frozenset({"dim", "numel", "nelement", "stride", "item", "tolist", "numpy", "type", "get_device", "data_ptr"})
CONTAINER = frozenset({"append", "extend", "insert", "pop", "items", "keys", "get", "update", "setdefault", "copy"})
BUILTINS = frozenset(
    "len int float bool str range list tuple dict set zip enumerate isinstance hasattr getattr print repr type".split()
)


@dataclass
class Names:
    """What is known about the names of a function."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    """Names that are used as tensors: a list of tensors has a length, too, and it is no size."""
    local: Mapping[str, ast.FunctionDef] = field(default_factory=dict)
    """Functions that are defined inside."""

    def tensor(self, node: ast.AST) -> bool:
        """Whether an expression is a tensor that is computed from an input."""
        match node:
            case ast.Name(id=name):
                return self.kinds.get(name) == "tensor"
            case ast.Call(func=ast.Attribute(attr=name, value=inner)):
                return name not in ABOUT | VALUES and any(map(self.tensor, [*list_arguments(node), inner]))
            case ast.Call(func=called):
                builtin = isinstance(called, ast.Name) and called.id in BUILTINS
                return not builtin and any(map(self.tensor, list_arguments(node)))
            case ast.Attribute(attr=name, value=inner):
                return name not in ABOUT and self.tensor(inner)
            case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.NamedExpr(value=inner):
                return self.tensor(inner)
            case ast.UnaryOp(op=op, operand=inner):
                return not isinstance(op, ast.Not) and self.tensor(inner)
            case ast.Compare(ops=ops):
                plain = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in ops)
                return not plain and any(map(self.tensor, [node.left, *node.comparators]))
            case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
                return self.tensor(one) or self.tensor(other)
        return False

    def size(self, node: ast.AST) -> bool:
        """Whether an expression is a size of such a tensor, several of them, or a number computed from one."""
        match node:
            case ast.Name(id=name):
                return self.kinds.get(name) in ("size", "batch")
            case ast.Attribute(attr="shape", value=tensor) | ast.Call(func=ast.Attribute(attr="size", value=tensor)):
                return self.tensor(tensor)
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self.size(inner)
            case ast.BinOp(left=left, right=right):
                return self.size(left) or self.size(right)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return any(map(self.size, parts))
            case ast.Call(func=ast.Name(id="int" | "float" | "min" | "max" | "round"), args=given):
                return any(map(self.size, given))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math")), args=given):
                return any(map(self.size, given))
        return False

    def batch(self, node: ast.AST) -> bool:
        """Whether an expression is the size of a tensor's dimension 0, or a number computed from it."""
        return self.size(node) and any(self._is_batch(part) for part in ast.walk(node))

    def _is_batch(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return self.kinds.get(name) == "batch"
            case ast.Subscript(slice=ast.Constant(value=0)) | ast.Call(args=[ast.Constant(value=0)]):
                return self.size(node)
        return False

    def kind(self, node: ast.AST) -> Kind | None:
        """What an expression is."""
        return "tensor" if self.tensor(node) else "batch" if self.batch(node) else "size" if self.size(node) else None


def list_arguments(call: ast.Call) -> list[ast.expr]:
    """Everything that is given to a call."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def list_parameters(function: Function) -> list[ast.arg]:
    """The parameters of a function without `self`, in order."""
    given = [*function.args.posonlyargs, *function.args.args]
    return [*(given[1:] if given and given[0].arg in ("self", "cls") else given), *function.args.kwonlyargs]


def list_inputs(function: Function) -> dict[str, Kind]:
    """The parameters of a forward that may be tensors: those that do not say that they are something else."""
    given = function.args
    late = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    constants = {p.arg: d.value for p, d in (*late, *named) if isinstance(d, ast.Constant)}
    unknown = [p.arg for p in list_parameters(function) if not _plain(p.annotation)]
    return {name: "tensor" for name in unknown if constants.get(name) is None}


def _plain(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        return _plain(annotation.value)
    if isinstance(annotation, ast.BinOp):
        return _plain(annotation.left) or _plain(annotation.right)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.split("[")[0] in PLAIN
    return read_name(annotation) in PLAIN


def read_name(node: ast.expr | None) -> str:
    """`name` of `name` and of `module.name`; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def track(function: Function, known: Mapping[str, Kind], tensors: Collection[str] = ()) -> Names:
    """What the names of a function hold, if its parameters hold what is known; `tensors` are so beyond doubt."""
    inside = {node.name: node for node in ast.walk(function) if isinstance(node, ast.FunctionDef) and node != function}
    names = Names(dict(known), frozenset([*_list_used_tensors(function), *tensors]), inside)
    for _ in range(2):  # a second time for what a loop carries around
        for node in ast.walk(function):
            for name, kind in _follow_assignment(node, names):
                names.kinds.setdefault(name, kind)
    return names


def _list_used_tensors(function: Function) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr not in CONTAINER:
            yield node.value.id
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        if not any(isinstance(side, (ast.List, ast.Tuple)) for side in sides):
            yield from (side.id for side in sides if isinstance(side, ast.Name))


def _follow_assignment(node: ast.AST, names: Names) -> Iterator[tuple[str, Kind]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _follow_binding(target, node.value, names)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _follow_binding(node.target, node.value, names)
    elif isinstance(node, ast.For) and names.tensor(node.iter):
        yield from ((part.id, "tensor") for part in ast.walk(node.target) if isinstance(part, ast.Name))
    elif isinstance(node, ast.Call):
        yield from _follow_call(node, names)


def _follow_binding(target: ast.expr, value: ast.expr, names: Names) -> Iterator[tuple[str, Kind]]:
    if isinstance(target, ast.Name):
        kind = names.kind(value)
        if kind is not None:
            yield target.id, kind
    elif not isinstance(target, (ast.Tuple, ast.List)):
        return
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _follow_binding(one, other, names)
    else:
        sizes = isinstance(value, (ast.Attribute, ast.Call)) and names.size(value)  # `x.shape` or `x.size()`
        for place, part in enumerate(target.elts) if sizes or names.tensor(value) else ():
            if isinstance(part, ast.Name):
                yield part.id, "tensor" if names.tensor(value) else "size" if place else "batch"


def _follow_call(call: ast.Call, names: Names) -> Iterator[tuple[str, Kind]]:
    """Parameters of functions inside that are called with a tensor, or handed over with one: `torch.cond(p, lambda t: …, …, (x,))`."""
    if isinstance(call.func, ast.Name) and call.func.id in names.local:
        yield from hand_over(call, names.local[call.func.id], names).items()
    mentioned = {part.id for given in list_arguments(call) for part in ast.walk(given) if isinstance(part, ast.Name)}
    if any(names.kinds.get(name) == "tensor" for name in mentioned):
        for given in list_arguments(call):
            if isinstance(given, ast.Lambda):
                yield from ((parameter.arg, "tensor") for parameter in list_parameters(given))


def hand_over(call: ast.Call, function: Function, names: Names) -> dict[str, Kind]:
    """What the parameters of a called function hold."""
    wanted = list_parameters(function)
    given = dict(zip((parameter.arg for parameter in wanted), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    kinds = {name: names.kind(value) for name, value in given.items() if not isinstance(value, ast.Starred)}
    plain = {parameter.arg for parameter in wanted if _plain(parameter.annotation)}
    return {name: kind for name, kind in kinds.items() if kind is not None and (kind != "tensor" or name not in plain)}
