"""The user's source: places where a size or a value becomes a Python number, and preprocessing beside the module."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxproof.lints.calls import Source, find_called, is_own, read
from onnxproof.lints.tracking import Kind, Names, hand_over, list_inputs, read_name, track

PREPROCESSING = re.compile(
    r"(^|_)(pre_?process(ing|or)?|transforms?|normali[sz]e|standardi[sz]e|tokeni[sz]e(r)?|featuri[sz]e)(_|$)", re.I
)
# Followed from one forward at most.
FUNCTIONS = 50
REDUCTIONS = frozenset({"any", "all", "sum", "max", "min", "mean", "amax", "amin", "norm", "equal", "allclose"})
# In a condition they say that the branch is not for the export.
NOT_CAPTURED = frozenset(
    {"is_tracing", "is_exporting", "is_scripting", "is_compiling", "is_in_onnx_export", "training"}
)
# Functions whose result for a size is a size again.
WHOLE = frozenset({"prod", "floor", "ceil", "trunc", "gcd", "arange", "zeros", "ones"})
RESHAPES = frozenset({"view", "reshape"})
PIPELINES = frozenset("Compose Normalize StandardScaler MinMaxScaler RobustScaler Pipeline make_pipeline".split())


@dataclass(frozen=True)
class Spot:
    """A line of the user's, and what is remarkable about it."""

    file: str
    line: int
    text: str
    what: str


def find_fixed_spots(forward: object, owner: object, batch: int | None, tensors: Collection[str] = ()) -> list[Spot]:
    """Lines of a forward, and of the user's functions that it calls, that turn a tensor's size or value into a Python number.

    `tensors`: parameters that are known to be tensors; others may be lists of them.
    """
    source = read(forward)
    if source is None:
        return []
    found: list[Spot] = []
    seen: set[object] = set()
    waiting: list[tuple[Source, Mapping[str, Kind]]] = [(source, list_inputs(source.tree))]
    while waiting and len(seen) < FUNCTIONS:
        source, known = waiting.pop(0)
        if source.function.__code__ in seen:
            continue
        names = track(source.tree, known, () if seen else tensors)
        seen.add(source.function.__code__)
        found += _collect_spots(source, names, batch)
        calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
        targets = [(call, read(find_called(call, source, owner))) for call in calls]
        waiting += [(one, hand_over(call, one.tree, names)) for call, one in targets if one is not None and is_own(one)]
    return found


def _walk_captured(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those of branches that are not taken while a model is captured in eval mode."""
    yield tree
    skipped: Sequence[ast.AST] = ()
    if isinstance(tree, ast.If):
        negated = isinstance(tree.test, ast.UnaryOp) and isinstance(tree.test.op, ast.Not)
        said = {part.attr for part in ast.walk(tree.test) if isinstance(part, ast.Attribute)} & NOT_CAPTURED
        if said:  # `if self.training:` is not, and neither is `if not is_exporting():`
            skipped = tree.body if ("training" in said) != negated else tree.orelse
    for child in ast.iter_child_nodes(tree):
        if child not in skipped:
            yield from _walk_captured(child)


def _collect_spots(source: Source, names: Names, batch: int | None) -> list[Spot]:
    lines: dict[int, str] = {}
    for node in _walk_captured(source.tree):
        what = _tell_node(node, names, batch)
        if what and node.lineno <= len(source.lines):  # type: ignore[attr-defined]  # calls and branches have a line
            lines.setdefault(node.lineno, what)  # type: ignore[attr-defined]  # as above
    return [
        Spot(source.file, source.first + line - 1, source.lines[line - 1].strip(), what)
        for line, what in sorted(lines.items())
    ]


def _tell_node(node: ast.AST, names: Names, batch: int | None) -> str | None:
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return _tell_decision(node, names)
    if not isinstance(node, ast.Call):
        return None
    return _tell_method(node, names, batch) if isinstance(node.func, ast.Attribute) else _tell_builtin(node, names)


def _tell_decision(node: ast.If | ast.While | ast.IfExp, names: Names) -> str | None:
    """A branch on what a tensor holds, unless it is never taken while a model is captured in eval mode."""
    if any(isinstance(part, ast.Attribute) and part.attr in NOT_CAPTURED for part in ast.walk(node.test)):
        return None
    for side in _split_condition(node.test):
        functions = [part.func for part in ast.walk(side) if isinstance(part, ast.Call)]
        # Of `x.sum()` and of `torch.sum(x)`.
        reductions = [func.attr for func in functions if isinstance(func, ast.Attribute) and func.attr in REDUCTIONS]
        if reductions and names.tensor(side):
            word = "while" if isinstance(node, ast.While) else "if"
            return f"`{word}` decides on a tensor's value (.{reductions[0]}())"
    return None


def _split_condition(test: ast.expr) -> list[ast.expr]:
    """What a condition compares or combines."""
    match test:
        case ast.BoolOp(values=parts) | ast.Call(func=ast.Name(id="bool"), args=parts):
            return [side for part in parts for side in _split_condition(part)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _split_condition(operand)
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
    return [test]


def _tell_method(call: ast.Call, names: Names, batch: int | None) -> str | None:
    assert isinstance(call.func, ast.Attribute)  # the caller looked
    name = call.func.attr
    if name in ("item", "tolist") and not call.args:
        return f".{name}() makes a Python number of a tensor's value"
    library = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
    if library in ("math", "np", "numpy") and name not in WHOLE and any(map(names.batch, call.args)):
        return f"{library}.{name}() makes a Python number of a size"
    if name == "numpy" and not call.args and names.tensor(call.func.value):
        return ".numpy() takes a tensor out of the graph"
    if name in ("tensor", "as_tensor") and call.args and names.size(call.args[0]):
        return f"torch.{name}() makes a constant of a size"
    if name in RESHAPES and batch is not None and batch > 1 and call.args:
        given = call.args[0]
        first = given.elts[0] if isinstance(given, (ast.Tuple, ast.List)) and given.elts else given
        if isinstance(first, ast.Constant) and first.value == batch:
            return f".{name}({batch}, …) writes the example's batch size into the graph"
    return None


def _tell_builtin(call: ast.Call, names: Names) -> str | None:
    match call:
        case ast.Call(func=ast.Name(id="range"), args=given) if any(map(names.batch, given)):
            return "range() writes a loop out for the example's batch size"
        case ast.Call(func=ast.Name(id="int" | "float" | "bool" as name), args=[given]) if names.size(given):
            return f"{name}() makes a Python number of a size"
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name) as given]) if name in names.used:
            return "len() makes a Python number of a size" if names.tensor(given) else None
    return None


def find_preprocessing_spots(file: Path, kinds: Collection[str]) -> list[Spot]:
    """Functions and pipelines of a file that prepare inputs outside any module, and methods of these classes beside their forward."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []
    lines = text.splitlines()
    return [
        Spot(str(file), node.lineno, lines[node.lineno - 1].strip(), what)
        for node in [*tree.body, *_find_uncalled(tree, kinds)]
        for what in _tell_preparing(node)
    ]


def _find_uncalled(tree: ast.Module, kinds: Collection[str]) -> list[ast.FunctionDef]:
    """Methods of modules that nothing in their class calls."""
    found: list[ast.FunctionDef] = []
    for module in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in kinds):
        methods = [node for node in module.body if isinstance(node, ast.FunctionDef)]
        called = {part.attr for part in ast.walk(module) if isinstance(part, ast.Attribute)}
        if any(method.name == "forward" for method in methods):
            found += [method for method in methods if method.name not in called]
    return found


def _tell_preparing(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) if PREPROCESSING.search(name):
            return [f"{name}() prepares inputs outside the module"]
        case ast.Assign(value=ast.Call(func=called)) if (name := read_name(called)) in PIPELINES:
            return [f"{name} prepares inputs outside the module"]
    return []
