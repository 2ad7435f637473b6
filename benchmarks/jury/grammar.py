"""The operators of random models: each proposes an expression over values that fit it, or nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Sizes = tuple[tuple[int, ...], ...]
"""A value's shape at each size of the example: a place where they differ is a free size."""


@dataclass(frozen=True)
class Value:
    """What is known of a value while the model is built."""

    name: str
    kind: str
    """`f` float32, `d` float64, `i` int64, `b` bool."""
    shapes: Sizes

    @property
    def shape(self) -> tuple[int, ...]:
        """At the first size."""
        return self.shapes[0]

    @property
    def rank(self) -> int:
        return len(self.shapes[0])

    def fixed(self, axis: int) -> bool:
        """Whether this size is the same at each size of the example."""
        return len({shape[axis] for shape in self.shapes}) == 1


@dataclass(frozen=True)
class Idea:
    """An expression that may become a statement."""

    expression: str
    members: tuple[str, ...] = ()
    results: int = 1


class Pool:
    """The values so far, and chance."""

    def __init__(self, values: Sequence[Value], chance: random.Random, number: int) -> None:
        self.values, self.chance, self.number = list(values), chance, number

    def pick(self, kind: str = "f", fits: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value; recent ones are likelier. `LookupError` where none fits."""
        found = [value for value in self.values if value.kind in kind and fits(value)]
        if not found:
            raise LookupError
        return self.chance.choices(found, [1.0 + place**2 for place in range(len(found))])[0]

    def ranked(self, *ranks: int, kind: str = "f") -> Value:
        return self.pick(kind, lambda value: value.rank in ranks)

    def some(self, kind: str = "f", least: int = 1) -> Value:
        """With at least so many axes."""
        return self.pick(kind, lambda value: value.rank >= least)

    def fellow(self, value: Value, kind: str = "f") -> Value:
        """Of the same shape, another one where there is one."""
        others = [v for v in self.values if v.kind in kind and v.shapes == value.shapes and v.name != value.name]
        return self.chance.choice(others) if others else self.pick(kind, lambda v: v.shapes == value.shapes)

    def broadcast(self, value: Value, kind: str = "f") -> Value:
        """One that broadcasts against it."""

        def fits(other: Value) -> bool:
            for mine, theirs in zip(value.shapes, other.shapes, strict=True):
                if any(a != b and 1 not in (a, b) for a, b in zip(mine[::-1], theirs[::-1], strict=False)):
                    return False
            # Two sizes that agree by chance at the example are not the same size.
            pairs = zip(
                zip(*[s[::-1] for s in value.shapes], strict=True),
                zip(*[s[::-1] for s in other.shapes], strict=True),
                strict=False,
            )
            return all(a == b or set(a) == {1} or set(b) == {1} for a, b in pairs)

        return self.pick(kind, fits)

    def axis(self, value: Value, fixed: bool | None = None) -> int:
        """An axis of it, as a positive or negative number."""
        axes = [a for a in range(value.rank) if fixed is None or value.fixed(a) == fixed]
        if not axes:
            raise LookupError
        chosen = self.chance.choice(axes)
        return chosen - value.rank if self.chance.random() < 0.5 else chosen

    def number_of(self, low: float, high: float) -> str:
        return repr(round(self.chance.uniform(low, high), self.chance.choice((1, 2, 3))))

    def coin(self, share: float = 0.5) -> bool:
        return self.chance.random() < share

    def one(self, *choices: object) -> str:
        return str(self.chance.choice(choices))

    def member(self, made: str) -> tuple[str, str]:
        """A member of the module: its line and its name in expressions."""
        return f"self.m{self.number} = {made}", f"self.m{self.number}"

    def buffer(self, made: str) -> tuple[str, str]:
        return f'self.register_buffer("m{self.number}", {made})', f"self.m{self.number}"

    def parameter(self, shape: tuple[int, ...]) -> tuple[str, str]:
        return self.member(f"nn.Parameter(torch.randn({shape}) * 0.5)")


Rule = Callable[[Pool], Idea]
RULES: dict[str, tuple[float, Rule]] = {}
"""Name → how often, and what it proposes."""


def rule(weight: float = 1.0) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        RULES[function.__name__] = (weight, function)
        return function

    return add


UNARY = (
    "torch.relu({x})",
    "F.gelu({x})",
    'F.gelu({x}, approximate="tanh")',
    "F.silu({x})",
    "torch.sigmoid({x})",
    "torch.tanh({x})",
    "F.elu({x}, {a})",
    "F.selu({x})",
    "F.celu({x}, {a})",
    "F.leaky_relu({x}, 0.2)",
    "F.softplus({x})",
    "F.softplus({x}, beta={a}, threshold=10.0)",
    "F.hardtanh({x}, -{a}, {a})",
    "F.hardswish({x})",
    "F.hardsigmoid({x})",
    "F.relu6({x})",
    "F.mish({x})",
    "F.softsign({x})",
    "F.logsigmoid({x})",
    "F.tanhshrink({x})",
    "F.softshrink({x}, 0.4)",
    "F.hardshrink({x}, 0.4)",
    "F.threshold({x}, 0.1, {a})",
    "torch.exp(-{x}.abs())",
    "torch.log({x}.abs() + {a})",
    "torch.log1p({x}.abs())",
    "torch.expm1({x}.clamp(max=2.0))",
    "torch.exp2({x}.clamp(-4.0, 4.0))",
    "torch.log2({x} * {x} + {a})",
    "torch.log10({x}.abs() + 1.0)",
    "torch.sqrt({x}.abs() + {a})",
    "torch.rsqrt({x} * {x} + {a})",
    "{x}.abs()",
    "-{x}",
    "torch.sin({x})",
    "torch.cos({x})",
    "torch.atan({x})",
    "torch.asinh({x})",
    "torch.acosh({x}.abs() + 1.5)",
    "torch.atanh(torch.tanh({x}) * 0.9)",
    "torch.asin(torch.tanh({x}) * 0.9)",
    "torch.acos(torch.sin({x}) * 0.9)",
    "torch.sinh({x}.clamp(-3.0, 3.0))",
    "torch.cosh({x}.clamp(-3.0, 3.0))",
    "torch.tan({x}.clamp(-1.2, 1.2))",
    "torch.erf({x})",
    "torch.erfc({x})",
    "torch.floor({x})",
    "torch.ceil({x})",
    "torch.round({x})",
    "torch.round({x}, decimals=1)",
    "torch.trunc({x})",
    "torch.frac({x})",
    "torch.sign({x})",
    "torch.reciprocal({x} * {x} + {a})",
    "torch.square({x})",
    "{x} ** 3",
    "{x}.abs() ** {a}",
    "torch.sinc({x})",
    "torch.logit(torch.sigmoid({x}), eps=1e-4)",
    "torch.nan_to_num({x})",
    "torch.clamp({x}, min=-{a})",
    "torch.clamp({x}, max={a})",
    "{x}.clamp(-{a}, {a})",
    "{x} * {a} + 1",
    "1.0 - {x}",
    "{a} / ({x}.abs() + 1)",
    "{x} % {a}",
    "torch.fmod({x}, {a})",
    "torch.floor_divide({x}, {a})",
    "torch.heaviside({x}, torch.tensor(0.5))",
    "torch.special.xlog1py({x}, {x}.abs())",
    "torch.xlogy({x}.abs(), {x}.abs() + 0.1)",
    "torch.special.entr({x}.abs())",
    "torch.deg2rad({x})",
    "torch.digamma({x}.abs() + 1.0)",
    "torch.lgamma({x}.abs() + 1.0)",
    "{x}.double().sin().float()",
    "{x}.half().float()",
    "{x}.to(torch.int32).float()",
    "{x}.clone().detach()",
    "torch.zeros_like({x}) + {a}",
    "torch.full_like({x}, {a}) * {x}",
)


@rule(9)
def unary(pool: Pool) -> Idea:
    x = pool.pick()
    return Idea(pool.chance.choice(UNARY).format(x=x.name, a=pool.number_of(0.3, 2.0)))


BINARY = (
    "{x} + {y}",
    "{x} - {y}",
    "{x} * {y}",
    "{x} / ({y}.abs() + {a})",
    "torch.maximum({x}, {y})",
    "torch.minimum({x}, {y})",
    "torch.atan2({x}, {y})",
    "torch.hypot({x}, {y})",
    "torch.logaddexp({x}, {y})",
    "torch.lerp({x}, {y}, {a})",
    "torch.where({x} > {y}, {x}, {y} * {a})",
    "torch.add({x}, {y}, alpha={a})",
    "torch.sub({x}, {y}, alpha=2)",
    "torch.addcmul({x}, {y}, {x}, value={a})",
    "torch.addcdiv({x}, {y}, {x}.abs() + 1.0, value={a})",
    "torch.remainder({x}, {y}.abs() + 0.5)",
    "torch.fmod({x}, {y}.abs() + 0.5)",
    "torch.pow({x}.abs() + 0.1, {y}.clamp(-2.0, 2.0))",
    "torch.floor({x} / ({y}.abs() + 0.5))",
    'torch.div({x}, {y}.abs() + 0.5, rounding_mode="floor")',
    'torch.div({x}, {y}.abs() + 0.5, rounding_mode="trunc")',
    "torch.clamp({x}, min={y})",
    'F.smooth_l1_loss({x}, {y}, reduction="none")',
    'F.huber_loss({x}, {y}, reduction="none", delta={a})',
    'F.mse_loss({x}, {y}, reduction="none")',
    "torch.fmax({x}, {y})",
    "torch.fmin({x}, {y})",
    "torch.rsub({x}, {y})",
)


@rule(8)
def binary(pool: Pool) -> Idea:
    x = pool.pick()
    y = pool.fellow(x) if pool.coin() else pool.broadcast(x)
    text = pool.chance.choice(BINARY)
    if "_loss" in text or "lerp" in text or "addc" in text:
        y = pool.fellow(x)
    return Idea(text.format(x=x.name, y=y.name, a=pool.number_of(0.3, 2.0)))


@rule(2)
def with_weight(pool: Pool) -> Idea:
    x = pool.some()
    if not x.fixed(-1):
        raise LookupError
    width = x.shape[-1]
    line, name = pool.parameter((width,)) if pool.coin() else pool.buffer(f"torch.linspace(-1.0, 1.5, {width})")
    return Idea(
        pool.one(f"{x.name} * {name}", f"{x.name} + {name}", f"torch.maximum({x.name}, {name})", f"{name} - {x.name}"),
        (line,),
    )


@rule(3)
def compare(pool: Pool) -> Idea:
    x = pool.pick("fi")
    other = (
        pool.broadcast(x, x.kind).name
        if pool.coin()
        else (pool.number_of(-1, 1) if x.kind == "f" else pool.one(0, 1, 2, 3))
    )
    return Idea(f"{x.name} {pool.one('<', '<=', '>', '>=', '==', '!=')} {other}")


@rule(2)
def logic(pool: Pool) -> Idea:
    x = pool.pick("b")
    y = pool.broadcast(x, "b").name
    return Idea(
        pool.one(
            f"~{x.name}",
            f"{x.name} & {y}",
            f"{x.name} | {y}",
            f"{x.name} ^ {y}",
            f"torch.logical_xor({x.name}, {y})",
            f"torch.logical_not({x.name})",
        )
    )


@rule(3)
def masked(pool: Pool) -> Idea:
    x = pool.pick()
    mask = pool.broadcast(x, "b")
    if mask.rank > x.rank:
        raise LookupError
    y = pool.fellow(x)
    a = pool.number_of(-1, 1)
    return Idea(
        pool.one(
            f"torch.where({mask.name}, {x.name}, {y.name})",
            f"{x.name}.masked_fill({mask.name}, {a})",
            f"torch.where({mask.name}, {x.name}, {a})",
            f"torch.where({mask.name}, {a}, {x.name})",
            f"{x.name} * {mask.name}",
        )
    )


@rule(3)
def cast(pool: Pool) -> Idea:
    x = pool.pick("fib")
    choices = {
        "f": (
            "({x} * 3).long()",
            "({x} * 2).round().long()",
            "{x}.bool()",
            "{x}.to(torch.int64)",
            "({x} * 5).int().long()",
            "{x} > 0",
        ),
        "i": (
            "{x}.float()",
            "{x} / 3",
            "{x} * 0.5",
            "{x}.bool()",
            "{x}.float().sqrt().nan_to_num()",
            "{x}.to(torch.float32) - 1",
        ),
        "b": ("{x}.float()", "{x}.long()", "{x} * 1.5", "{x}.int().long()", "{x}.to(torch.float32)"),
    }
    return Idea(pool.chance.choice(choices[x.kind]).format(x=x.name))


@rule(3)
def integers(pool: Pool) -> Idea:
    x = pool.pick("i")
    y = pool.broadcast(x, "i").name
    k = pool.one(2, 3, 5, 7)
    return Idea(
        pool.one(
            f"{x.name} + {y}",
            f"{x.name} - {y}",
            f"{x.name} * {k}",
            f"{x.name} // {k}",
            f"{x.name} % {k}",
            f"-{x.name}",
            f"{x.name}.abs()",
            f"{x.name}.clamp(-{k}, {k})",
            f"torch.minimum({x.name}, {y})",
            f"torch.maximum({x.name}, {y})",
            f"{x.name} & {k}",
            f"{x.name} | {k}",
            f"{x.name} ^ {k}",
            f"{x.name} << 1",
            f"{x.name} >> 1",
            f"torch.remainder({x.name}, {k})",
            f"torch.fmod({x.name}, {k})",
            f"torch.div({x.name}, {k}, rounding_mode='trunc')",
            f"torch.floor_divide({x.name}, -{k})",
            f"torch.bitwise_not({x.name})",
            f"torch.sign({x.name})",
            f"torch.square({x.name}) % 11",
            f"torch.where({x.name} > {k}, {x.name}, 0)",
        )
    )


@rule(2)
def integer_reductions(pool: Pool) -> Idea:
    x = pool.some("i")
    d = pool.axis(x)
    return Idea(
        pool.one(
            f"{x.name}.sum({d})",
            f"{x.name}.cumsum({d})",
            f"{x.name}.amax({d})",
            f"{x.name}.max({d}).values",
            f"{x.name}.argmax({d})",
            f"{x.name}.min({d}, keepdim=True).values",
            f"(({x.name} % 3) == 1).sum({d})",
            f"{x.name}.sort({d}).values",
            f"{x.name}.prod({d}) % 7",
        )
    )


@rule(5)
def reduce(pool: Pool) -> Idea:
    x = pool.some()
    d = pool.axis(x)
    keep = pool.one("", ", keepdim=True")
    text = pool.one(
        "{x}.sum({d}{k})",
        "{x}.mean({d}{k})",
        "{x}.amax({d}{k})",
        "{x}.amin({d}{k})",
        "{x}.max({d}{k}).values",
        "{x}.min({d}{k})[0]",
        "{x}.std({d}{k})",
        "{x}.var({d}, unbiased=False{k})",
        "{x}.var({d}{k})",
        "torch.logsumexp({x}, {d}{k})",
        "{x}.norm(dim={d}{k})",
        "{x}.norm(p=1, dim={d}{k})",
        "torch.linalg.vector_norm({x}, ord=3, dim={d}{k})",
        "torch.linalg.vector_norm({x}, ord=float('inf'), dim={d}{k})",
        "torch.tanh({x}).prod({d}{k})",
        "torch.std_mean({x}, {d}{k})[0]",
        "torch.var_mean({x}, {d}{k})[1]",
        "torch.aminmax({x}, dim={d}{k})[1]",
        "torch.count_nonzero({x} > 0, dim={d}).float()",
        "torch.nansum({x}, dim={d}{k})",
        "{x}.square().mean({d}{k}).sqrt()",
    )
    return Idea(text.format(x=x.name, d=d, k=keep))


@rule(1)
def reduce_more(pool: Pool) -> Idea:
    x = pool.some(least=2)
    axes = tuple(pool.chance.sample(range(x.rank), 2))
    keep = pool.one("", ", keepdim=True")
    return Idea(
        pool.one(
            f"{x.name}.sum({axes}{keep})",
            f"{x.name}.mean({axes}{keep})",
            f"{x.name}.amax({axes}{keep})",
            f"{x.name}.var({axes}{keep})",
            f"torch.logsumexp({x.name}, {axes}{keep})",
            f"{x.name}.mean()",
            f"{x.name}.max()",
            f"{x.name}.sum()",
        )
    )


@rule(2)
def positions(pool: Pool) -> Idea:
    x = pool.some()
    d, keep = pool.axis(x), pool.one("", ", keepdim=True")
    return Idea(
        pool.one(
            f"{x.name}.argmax({d}{keep})",
            f"{x.name}.argmin({d}{keep})",
            f"{x.name}.max({d}{keep}).indices",
            f"{x.name}.argsort({d})",
            f"{x.name}.argsort({d}, descending=True)",
        )
    )


@rule(1)
def bools(pool: Pool) -> Idea:
    x = pool.some("b")
    d, keep = pool.axis(x), pool.one("", ", keepdim=True")
    return Idea(
        pool.one(
            f"{x.name}.any({d}{keep})",
            f"{x.name}.all({d}{keep})",
            f"{x.name}.sum({d}{keep})",
            f"{x.name}.float().mean({d}{keep})",
            f"{x.name}.cumsum({d})",
        )
    )


@rule(2)
def scan(pool: Pool) -> Idea:
    x = pool.some()
    d = pool.axis(x)
    return Idea(
        pool.one(
            f"{x.name}.cumsum({d})",
            f"{x.name}.flip({d}).cumsum({d})",
            f"torch.logcumsumexp({x.name}, {d})",
            f"{x.name}.cumsum({d}) / 4",
        )
    )


@rule(3)
def softmax(pool: Pool) -> Idea:
    x = pool.some()
    d = pool.axis(x)
    return Idea(
        pool.one(
            f"torch.softmax({x.name}, {d})",
            f"torch.log_softmax({x.name}, {d})",
            f"F.softmin({x.name}, dim={d})",
            f"F.normalize({x.name}, dim={d})",
            f"F.normalize({x.name}, p=1.0, dim={d})",
        )
    )


@rule(3)
def order(pool: Pool) -> Idea:
    x = pool.some()
    d = pool.axis(x, fixed=True)
    k = pool.chance.randint(1, x.shape[d])
    return Idea(
        pool.one(
            f"{x.name}.topk({k}, dim={d}).values",
            f"{x.name}.topk({k}, dim={d}, largest=False)[0]",
            f"{x.name}.topk({k}, dim={d}).indices",
            f"{x.name}.sort({d}).values",
            f"{x.name}.sort({d}, descending=True)[0]",
        )
    )


@rule(6)
def reshape(pool: Pool) -> Idea:
    x = pool.some("fib")
    d, n = pool.axis(x), x.rank
    choices = [
        f"{x.name}.unsqueeze({d})",
        f"{x.name}[..., None]",
        f"{x.name}.flip({d})",
        f"torch.roll({x.name}, 1, {d})",
        f"{x.name}.roll(-2, {d})",
    ]
    if n >= 2:
        a, b = pool.chance.sample(range(n), 2)
        order = pool.chance.sample(range(n), n)
        choices += [
            f"{x.name}.transpose({a}, {b})",
            f"{x.name}.permute({', '.join(map(str, order))})",
            f"{x.name}.flatten(-2)",
            f"{x.name}.movedim({a}, {b})",
            f"torch.rot90({x.name}, 1, ({a}, {b}))",
        ]
        choices += [
            f"{x.name}.diagonal(dim1=-2, dim2=-1)",
            f"{x.name}.tril()",
            f"{x.name}.triu(1)",
            f"{x.name}.flatten({min(a, b)}, {max(a, b)})",
            f"{x.name}.reshape({x.name}.shape[0], -1)",
        ]
    if 1 in x.shape:
        choices += [f"{x.name}.squeeze({x.shape.index(1)})"] * 3
    if x.fixed(d):
        size = x.shape[d]
        choices += [
            f"{x.name}.select({d}, {pool.chance.randint(-size, size - 1)})",
            f"{x.name}.repeat_interleave(2, dim={d})",
            f"{x.name}.index_select({d}, torch.tensor([0, {size - 1}, 0]))",
        ]
        choices += [f"{x.name}.unfold({d}, {min(2, size)}, 1)", f"torch.stack({x.name}.unbind({d}), {d})"]
        if size % 2 == 0:
            choices += [
                f"{x.name}.unflatten({d}, (2, -1))",
                f"{x.name}.unflatten({d}, (-1, 2))",
                f"{x.name}.chunk(2, {d})[1]",
                f"torch.cat({x.name}.split({size // 2}, {d})[::-1], {d})",
            ]
        if size > 2:
            choices += [f"{x.name}.narrow({d}, 1, {size - 1})", f"{x.name}.tensor_split(2, {d})[0]"]
    if x.fixed(-1) and x.shape[-1] > 2:
        choices += [
            f"{x.name}[..., 1:]",
            f"{x.name}[..., :-1]",
            f"{x.name}[..., ::2]",
            f"{x.name}[..., [0, 2, 1]]",
            f"{x.name}[..., -1]",
        ]
    if x.shape[-1] == 1:
        choices += [f"{x.name}.expand(*{x.name}.shape[:-1], 3)"] * 2
    choices += [
        f"{x.name}.repeat({', '.join(['1'] * (n - 1) + ['2'])})",
        f"torch.tile({x.name}, (2,))",
        f"{x.name}[1:]" if n else "",
        f"{x.name}[:, -1]" if n > 1 else f"{x.name}[:-1]",
    ]
    return Idea(pool.chance.choice(choices))


@rule(3)
def join(pool: Pool) -> Idea:
    x = pool.some("fib")
    y = pool.fellow(x, x.kind)
    d = pool.axis(x)
    return Idea(
        pool.one(
            f"torch.cat([{x.name}, {y.name}], {d})",
            f"torch.stack([{x.name}, {y.name}], {d})",
            f"torch.cat([{x.name}, {y.name}, {x.name}], {d})",
            f"torch.stack(({x.name}, {y.name}), dim=-1)",
        )
    )


@rule(2)
def pad(pool: Pool) -> Idea:
    x = pool.some()
    a, b = pool.chance.randint(0, 2), pool.chance.randint(0, 2)
    if x.rank in (3, 4) and pool.coin():
        mode = pool.one("reflect", "replicate", "circular")
        sides = (1, 1) if x.rank == 3 else (1, 1, 1, 0)
        return Idea(f'F.pad({x.name}, {sides}, mode="{mode}")')
    sides = (a, b) if x.rank < 2 or pool.coin() else (a, b, b, a)
    return Idea(
        f"F.pad({x.name}, {sides}, value={pool.number_of(-1, 1)})" if pool.coin() else f"F.pad({x.name}, {sides})"
    )


@rule(5)
def linear(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank >= 1 and value.fixed(-1))
    width, out = x.shape[-1], pool.chance.choice((2, 3, 4, 6, 8))
    if pool.coin(0.8):
        line, name = pool.member(f"nn.Linear({width}, {out}, bias={pool.coin(0.8)})")
        return Idea(f"{name}({x.name})", (line,))
    line, name = pool.parameter((width, out))
    return Idea(
        pool.one(f"{x.name} @ {name}", f"torch.matmul({x.name}, {name})", f"torch.tensordot({x.name}, {name}, dims=1)"),
        (line,),
    )


@rule(4)
def products(pool: Pool) -> Idea:
    x = pool.some(least=2)
    y = pool.fellow(x)
    choices = [
        f"{x.name} @ {y.name}.transpose(-1, -2)",
        f"torch.cosine_similarity({x.name}, {y.name}, dim=-1)",
        f"({x.name} * {y.name}).sum(-1)",
        f"torch.einsum('...i,...i->...', {x.name}, {y.name})",
    ]
    if x.rank == 2:
        choices += [
            f"torch.einsum('bi,bj->bij', {x.name}, {y.name})",
            f"torch.einsum('bi,bi->b', {x.name}, {y.name})",
            f"F.pairwise_distance({x.name}, {y.name})",
            f"torch.mm({x.name}.t(), {y.name})",
            f"torch.einsum('bi,ci->bc', {x.name}, {y.name})",
        ]
    if x.rank == 3:
        choices += [
            f"torch.bmm({x.name}, {y.name}.mT)",
            f"torch.einsum('bsi,bti->bst', {x.name}, {y.name})",
            f"torch.einsum('bsi,bsj->bij', {x.name}, {y.name})",
            f"torch.baddbmm(torch.zeros(1), {x.name}, {y.name}.mT, alpha=0.5)",
            f"torch.cdist({x.name}, {y.name})",
            f"torch.einsum('bsi->bis', {x.name})",
        ]
    if x.rank == 4:
        choices += [f"torch.einsum('bhij,bhkj->bhik', {x.name}, {y.name})", f"torch.einsum('bchw->bhw', {x.name})"]
    return Idea(pool.chance.choice(choices))


@rule(4)
def attention(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank in (3, 4) and value.fixed(-1) and value.fixed(0) is False)
    y = pool.fellow(x)
    width = x.shape[-1]
    choices: list[tuple[str, str]] = [
        (f"torch.softmax({x.name} @ {y.name}.mT / math.sqrt({width}), -1) @ {y.name}", ""),
        (
            f"torch.softmax(({x.name} @ {x.name}.mT).masked_fill(torch.ones({x.name}.shape[-2], {x.name}.shape[-2]).triu(1).bool(), float('-inf')), -1) @ {y.name}",
            "",
        ),
    ]
    if x.rank == 4:  # the exporter refuses those without heads
        choices += [
            (f"F.scaled_dot_product_attention({x.name}, {y.name}, {y.name})", ""),
            (f"F.scaled_dot_product_attention({x.name}, {x.name}, {y.name}, is_causal=True)", ""),
            (f"F.scaled_dot_product_attention({x.name}, {y.name}, {x.name}, scale=0.7)", ""),
        ]
    if x.rank == 3 and width % 2 == 0:
        choices += [
            (
                "{m}" + f"({x.name}, {y.name}, {y.name}, need_weights=False)[0]",
                f"nn.MultiheadAttention({width}, 2, batch_first=True)",
            ),
            ("{m}" + f"({x.name}, {x.name}, {x.name})[0]", f"nn.MultiheadAttention({width}, 2, batch_first=True)"),
            (
                "{m}" + f"({x.name})",
                f"nn.TransformerEncoderLayer({width}, 2, 8, batch_first=True, norm_first={pool.coin()}, activation='{pool.one('relu', 'gelu')}')",
            ),
            ("{m}" + f"({x.name}, {y.name})", f"nn.TransformerDecoderLayer({width}, 2, 8, batch_first=True)"),
        ]
    text, made = pool.chance.choice(choices)
    if not made:
        return Idea(text)
    line, name = pool.member(made)
    return Idea(text.replace("{m}", name), (line,))


@rule(4)
def recurrent(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank == 3 and value.fixed(2) and not value.fixed(0))
    width, out = x.shape[2], pool.chance.choice((2, 3, 4))
    if pool.coin(0.3):
        line, name = pool.member(f"nn.{pool.one('GRUCell', 'RNNCell')}({width}, {out})")
        return Idea(f"{name}({x.name}[:, 0], {name}({x.name}[:, -1]))", (line,))
    kind = pool.one("LSTM", "GRU", "RNN")
    line, name = pool.member(
        f"nn.{kind}({width}, {out}, num_layers={pool.one(1, 1, 2)}, batch_first=True, bidirectional={pool.coin(0.3)})"
    )
    last = "[1][0]" if kind == "LSTM" else "[1]"
    return Idea(f"{name}({x.name}){pool.one('[0]', '[0]', last)}", (line,))


@rule(2)
def loop(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank >= 2 and value.fixed(-1) and value.shape[-1] <= 6)
    steps = ", ".join(f"{x.name}[..., {i}]" for i in range(x.shape[-1]))
    return Idea(
        pool.one(
            f"torch.stack([part.tanh() * {pool.number_of(0.2, 1)} for part in ({steps},)], -1)",
            f"sum(part * part.sigmoid() for part in ({steps},))",
            f"torch.cat([part.unsqueeze(-1) for part in ({steps},)][::-1], -1)",
        )
    )


def _window(pool: Pool, least: int) -> tuple[int, int, int, int]:
    """Kernel, stride, padding, dilation."""
    kernel = pool.chance.choice([k for k in (1, 2, 3) if k <= least] or [1])
    return kernel, pool.chance.choice((1, 1, 2)), pool.chance.randint(0, kernel // 2), pool.chance.choice((1, 1, 1, 2))


@rule(6)
def convolution(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank in (3, 4) and value.fixed(1) and not value.fixed(0))
    rank, channels = x.rank - 2, x.shape[1]
    kernel, stride, padding, dilation = _window(pool, min(x.shape[2:]))
    groups = pool.chance.choice([g for g in (1, 1, channels, 2) if channels % g == 0])
    out = groups * pool.chance.choice((1, 2, 3))
    if pool.coin(0.2):
        line, name = pool.member(
            f"nn.ConvTranspose{rank}d({channels}, {out}, {kernel}, stride={stride}, padding={padding}, output_padding={int(stride > 1 and pool.coin())}, groups={groups})"
        )
        return Idea(f"{name}({x.name})", (line,))
    mode = pool.one("zeros", "zeros", "zeros", "reflect", "replicate", "circular")
    pads = repr(pool.one("same", "valid")) if pool.coin(0.15) and stride == 1 and mode == "zeros" else padding
    line, name = pool.member(
        f"nn.Conv{rank}d({channels}, {out}, {kernel}, stride={stride}, padding={pads}, dilation={dilation}, groups={groups}, bias={pool.coin()}, padding_mode='{mode}')"
    )
    return Idea(f"{name}({x.name})", (line,))


@rule(4)
def pool_windows(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank in (3, 4) and not value.fixed(0))
    rank = x.rank - 2
    kernel, stride, padding, dilation = _window(pool, min(x.shape[2:]))
    size = pool.chance.choice(
        [1, *([2] if all(s % 2 == 0 and x.fixed(2 + i) for i, s in enumerate(x.shape[2:])) else [])]
    )
    return Idea(
        pool.one(
            f"F.max_pool{rank}d({x.name}, {kernel}, {stride}, {padding}, {dilation})",
            f"F.max_pool{rank}d({x.name}, {kernel}, {stride}, {padding}, ceil_mode=True)",
            f"F.avg_pool{rank}d({x.name}, {kernel}, {stride}, {padding})",
            f"F.avg_pool{rank}d({x.name}, {kernel}, {stride}, {padding}, ceil_mode=True)",
            f"F.avg_pool{rank}d({x.name}, {kernel}, {stride}, {padding}, count_include_pad=False)",
            f"F.adaptive_avg_pool{rank}d({x.name}, {size})",
            f"F.adaptive_max_pool{rank}d({x.name}, {size})",
            f"F.lp_pool{rank}d({x.name}.abs() + 0.1, 2, {kernel}, {stride})",
            f"F.max_pool{rank}d({x.name}, {kernel}, {stride}, {padding}, return_indices=True)[1]",
        )
    )


@rule(5)
def norms(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank in (2, 3, 4) and value.fixed(1) and value.fixed(-1))
    rank, channels, width = x.rank, x.shape[1], x.shape[-1]
    batch = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d"}[rank]
    groups = 2 if channels % 2 == 0 else 1
    made = [
        f"nn.{batch}({channels})",
        f"nn.LayerNorm({width})",
        f"nn.LayerNorm({width}, eps=1e-6, elementwise_affine=False)",
        f"nn.RMSNorm({width})",
        f"nn.GroupNorm({groups}, {channels})",
    ]
    if rank > 2:
        made += [f"nn.InstanceNorm{rank - 2}d({channels}, affine={pool.coin()})", "nn.LocalResponseNorm(2)"]
    if rank == 3:
        made += [f"nn.LayerNorm(({channels}, {width}))"]
    if rank < 4:
        made += ["nn.PReLU()"]
    line, name = pool.member(pool.chance.choice(made))
    return Idea(f"{name}({x.name})", (line,))


@rule(2)
def gates(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank >= 2)
    even = [a for a in range(x.rank) if x.fixed(a) and x.shape[a] % 2 == 0]
    if not even:
        raise LookupError
    return Idea(f"F.glu({x.name}, {pool.chance.choice(even)})")


@rule(3)
def resize(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank in (3, 4) and not value.fixed(0) and value.fixed(1))
    if x.rank == 3:
        return Idea(
            pool.one(
                f"F.interpolate({x.name}, scale_factor=2)",
                f"F.interpolate({x.name}, scale_factor=2.0, mode='linear')",
                f"F.interpolate({x.name}, size=7, mode='linear', align_corners=True)",
                f"F.interpolate({x.name}, size=5)",
            )
        )
    mode = pool.one("bilinear", "bicubic")
    border = f"align_corners={pool.coin()}, padding_mode='{pool.one('zeros', 'border', 'reflection')}'"
    return Idea(
        pool.one(
            f"F.interpolate({x.name}, scale_factor=2)",
            f"F.interpolate({x.name}, size=(5, 7))",
            f"F.interpolate({x.name}, scale_factor={pool.one(1.5, 2.0, 0.5)}, mode='{mode}')",
            f"F.interpolate({x.name}, size=(7, 5), mode='{mode}', align_corners={pool.coin()})",
            f"F.interpolate({x.name}, size=(3, 3), mode='nearest-exact')",
            f"F.interpolate({x.name}, scale_factor=0.5, mode='bilinear', antialias=True)",
            f"F.interpolate({x.name}, size=(4, 4), mode='area')",
            f"F.grid_sample({x.name}, torch.tanh({x.name}[:, :1].repeat(1, 2, 1, 1).permute(0, 2, 3, 1)), {border})",
            f"F.unfold({x.name}, 2)",
            f"F.pixel_shuffle({x.name}.repeat(1, 4, 1, 1), 2)",
            f"F.pixel_unshuffle({x.name}.repeat(1, 1, 2, 2), 2)",
            f"F.channel_shuffle({x.name}.repeat(1, 2, 1, 1), 2)",
        )
    )


@rule(5)
def lookup(pool: Pool) -> Idea:
    ids = pool.pick("i", lambda value: value.rank <= 3)
    count, width = pool.chance.choice((5, 7, 11)), pool.chance.choice((2, 3, 4, 6))
    safe = f"({ids.name} % {count})" if pool.coin() else f"{ids.name}.clamp(0, {count - 1})"
    line, name = pool.member(f"nn.Embedding({count}, {width})")
    if pool.coin(0.7):
        return Idea(f"{name}({safe})", (line,))
    line, name = pool.buffer(f"torch.randn({count}, {width})")
    return Idea(
        pool.one(
            f"{name}[{safe}]",
            f"F.one_hot({safe}, {count}).float() @ {name}",
            f"{name}.index_select(0, {safe}.flatten())",
            f"F.one_hot({safe}, {count}).sum(-2) + {name}.sum().long()",
        ),
        (line,),
    )


@rule(4)
def indexing(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank >= 1 and value.fixed(-1))
    size = x.shape[-1]
    index = pool.pick(
        "i",
        lambda value: (
            value.rank == x.rank
            and value.shapes[0][:-1] == x.shapes[0][:-1]
            and value.shapes[1][:-1] == x.shapes[1][:-1]
        ),
    )
    safe = f"({index.name} % {size})"
    same = index.shapes == x.shapes
    choices = [f"torch.gather({x.name}, -1, {safe})", f"torch.take_along_dim({x.name}, {safe}, -1)"]
    if same:
        choices += [
            f"{x.name}.scatter(-1, {safe}, {pool.number_of(-1, 1)})",
            f"{x.name}.scatter_add(-1, {safe}, {x.name})",
            f"torch.zeros_like({x.name}).scatter_add(-1, {safe}, {pool.fellow(x).name})",
            f"{x.name}.scatter_reduce(-1, {safe}, {x.name}, reduce='{pool.one('sum', 'amax', 'amin', 'prod')}')",
        ]
    return Idea(pool.chance.choice(choices))


@rule(2)
def writing(pool: Pool) -> Idea:
    x = pool.pick("f", lambda value: value.rank >= 2 and value.fixed(-1) and value.shape[-1] >= 2)
    y = pool.fellow(x)
    rows = "torch.tensor([1, 0, 1])"
    return Idea(
        pool.one(
            f"{x.name}.index_add(-1, {rows}, {y.name}[..., :1].repeat({', '.join(['1'] * (x.rank - 1) + ['3'])}))",
            f"{x.name}.index_copy(-1, torch.tensor([1]), {y.name}[..., :1])",
            f"{x.name}.index_fill(-1, torch.tensor([0]), {pool.number_of(-1, 1)})",
            f"{x.name}.select_scatter({y.name}[..., 0], -1, 1)",
            f"{x.name}.slice_scatter({y.name}[..., :1], -1, 1, 2)",
            f"torch.index_put({x.name}.transpose(0, -1), (torch.tensor([1]),), {y.name}.transpose(0, -1)[:1])",
            f"{x.name}.masked_scatter({y.name} > 0, {y.name})"
            if pool.coin(0.1)
            else f"torch.bucketize({x.name}, torch.tensor([-0.5, 0.1, 0.7])).float()",
        )
    )


@rule(2)
def counting(pool: Pool) -> Idea:
    x = pool.some(least=2)
    return Idea(
        pool.one(
            f"{x.name} + torch.arange({x.name}.shape[-1])",
            f"{x.name} * torch.arange({x.name}.shape[-1], dtype=torch.float32) / {x.name}.shape[-1]",
            f"{x.name} + torch.ones({x.name}.shape[-1])",
            f"{x.name} - {x.name}.mean(-1, keepdim=True)",
            f"({x.name} - {x.name}.mean(-1, keepdim=True)) / ({x.name}.std(-1, keepdim=True) + 1e-5)",
            f"{x.name} / {x.name}.shape[1]",
            f"{x.name} + torch.linspace(0.0, 1.0, {x.shape[-1]})" if x.fixed(-1) else f"{x.name} * {x.name}.size(0)",
            f"torch.eye({x.shape[-1]}) + {x.name}.mean()" if x.fixed(-1) else f"{x.name} + 0",
            f"{x.name} * torch.tensor(0.75) + torch.full(({x.name}.shape[-1],), 0.25)",
            f"{x.name} / math.sqrt({x.name}.size(-1))",
        )
    )
