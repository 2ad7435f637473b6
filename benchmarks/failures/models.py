"""Failures and their remedies: for each name a function that fails, and one (or options) with which it passes.

`NAME()` and `NAME_remedied()` return (module, example inputs), as TARGETs do.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # the field's usual name


class Apply(nn.Module):
    """A linear layer with a function around it: enough of a model, and the failing line is the function's."""

    def __init__(self, function, features=8):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(features, features)
        self.function = function

    def forward(self, x):
        return self.function(self.linear(x))


def _rows(function, *shape):
    torch.manual_seed(1)
    return Apply(function, (shape or (3, 8))[-1]).eval(), (torch.randn(*(shape or (3, 8))),)


# --- control flow and sizes -------------------------------------------------------------------------------------------


def if_on_a_value():
    return _rows(lambda x: x * 2 if x.sum() > 0 else x - 1)


def if_on_a_value_remedied():
    return _rows(lambda x: torch.where(x.sum() > 0, x * 2, x - 1))


def item_as_size():
    return _rows(lambda x: x[:, : int((x[0, 0] > 0).item()) + 2])


def item_as_size_remedied():
    return _rows(lambda x: x[:, :3])


def compares_tensors():
    return _rows(lambda x: x * 2 if torch.equal(x, x.abs()) else x)


def compares_tensors_remedied():
    return _rows(lambda x: torch.where((x == x.abs()).all(), x * 2, x))


def while_on_a_value():
    def halve(x):
        while x.abs().max() > 1:
            x = x / 2
        return x

    return _rows(halve)


def while_on_a_value_remedied():
    return _rows(lambda x: x / torch.exp2(torch.ceil(torch.log2(x.abs().max().clamp(min=1.0)))))


class Loop(nn.Module):
    def forward(self, x):
        state = torch.zeros(x.shape[0], x.shape[2])
        for step in range(x.shape[1]):
            state = torch.tanh(state + x[:, step])
        return state


def loop_over_a_dim():
    return Loop().eval(), (torch.randn(2, 3, 4),)


def loop_over_a_dim_remedied():
    return loop_over_a_dim()


def hard_coded_batch():
    return _rows(lambda x: x.view(3, 4, 2).sum(1))


def hard_coded_batch_remedied():
    return _rows(lambda x: x.view(-1, 4, 2).sum(1))


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][0][-1]


def packed_sequence():
    torch.manual_seed(1)
    return Gates().eval(), (torch.randn(3, 5, 4), torch.tensor([5, 3, 2]))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x, lengths):
        states = self.rnn(x)[0]
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
        return states.gather(1, last).squeeze(1)


def packed_sequence_remedied():
    torch.manual_seed(1)
    return Masked().eval(), (torch.randn(3, 5, 4), torch.tensor([5, 3, 2]))


class Aliasing(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t, lambda t: t - 1, (x,))


def cond_returns_its_input():
    return Aliasing().eval(), (torch.randn(3, 8),)


class Cloning(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t.clone(), lambda t: t - 1, (x,))


def cond_returns_its_input_remedied():
    return Cloning().eval(), (torch.randn(3, 8),)


# --- operators without a translation ----------------------------------------------------------------------------------


def median():
    return _rows(lambda x: x.median(-1).values)


def median_remedied():
    return _rows(lambda x: x.sort(-1).values[:, (x.shape[-1] - 1) // 2])


def mode():
    return _rows(lambda x: x.round().mode(-1).values)


def mode_remedied():
    def most_frequent(x):
        x = x.round()
        same = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
        often = same == same.amax(-1, keepdim=True)
        return torch.where(often, x, torch.full_like(x, torch.inf)).amin(-1)

    return _rows(most_frequent)


def kthvalue():
    return _rows(lambda x: x.kthvalue(3, -1).values)


def kthvalue_remedied():
    return _rows(lambda x: x.topk(3, -1, largest=False).values[:, -1])


def cummax():
    return _rows(lambda x: x.cummax(-1).values)


def cummax_remedied():
    def running(x):
        length = x.shape[-1]
        past = torch.ones(length, length).tril().bool()
        return torch.where(past, x.unsqueeze(-2), torch.full_like(x.unsqueeze(-2), -torch.inf)).amax(-1)

    return _rows(running)


def cumprod():
    return _rows(lambda x: x.cumprod(-1))


def cumprod_remedied():
    def running(x):
        sign = 1 - 2 * ((x < 0).to(torch.int64).cumsum(-1) % 2)
        return sign * x.abs().log().cumsum(-1).exp()

    return _rows(running)


def stable_sort():
    return _rows(lambda x: x.sort(dim=-1, stable=True).values)


def stable_sort_remedied():
    return _rows(lambda x: x.sort(dim=-1).values)


class Buckets(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.register_buffer("edges", torch.tensor([-1.0, 0.0, 1.0]))
        self.how = how

    def forward(self, x):
        if self.how == "searchsorted":
            return torch.searchsorted(self.edges, x)
        return (x.unsqueeze(-1) > self.edges).sum(-1)


def searchsorted():
    return Buckets("searchsorted").eval(), (torch.randn(3, 8),)


def searchsorted_remedied():
    return Buckets("compare").eval(), (torch.randn(3, 8),)


def masked_select():
    return _rows(lambda x: x.masked_select(x > 0))


def masked_select_remedied():
    return _rows(lambda x: x[x > 0])


def index_reduce():
    return _rows(lambda x: torch.zeros_like(x).index_reduce(1, torch.tensor([0, 1, 2, 3, 4, 5, 6, 7]), x, "amax"))


def index_reduce_remedied():
    def reduce(x):
        index = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7]).expand_as(x)
        return torch.zeros_like(x).scatter_reduce(1, index, x, "amax")

    return _rows(reduce)


def cdist():
    return _rows(lambda x: torch.cdist(x, x))


def cdist_remedied():
    return _rows(lambda x: (x.unsqueeze(-2) - x.unsqueeze(-3)).square().sum(-1).sqrt())


def inverse():
    return _rows(lambda x: torch.linalg.inv(x + 9 * torch.eye(3)), 2, 3, 3)


def cholesky():
    return _rows(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3)), 2, 3, 3)


def svd():
    return _rows(lambda x: torch.linalg.svdvals(x), 2, 3, 3)


def erfinv():
    return _rows(lambda x: torch.erfinv(torch.tanh(x)))


def copysign():
    return _rows(lambda x: torch.copysign(x.abs() + 1, x))


def copysign_remedied():
    return _rows(lambda x: torch.where(x < 0, -(x.abs() + 1), x.abs() + 1))


def rrelu():
    return _rows(lambda x: F.rrelu(x))


def rrelu_remedied():
    return _rows(lambda x: F.leaky_relu(x, (1 / 8 + 1 / 3) / 2))


def lgamma():
    return _rows(lambda x: torch.lgamma(x.abs() + 1))


def adaptive_max_pool():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveMaxPool2d(3)).eval(), (torch.randn(2, 3, 11, 11),)


def adaptive_max_pool_remedied():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(3)).eval(), (torch.randn(2, 3, 11, 11),)


def unique():
    return _rows(lambda x: torch.unique_consecutive(x.round()))


@torch.library.custom_op("onnxprooffailures::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def custom_operator():
    return _rows(lambda x: twice(x))


def custom_operator_remedied():
    return _rows(lambda x: x * 2)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.detach().numpy() ** 2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]


def through_numpy():
    return _rows(lambda x: Square.apply(x))


def through_numpy_remedied():
    return _rows(lambda x: x**2)


# --- types ------------------------------------------------------------------------------------------------------------


class Spectrum(nn.Module):
    def __init__(self, real):
        super().__init__()
        self.real = real

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        return torch.view_as_real(spectrum) if self.real else spectrum


def complex_output():
    return Spectrum(False).eval(), (torch.randn(3, 8),)


def complex_output_remedied():
    return Spectrum(True).eval(), (torch.randn(3, 8),)


class Opaque:
    def __init__(self, value):
        self.value = value


class Wraps(nn.Module):
    def __init__(self, opaque):
        super().__init__()
        self.opaque = opaque

    def forward(self, x):
        return Opaque(x * 2) if self.opaque else x * 2


def opaque_output():
    return Wraps(True).eval(), (torch.randn(3, 8),)


def opaque_output_remedied():
    return Wraps(False).eval(), (torch.randn(3, 8),)


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    y: torch.Tensor


class TakesPoint(nn.Module):
    def forward(self, point):
        return point.x + point.y


def dataclass_input():
    return TakesPoint().eval(), (Point(torch.randn(3, 8), torch.randn(3, 8)),)


class WithNumber(nn.Module):
    def forward(self, x):
        return x * 2, 7


def number_among_outputs():
    return WithNumber().eval(), (torch.randn(3, 8),)


class TakesDict(nn.Module):
    def forward(self, d):
        return d["a"] + d["b"]


def single_dict():
    return TakesDict().eval(), ({"a": torch.randn(3, 8), "b": torch.randn(3, 8)},)


def scripted():
    module, inputs = _rows(lambda x: x * 2)
    return torch.jit.script(module.linear), inputs


def quantized():
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    return torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8), (torch.randn(3, 8),)


def quantized_remedied():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), (torch.randn(3, 8),)


def meta_weights():
    with torch.device("meta"):
        module = nn.Linear(8, 8)
    return module.eval(), (torch.randn(3, 8, device="meta"),)


def meta_weights_remedied():
    torch.manual_seed(0)
    return nn.Linear(8, 8).eval(), (torch.randn(3, 8),)


def sparse():
    return _rows(lambda x: torch.sparse.mm(torch.eye(3).to_sparse(), x))


def sparse_remedied():
    return _rows(lambda x: torch.eye(3) @ x)


# --- the exporter's own failures ----------------------------------------------------------------------------------------


class Chunks(nn.Module):
    def forward(self, x):
        first, second = x.chunk(2, dim=0)
        return first.sum() + second.sum()


def chunk_of_a_dynamic_dim():
    return Chunks().eval(), (torch.randn(4, 8),)


class InPlace(nn.Module):
    def forward(self, x):
        x.data.add_(1)
        return x * 2


def data_in_place():
    return InPlace().eval(), (torch.randn(3, 8),)


class OutOfPlace(nn.Module):
    def forward(self, x):
        return (x + 1) * 2


def data_in_place_remedied():
    return OutOfPlace().eval(), (torch.randn(3, 8),)


class Reads(nn.Module):
    def forward(self, x):
        return x * float(open("weights.txt").read())


# --- at the runtime -----------------------------------------------------------------------------------------------------


def adds_booleans():
    return _rows(lambda x: (x > 0) + (x > 1))


def adds_booleans_remedied():
    return _rows(lambda x: (x > 0) | (x > 1))


def softmax_of_integers():
    class Model(nn.Module):
        def forward(self, x):
            return torch.softmax(x, -1, dtype=torch.float32)

    return Model().eval(), (torch.randint(0, 5, (3, 8)),)


def negates_bytes():
    class Model(nn.Module):
        def forward(self, x):
            return -x

    return Model().eval(), (torch.randint(0, 255, (3, 8), dtype=torch.uint8),)


def negates_bytes_remedied():
    class Model(nn.Module):
        def forward(self, x):
            return (-x.to(torch.int32)).bitwise_and(255).to(torch.uint8)

    return Model().eval(), (torch.randint(0, 255, (3, 8), dtype=torch.uint8),)


def sorts_booleans():
    return _rows(lambda x: (x > 0).sort(-1).values)


def sorts_booleans_remedied():
    return _rows(lambda x: (x > 0).to(torch.int32).sort(-1).values.bool())


def erf_in_float64():
    module, (x,) = _rows(lambda x: torch.erf(x))
    return module.double(), (x.double(),)


def erf_in_float64_remedied():
    return _rows(lambda x: torch.erf(x))


def squeezes_the_batch():
    return _rows(lambda x: x.squeeze(0))


def squeezes_the_batch_remedied():
    return _rows(lambda x: x)
