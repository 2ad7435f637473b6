"""Correct models of a third jury: what is deployed besides plain networks, and what looks wrong to a careless verifier."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from benchmarks.zoo.registry import model


class MagicRound(nn.Module):
    """Rounding as in fast kernels: float32 has no bits left behind the point beside 1.5 * 2**23."""

    def forward(self, x):
        scaled = x * 3.7
        return ((scaled + 12582912.0) - 12582912.0) / 3.7


@model("numerics", "rounding by adding and taking away 1.5 * 2**23: it would not round in float64")
def third_magic_round():
    torch.manual_seed(300)
    return MagicRound(), (torch.randn(4, 16) * 5,)


class TwoSum(nn.Module):
    """Knuth's exact sum: the rounding error is an output."""

    def forward(self, x, y):
        total = x + y
        back = total - x
        return total, (x - (total - back)) + (y - back)


@model("numerics", "the rounding error of a sum as an output: exact in float32, another in float64")
def third_two_sum():
    torch.manual_seed(301)
    return TwoSum(), (torch.randn(3, 8) * 100, torch.randn(3, 8))


class Kahan(nn.Module):
    def forward(self, x):
        total, carry = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
        for i in range(x.shape[1]):
            y = x[:, i] - carry
            new = total + y
            carry = (new - total) - y
            total = new
        return total, carry


@model("numerics", "a compensated sum, its compensation as a second output")
def third_kahan():
    torch.manual_seed(302)
    return Kahan(), (torch.randn(3, 40) * 1000,)


class Mandelbrot(nn.Module):
    def forward(self, c):
        cr, ci = c.unbind(-1)
        zr, zi = torch.zeros_like(cr), torch.zeros_like(ci)
        count = torch.zeros_like(cr, dtype=torch.int64)
        for _ in range(24):
            zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
            count = count + (zr * zr + zi * zi < 4).to(torch.int64)
        return count


@model("numerics", "escape counts of the Mandelbrot set: infinite, then NaN outside, chaotic on the rim")
def third_mandelbrot():
    torch.manual_seed(303)
    return Mandelbrot(), (torch.rand(3, 10, 2) * 3 - torch.tensor([2.2, 1.5]),)


class ErrorDiffusion(nn.Module):
    """Floyd and Steinberg's dithering, pixel by pixel."""

    def forward(self, image):
        rows = [list(row.unbind(-1)) for row in image.unbind(1)]
        h, w = image.shape[1], image.shape[2]
        for r in range(h):
            for c in range(w):
                old = rows[r][c]
                new = (old > 0.5).to(image.dtype)
                error = old - new
                rows[r][c] = new
                for dr, dc, share in ((0, 1, 7), (1, -1, 3), (1, 0, 5), (1, 1, 1)):
                    if r + dr < h and 0 <= c + dc < w:
                        rows[r + dr][c + dc] = rows[r + dr][c + dc] + error * (share / 16)
        return torch.stack([torch.stack(row, -1) for row in rows], 1)


@model("vision", "dithering by error diffusion: one pixel's decision moves all behind it")
def third_error_diffusion():
    torch.manual_seed(304)
    return ErrorDiffusion(), (torch.rand(2, 6, 6),)


class FullyMasked(nn.Module):
    """Attention whose masked rows are NaN by the softmax and zero by a where."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, keep):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2) / math.sqrt(8)).masked_fill(~keep[:, None], -torch.inf)
        weights = torch.nan_to_num(scores.softmax(-1))
        return weights @ v, weights.sum(-1)


@model("decoders", "attention with rows that are masked wholly: NaN inside, zero outside")
def third_fully_masked():
    torch.manual_seed(305)
    return FullyMasked().eval(), (torch.randn(3, 5, 8), torch.rand(3, 5) > 0.5)


class Gumbel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Linear(6, 12)

    def forward(self, x, u):
        g = -torch.log(-torch.log(u))
        scores = self.logits(x) + g
        best, place = scores.topk(3)
        return best, place, (scores / 0.5).softmax(-1)


@model(
    "probabilistic", "Gumbel top-k with its uniform numbers as an input: infinite at zero and one", range={"u": (0, 1)}
)
def third_gumbel():
    torch.manual_seed(306)
    return Gumbel().eval(), (torch.randn(3, 6), torch.rand(3, 12))


class Spiking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        a, b = torch.zeros(x.shape[0], 16), torch.zeros(x.shape[0], 4)
        spikes = torch.zeros_like(b)
        for t in range(x.shape[1]):
            a = 0.9 * a + self.first(x[:, t])
            fired = (a > 1).to(x.dtype)
            a = a * (1 - fired)
            b = 0.8 * b + self.second(fired)
            out = (b > 0.5).to(x.dtype)
            b = b - 0.5 * out
            spikes = spikes + out
        return spikes


@model("decisions", "a spiking network: leaky sums, thresholds and resets over 20 steps")
def third_spiking():
    torch.manual_seed(307)
    return Spiking().eval(), (torch.randn(2, 20, 8),)


class Jpeg(nn.Module):
    """Blocks of 8x8, a cosine transform, steps of a table and back."""

    def __init__(self) -> None:
        super().__init__()
        k, n = torch.arange(8.0)[:, None], torch.arange(8.0)
        basis = torch.cos(math.pi / 8 * (n + 0.5) * k) * 0.5
        basis[0] /= math.sqrt(2)
        self.register_buffer("basis", basis)
        self.register_buffer("table", 10 + 3 * (k + n))

    def forward(self, image):
        b, h, w = image.shape
        blocks = image.view(b, h // 8, 8, w // 8, 8).transpose(2, 3) * 255 - 128
        levels = torch.round(self.basis @ blocks @ self.basis.t() / self.table)
        back = self.basis.t() @ (levels * self.table) @ self.basis
        pixels = ((back + 128) / 255).clamp(0, 1)
        return pixels.transpose(2, 3).reshape(b, h, w), levels.to(torch.int32)


@model("vision", "JPEG inside: cosine transform, rounding to a table's steps, back; coefficients near a half flip")
def third_jpeg():
    torch.manual_seed(308)
    return Jpeg(), (torch.rand(2, 16, 24),)


class ConjugateGradient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(309)
        a = torch.randn(5, 5)
        self.register_buffer("a", a @ a.t() + 0.5 * torch.eye(5))

    def forward(self, b):
        x = torch.zeros_like(b)
        r = p = b
        rr = (r * r).sum(-1, keepdim=True)
        for _ in range(9):
            ap = p @ self.a
            alpha = rr / (p * ap).sum(-1, keepdim=True).clamp(min=1e-30)
            x, r = x + alpha * p, r - alpha * ap
            new = (r * r).sum(-1, keepdim=True)
            p, rr = r + new / rr.clamp(min=1e-30) * p, new
        return x, rr.sqrt()


@model(
    "numerics", "conjugate gradients four steps beyond convergence: residuals are rounding, quotients of them decide"
)
def third_conjugate_gradient():
    return ConjugateGradient(), (torch.randn(3, 5),)


class GramSchmidt(nn.Module):
    def forward(self, x):
        basis: list[torch.Tensor] = []
        for i in range(x.shape[1]):
            v = x[:, i]
            for u in basis:
                v = v - (v * u).sum(-1, keepdim=True) * u
            basis.append(v / v.norm(dim=-1, keepdim=True).clamp(min=1e-12))
        return torch.stack(basis, 1)


@model("numerics", "Gram-Schmidt on more vectors than dimensions: the last ones are directions of rounding errors")
def third_gram_schmidt():
    torch.manual_seed(310)
    return GramSchmidt(), (torch.randn(3, 6, 4),)


class CatMap(nn.Module):
    def forward(self, x):
        a, b = x.unbind(-1)
        for _ in range(12):
            a, b = torch.remainder(2 * a + b, 1.0), torch.remainder(a + b, 1.0)
        return torch.stack([a, b], -1)


@model("numerics", "Arnold's cat map, twelve turns")
def third_cat_map():
    torch.manual_seed(311)
    return CatMap(), (torch.rand(4, 6, 2),)


class BeamSearch(nn.Module):
    """Six steps of beam search over a small recurrent decoder."""

    def __init__(self, words: int = 11, beams: int = 3) -> None:
        super().__init__()
        self.words, self.beams = words, beams
        self.embed, self.cell, self.head = nn.Embedding(words, 8), nn.GRUCell(8, 8), nn.Linear(8, words)

    def forward(self, state):
        b = state.shape[0]
        h = state[:, None].expand(-1, self.beams, -1)
        scores = torch.tensor([0.0, -1e9, -1e9]).expand(b, -1)
        tokens = torch.zeros(b, self.beams, 1, dtype=torch.int64)
        for _ in range(6):
            h = self.cell(self.embed(tokens[:, :, -1]).flatten(0, 1), h.reshape(-1, 8)).view(b, self.beams, 8)
            every = scores[:, :, None] + self.head(h).log_softmax(-1)
            scores, flat = every.flatten(1).topk(self.beams)
            parent, word = flat // self.words, flat % self.words
            h = h.gather(1, parent[:, :, None].expand(-1, -1, 8))
            before = tokens.gather(1, parent[:, :, None].expand(-1, -1, tokens.shape[2]))
            tokens = torch.cat([before, word[:, :, None]], -1)
        return tokens[:, :, 1:], scores


@model("decoders", "beam search unrolled: parents gathered, ids as output")
def third_beam_search():
    torch.manual_seed(312)
    return BeamSearch().eval(), (torch.randn(2, 8),)


class Levinson(nn.Module):
    """Linear prediction of an audio frame by Levinson's recursion."""

    def __init__(self, order: int = 8) -> None:
        super().__init__()
        self.order = order

    def forward(self, frame):
        n = frame.shape[1]
        r = [(frame[:, : n - k] * frame[:, k:]).sum(1) for k in range(self.order + 1)]
        a = [torch.ones_like(r[0])]
        error = r[0] + 1e-6
        for m in range(1, self.order + 1):
            k = -sum(a[i] * r[m - i] for i in range(m)) / error
            a = [*a, torch.zeros_like(k)]
            a = [a[i] + k * a[m - i] for i in range(m + 1)]
            error = error * (1 - k * k)
        return torch.stack(a, 1), error


@model("audio", "linear prediction of a voiced frame by Levinson's recursion: prediction error from cancellation")
def third_levinson():
    t = torch.arange(80.0)
    phase = torch.tensor([[0.11], [0.23], [0.05]])
    return Levinson(), (torch.sin(t * phase) + 0.5 * torch.sin(t * phase * 2.7),)


class Biquad(nn.Module):
    def forward(self, x):
        y1 = y2 = x1 = x2 = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            y = 0.01 * (x[:, t] + 2 * x1 + x2) + 1.985 * y1 - 0.9875 * y2
            x1, x2, y1, y2 = x[:, t], x1, y, y1
            out.append(y)
        return torch.stack(out, 1)


@model("audio", "a resonant filter at the edge of stability over 120 samples")
def third_biquad():
    torch.manual_seed(313)
    return Biquad(), (torch.randn(2, 120),)


class PhaseUnwrap(nn.Module):
    def forward(self, phase):
        step = phase[:, 1:] - phase[:, :-1]
        step = step - 2 * math.pi * torch.round(step / (2 * math.pi))
        return torch.cat([phase[:, :1], phase[:, :1] + step.cumsum(1)], 1)


@model("audio", "phases unwrapped: a rounded turn moves the whole rest by two pi")
def third_phase_unwrapped():
    torch.manual_seed(314)
    return PhaseUnwrap(), (torch.rand(3, 24) * 2 * math.pi - math.pi,)


class EntropyModel(nn.Module):
    """Bits of a rounded latent under a learned logistic."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.hyper = nn.Linear(12, 6), nn.Linear(12, 12)

    def forward(self, x):
        latent = torch.round(self.encode(x) * 4)
        mean, scale = self.hyper(x).chunk(2, -1)
        scale = functional.softplus(scale) + 0.05
        upper, lower = (latent - mean + 0.5) / scale, (latent - mean - 0.5) / scale
        sign = -torch.sign(upper + lower)
        p = (torch.sigmoid(sign * upper) - torch.sigmoid(sign * lower)).abs()
        bits = -torch.log2(p.clamp(min=1e-9))
        return latent, bits.sum(-1)


@model("probabilistic", "learned compression: bits of rounded latents from a difference of distribution functions")
def third_entropy_model():
    torch.manual_seed(315)
    return EntropyModel().eval(), (torch.randn(3, 12),)


class ValueDistribution(nn.Module):
    """C51's projection of a shifted distribution on fixed atoms."""

    def __init__(self, atoms: int = 21) -> None:
        super().__init__()
        self.atoms, self.low, self.high = atoms, -10.0, 10.0
        self.register_buffer("support", torch.linspace(-10, 10, atoms))
        self.net = nn.Linear(5, atoms)

    def forward(self, state, reward, done):
        p = self.net(state).softmax(-1)
        target = (reward[:, None] + 0.99 * self.support * (~done)[:, None]).clamp(self.low, self.high)
        b = (target - self.low) / ((self.high - self.low) / (self.atoms - 1))
        lower, upper = b.floor(), b.ceil()
        same = (lower == upper).to(p.dtype)
        out = torch.zeros_like(p)
        out = out.scatter_add(1, lower.long(), p * (upper - b + same))
        return out.scatter_add(1, upper.long(), p * (b - lower))


@model("reinforcement", "C51: a distribution projected on atoms by floor and ceil, which meet at whole numbers")
def third_value_distribution():
    torch.manual_seed(316)
    return ValueDistribution().eval(), (torch.randn(4, 5), torch.randn(4).round(), torch.rand(4) > 0.5)


class Nucleus(nn.Module):
    """The usual processors of logits: repetition, temperature, top-k, top-p."""

    def forward(self, logits, previous):
        seen = logits.gather(1, previous)
        logits = logits.scatter(1, previous, torch.where(seen < 0, seen * 1.2, seen / 1.2))
        logits = logits / 0.7
        kth = logits.topk(8).values[:, -1:]
        logits = torch.where(logits < kth, -torch.inf, logits)
        ordered, place = logits.sort(descending=True)
        total = ordered.softmax(-1).cumsum(-1)
        drop = total - ordered.softmax(-1) > 0.9
        drop = torch.zeros_like(drop).scatter(1, place, drop)
        return logits.masked_fill(drop, -torch.inf).softmax(-1)


@model("decoders", "repetition penalty, top-k and top-p in the graph", range={"previous": (0, 19)})
def third_nucleus():
    torch.manual_seed(317)
    return Nucleus(), (torch.randn(3, 20) * 2, torch.stack([torch.randperm(20)[:4] for _ in range(3)]))


class HashBuckets(nn.Module):
    """Random planes make a bucket, the bucket an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("planes", torch.randn(12, 8))
        self.register_buffer("weights", 2 ** torch.arange(8))
        self.table = nn.Embedding(256, 6)

    def forward(self, x):
        bucket = ((x @ self.planes > 0).long() * self.weights).sum(-1)
        return bucket, self.table(bucket)


@model("decisions", "locality-sensitive hashing: signs of products become the bits of an id")
def third_hash_buckets():
    torch.manual_seed(318)
    return HashBuckets().eval(), (torch.randn(4, 12),)


class Conformal(nn.Module):
    """Adaptive prediction sets: the most likely classes up to a calibrated mass."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 7))

    def forward(self, x):
        p = (self.net(x) / 0.3).softmax(-1)
        ordered, place = p.sort(dim=-1, descending=True)
        keep = ordered.cumsum(-1) - ordered < 0.85
        chosen = torch.zeros_like(keep).scatter(-1, place, keep)
        return chosen, chosen.sum(-1)


@model("decisions", "conformal prediction sets: boolean members and their count")
def third_conformal():
    torch.manual_seed(319)
    return Conformal().eval(), (torch.randn(5, 6),)


class Equalise(nn.Module):
    """Histogram equalisation of uint8 pictures."""

    def forward(self, image):
        flat = image.flatten(1).long()
        counts = torch.zeros(flat.shape[0], 256, dtype=torch.int64).scatter_add(1, flat, torch.ones_like(flat))
        total = counts.cumsum(1)
        first = torch.where(counts > 0, total, flat.shape[1] + 1).amin(1, keepdim=True)
        table = ((total - first).clamp(min=0) * 255) // (flat.shape[1] - first).clamp(min=1)
        return table.gather(1, flat).to(torch.uint8).view_as(image)


@model("vision", "histogram equalisation: counts, running sums and a table, all integers, uint8 in and out")
def third_equalise():
    torch.manual_seed(320)
    return Equalise(), (torch.randint(30, 90, (2, 12, 12), dtype=torch.uint8),)


class TopHat(nn.Module):
    """White top hat and black hat by pooling."""

    def forward(self, image):
        def dilate(x):
            return functional.max_pool2d(x, 3, 1, 1)

        def erode(x):
            return -functional.max_pool2d(-x, 3, 1, 1)

        return image - dilate(erode(image)), erode(dilate(image)) - image


@model("vision", "morphology: openings and closings, most differences exactly zero")
def third_top_hat():
    torch.manual_seed(321)
    return TopHat(), (torch.rand(2, 1, 14, 14),)


class Components(nn.Module):
    """Connected components: every pixel takes the largest index of its neighbours, again and again."""

    def forward(self, mask):
        _, h, w = mask.shape
        inside = mask[:, None].to(torch.float32)
        label = torch.arange(1, h * w + 1, dtype=torch.float32).view(1, 1, h, w) * inside
        for _ in range(16):
            label = functional.max_pool2d(label, 3, 1, 1) * inside
        return label[:, 0].to(torch.int32), (label > 0).sum((1, 2, 3))


@model("vision", "connected components of boolean masks by repeated pooling")
def third_components():
    torch.manual_seed(322)
    return Components(), (torch.rand(2, 10, 10) > 0.6,)


class IsotonicTable(nn.Module):
    """A calibrated probability: the bin by comparison, linear in between."""

    def __init__(self) -> None:
        super().__init__()
        x = torch.randn(12).sort().values
        self.register_buffer("x", x)
        self.register_buffer("y", torch.rand(12).sort().values)

    def forward(self, score):
        place = (score[..., None] >= self.x[1:-1]).sum(-1)
        x0, x1, y0, y1 = self.x[place], self.x[place + 1], self.y[place], self.y[place + 1]
        return (y0 + (score - x0) / (x1 - x0) * (y1 - y0)).clamp(0, 1), place


@model("tabular", "a calibration table: bins by comparison, their numbers as output")
def third_isotonic_table():
    torch.manual_seed(323)
    return IsotonicTable(), (torch.randn(4, 5),)


class HoltWinters(nn.Module):
    def __init__(self, season: int = 6) -> None:
        super().__init__()
        self.season = season
        self.rates = nn.Parameter(torch.tensor([0.2, -1.5, -0.5]))

    def forward(self, series):
        alpha, beta, gamma = torch.sigmoid(self.rates)
        level, trend = series[:, : self.season].mean(1), torch.zeros_like(series[:, 0])
        seasons = [series[:, i] / level for i in range(self.season)]
        for t in range(self.season, series.shape[1]):
            s = seasons[t - self.season]
            new = alpha * (series[:, t] / s) + (1 - alpha) * (level + trend)
            trend = beta * (new - level) + (1 - beta) * trend
            level = new
            seasons.append(gamma * (series[:, t] / level) + (1 - gamma) * s)
        return torch.stack([(level + h * trend) * seasons[h - 1 - self.season] for h in range(1, 5)], 1)


@model("time series", "Holt-Winters with multiplied seasons: quotients that blow up near zero")
def third_holt_winters():
    torch.manual_seed(324)
    t = torch.arange(30.0)
    return HoltWinters(), (10 + 0.3 * t + 3 * torch.sin(t * math.pi / 3) + torch.rand(3, 30),)


class Pid(nn.Module):
    """A saturated controller with anti-windup in the loop with a plant."""

    def forward(self, goal, gains):
        kp, ki, kd = gains.unbind(-1)
        x = v = total = last = torch.zeros_like(goal)
        track, force = [], []
        for _ in range(40):
            error = goal - x
            raw = kp * error + ki * total + kd * (error - last) / 0.05
            u = raw.clamp(-2, 2)
            total = torch.where((raw != u) & (raw * error > 0), total, total + error * 0.05)
            last = error
            v = v + 0.05 * (u - 0.3 * v)
            x = x + 0.05 * v
            track.append(x)
            force.append(u)
        return torch.stack(track, -1), torch.stack(force, -1)


@model("control", "PID with saturation and anti-windup: a comparison for equality switches the integrator")
def third_pid():
    torch.manual_seed(325)
    return Pid(), (torch.randn(3), torch.rand(3, 3) * 4)


class Ddim(nn.Module):
    """One step of a diffusion sampler with the step as an integer input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0))
        self.embed = nn.Linear(16, 16)
        self.net = nn.Sequential(nn.Linear(24, 32), nn.SiLU(), nn.Linear(32, 8))

    def forward(self, noisy, step, before):
        a, b = self.alphas[step][:, None], torch.where(before >= 0, self.alphas[before.clamp(min=0)], 1.0)[:, None]
        angle = step[:, None] * torch.exp(-math.log(10000) * torch.arange(8) / 8)
        time = self.embed(torch.cat([angle.sin(), angle.cos()], -1))
        noise = self.net(torch.cat([noisy, time], -1))
        clean = ((noisy - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
        again = (noisy - a.sqrt() * clean) / (1 - a).sqrt()
        return b.sqrt() * clean + (1 - b).sqrt() * again


@model(
    "diffusion",
    "a DDIM step: tables of noise by integer steps, -1 for the last",
    range={"step": (0, 999), "before": (-1, 979)},
)
def third_ddim():
    torch.manual_seed(326)
    return Ddim().eval(), (torch.randn(3, 8), torch.tensor([999, 500, 19]), torch.tensor([979, 480, -1]))


class Heun(nn.Module):
    """EDM: preconditioned denoiser and Heun's steps over Karras' noise levels."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 24), nn.SiLU(), nn.Linear(24, 6))
        ramp = torch.linspace(0, 1, 7)
        sigmas = (80 ** (1 / 7) + ramp * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7
        self.sigmas = [*sigmas.tolist(), 0.0]

    def denoise(self, x, sigma):
        skip, out, scale = (
            0.25 / (sigma**2 + 0.25),
            sigma * 0.5 / math.sqrt(sigma**2 + 0.25),
            1 / math.sqrt(sigma**2 + 0.25),
        )
        hint = torch.full_like(x[:, :1], math.log(sigma) / 4)
        return skip * x + out * self.net(torch.cat([scale * x, hint], -1))

    def forward(self, noise):
        x = noise * self.sigmas[0]
        for now, then in zip(self.sigmas, self.sigmas[1:], strict=False):
            slope = (x - self.denoise(x, now)) / now
            ahead = x + (then - now) * slope
            if then > 0:
                slope = (slope + (ahead - self.denoise(ahead, then)) / then) / 2
                ahead = x + (then - now) * slope
            x = ahead
        return x


@model("diffusion", "EDM's sampler by Heun: noise of 80 down to 0.002, divided by the small ones")
def third_heun():
    torch.manual_seed(327)
    return Heun().eval(), (torch.randn(3, 6),)


class LambdaRank(nn.Module):
    """A loss inside forward: pairs weighted by what a swap would change."""

    def forward(self, scores, labels):
        rank = scores.argsort(dim=-1, descending=True).argsort(dim=-1)
        discount = 1 / torch.log2(rank + 2.0)
        gain = 2.0**labels - 1
        swap = ((gain[:, :, None] - gain[:, None]) * (discount[:, :, None] - discount[:, None])).abs()
        better = labels[:, :, None] > labels[:, None]
        loss = functional.softplus(-(scores[:, :, None] - scores[:, None]))
        return (torch.where(better, loss * swap, 0.0)).sum((1, 2))


@model("ranking", "LambdaRank's loss: ranks by sorting twice", range={"labels": (0, 4)})
def third_lambda_rank():
    torch.manual_seed(328)
    return LambdaRank(), (torch.randn(3, 7), torch.randint(0, 5, (3, 7)))


class Kendall(nn.Module):
    def forward(self, a, b):
        left = torch.sign(a[:, :, None] - a[:, None])
        right = torch.sign(b[:, :, None] - b[:, None])
        agree = (left * right).sum((1, 2))
        return agree / ((left != 0).sum((1, 2)) * (right != 0).sum((1, 2))).sqrt()


@model("ranking", "Kendall's tau-b: signs of differences; constant rows are zero by zero")
def third_kendall():
    torch.manual_seed(329)
    return Kendall(), (torch.randn(3, 9), torch.randn(3, 9).round())


class Robust(nn.Module):
    """Median, median deviation, a trimmed mean and Huber weights by hand."""

    def forward(self, x):
        ordered = x.sort(dim=-1).values
        n = x.shape[-1]
        median = (ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2
        away = (x - median[:, None]).abs()
        mad = away.sort(dim=-1).values[:, n // 2] * 1.4826
        z = away / mad[:, None]
        weights = torch.where(z <= 1.345, 1.0, 1.345 / z)
        return median, mad, ordered[:, 2:-2].mean(-1), (weights * x).sum(-1) / weights.sum(-1), z > 3


@model("statistics", "robust statistics: median, MAD, Huber weights; zero by zero for a row of equals")
def third_robust():
    torch.manual_seed(330)
    return Robust(), (torch.randn(4, 12),)


class DecayScan(nn.Module):
    """A recurrence with decay as a running sum of what was divided by powers of the decay."""

    def __init__(self, length: int = 96) -> None:
        super().__init__()
        self.register_buffer("powers", 0.5 ** torch.arange(length, dtype=torch.float32))

    def forward(self, x):
        return (x / self.powers).cumsum(1) * self.powers


@model("numerics", "an exponential average by cumsum of numbers up to 1e28")
def third_decay_scan():
    torch.manual_seed(331)
    return DecayScan(), (torch.randn(3, 96),)


class LinearAttention(nn.Module):
    """Causal attention of features elu + 1 as running sums, with a normaliser."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        state = (k[..., :, None] * v[..., None, :]).cumsum(1)
        norm = (q * k.cumsum(1)).sum(-1, keepdim=True)
        return self.out((q[..., None, :] @ state).squeeze(-2) / (norm + 1e-6))


@model(
    "decoders",
    "causal linear attention: a running sum of outer products, length dynamic",
    dynamic={"x": {0: "batch", 1: "length"}},
)
def third_linear_attention():
    torch.manual_seed(332)
    return LinearAttention().eval(), (torch.randn(2, 10, 12),)


class Performer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("features", torch.linalg.qr(torch.randn(8, 8)).Q * math.sqrt(8))

    def kernel(self, x):
        x = x / 8**0.25
        y = x @ self.features.t()
        return torch.exp(y - (x * x).sum(-1, keepdim=True) / 2 - y.amax((-1, -2), keepdim=True)) + 1e-4

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = self.kernel(q), self.kernel(k)
        return (q @ (k.transpose(1, 2) @ v)) / (q @ k.sum(1)[..., None])


@model("decoders", "Performer: positive random features, exponentials that underflow to the epsilon")
def third_performer():
    torch.manual_seed(333)
    return Performer().eval(), (torch.randn(2, 9, 8),)


class Rwkv(nn.Module):
    """RWKV's stable recurrence with a running maximum, state in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.k, self.v, self.r = (nn.Linear(8, 8) for _ in range(3))
        self.decay, self.bonus = nn.Parameter(-torch.rand(8).exp()), nn.Parameter(torch.randn(8))

    def forward(self, x, above, below, top):
        k, v, r = self.k(x), self.v(x), self.r(x).sigmoid()
        out = []
        for t in range(x.shape[1]):
            new = torch.maximum(top, self.bonus + k[:, t])
            e, f = torch.exp(top - new), torch.exp(self.bonus + k[:, t] - new)
            out.append(r[:, t] * (e * above + f * v[:, t]) / (e * below + f))
            new = torch.maximum(top + self.decay, k[:, t])
            e, f = torch.exp(top + self.decay - new), torch.exp(k[:, t] - new)
            above, below, top = e * above + f * v[:, t], e * below + f, new
        return torch.stack(out, 1), above, below, top


@model("decoders", "RWKV: sums kept beside their maximum, which starts at -1e38")
def third_rwkv():
    torch.manual_seed(334)
    return Rwkv().eval(), (torch.randn(2, 6, 8), torch.zeros(2, 8), torch.zeros(2, 8), torch.full((2, 8), -1e38))


class DeltaNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.beta = nn.Linear(8, 24), nn.Linear(8, 1)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, beta = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1), self.beta(x).sigmoid()
        state = torch.zeros(x.shape[0], 8, 8)
        out = []
        for t in range(x.shape[1]):
            old = torch.einsum("bij,bj->bi", state, k[:, t])
            state = state + torch.einsum("bi,bj->bij", beta[:, t] * (v[:, t] - old), k[:, t])
            out.append(torch.einsum("bij,bj->bi", state, q[:, t]))
        return torch.stack(out, 1), state


@model("decoders", "the delta rule: a matrix corrected step by step")
def third_delta_net():
    torch.manual_seed(335)
    return DeltaNet().eval(), (torch.randn(2, 8, 8),)


class DifferentialAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qk, self.v, self.norm = nn.Linear(16, 64), nn.Linear(16, 16), nn.RMSNorm(16)
        self.q1, self.k1, self.q2, self.k2 = (nn.Parameter(torch.randn(16) * 0.1) for _ in range(4))

    def forward(self, x):
        q1, k1, q2, k2 = self.qk(x).chunk(4, -1)
        share = torch.exp((self.q1 * self.k1).sum()) - torch.exp((self.q2 * self.k2).sum()) + 0.8
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)

        def attend(q, k):
            return (q @ k.transpose(1, 2) / 4).masked_fill(future, -torch.inf).softmax(-1)

        return self.norm((attend(q1, k1) - share * attend(q2, k2)) @ self.v(x)) * 0.2


@model(
    "decoders",
    "differential attention: a difference of two softmaxes, normalised",
    dynamic={"x": {0: "batch", 1: "length"}},
)
def third_differential_attention():
    torch.manual_seed(336)
    return DifferentialAttention().eval(), (torch.randn(2, 7, 16),)


class AxialRotary(nn.Module):
    """Rotary angles of rows and columns, and of sections as in multimodal decoders."""

    def __init__(self) -> None:
        super().__init__()
        self.qk = nn.Linear(16, 32)
        self.register_buffer("frequencies", 10000 ** (-torch.arange(0, 8, 2) / 8))

    def rotate(self, x, place):
        angle = (place[..., None].to(x.dtype) * self.frequencies).repeat_interleave(2, -1)
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * angle.cos() + turned * angle.sin()

    def forward(self, x, rows, columns):
        q, k = self.qk(x).chunk(2, -1)

        def both(y):
            return torch.cat([self.rotate(y[..., :8], rows), self.rotate(y[..., 8:], columns)], -1)

        return both(q) @ both(k).transpose(1, 2)


@model(
    "vision",
    "two-dimensional rotary positions given as integers",
    range={"rows": (0, 63), "columns": (0, 63)},
    dynamic={
        "x": {0: "batch", 1: "patches"},
        "rows": {0: "batch", 1: "patches"},
        "columns": {0: "batch", 1: "patches"},
    },
)
def third_axial_rotary():
    torch.manual_seed(337)
    return AxialRotary().eval(), (torch.randn(2, 6, 16), torch.randint(0, 64, (2, 6)), torch.randint(0, 64, (2, 6)))


class SphereTracing(nn.Module):
    """Rays marched through a distance field of spheres and a plane."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centres", torch.tensor([[0.0, 0, 3], [1, 0.5, 4], [-1, -0.3, 5]]))
        self.register_buffer("radii", torch.tensor([1.0, 0.7, 0.9]))

    def distance(self, p):
        return torch.minimum(((p[:, None] - self.centres).norm(dim=-1) - self.radii).amin(-1), p[:, 1] + 1.5)

    def forward(self, direction):
        d = functional.normalize(direction, dim=-1)
        t = torch.zeros_like(d[:, 0])
        for _ in range(24):
            t = (t + self.distance(t[:, None] * d)).clamp(max=20)
        hit = self.distance(t[:, None] * d) < 1e-3
        return t, hit, torch.where(hit, 1 / (1 + t), 0.0)


@model("geometry", "sphere tracing: minima of distances, hit or miss at a thousandth")
def third_sphere_tracing():
    torch.manual_seed(338)
    return SphereTracing(), (torch.cat([torch.randn(6, 2) * 0.3, torch.ones(6, 1)], -1),)


class VolumeRendering(nn.Module):
    """Densities and colours along rays: opacities, what light is left, depth, white behind."""

    def forward(self, sigma, colour, depth):
        step = torch.cat([depth[:, 1:] - depth[:, :-1], torch.full_like(depth[:, :1], 1e10)], 1)
        thickness = functional.relu(sigma) * step
        alpha = 1 - torch.exp(-thickness)
        left = torch.exp(-(thickness.cumsum(1) - thickness))
        weights = alpha * left
        total = weights.sum(1)
        return (
            (weights[..., None] * colour.sigmoid()).sum(1) + (1 - total)[:, None],
            (weights * depth).sum(1) / total,
            total,
        )


@model(
    "geometry",
    "volume rendering: a last step of 1e10, differences of running sums, a depth of zero by zero in empty air",
)
def third_volume_rendering():
    torch.manual_seed(339)
    return VolumeRendering(), (
        torch.randn(3, 16) * 3,
        torch.randn(3, 16, 3),
        torch.linspace(2, 6, 16).expand(3, -1).contiguous(),
    )


class Splat(nn.Module):
    """Gaussians in the plane, sorted by depth and blended front to back."""

    def __init__(self) -> None:
        super().__init__()
        y, x = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
        self.register_buffer("pixels", torch.stack([x, y], -1).view(-1, 2))

    def forward(self, centre, scale, angle, opacity, colour, depth):
        order = depth.argsort(dim=1)

        def sort(v):
            return v.gather(1, order[..., None].expand(-1, -1, v.shape[-1]))

        centre, scale, colour = sort(centre), sort(scale).exp(), sort(colour).sigmoid()
        angle, opacity = angle.gather(1, order), opacity.gather(1, order).sigmoid()
        away = self.pixels[None, None] - centre[:, :, None]
        c, s = angle.cos()[..., None], angle.sin()[..., None]
        u = (c * away[..., 0] + s * away[..., 1]) / scale[..., :1]
        v = (-s * away[..., 0] + c * away[..., 1]) / scale[..., 1:]
        alpha = (opacity[..., None] * torch.exp(-(u * u + v * v) / 2)).clamp(max=0.99)
        alpha = torch.where(alpha < 1 / 255, 0.0, alpha)
        light = torch.log1p(-alpha)
        left = torch.exp(light.cumsum(1) - light)
        return torch.einsum("bnp,bnc->bpc", alpha * left, colour)


@model("geometry", "Gaussian splats in the plane: sorted by depth, faint ones cut, blended", batch_sizes=(1, 3))
def third_splat():
    torch.manual_seed(340)
    return Splat(), (
        torch.rand(2, 7, 2) * 2 - 1, torch.randn(2, 7, 2) * 0.3 - 1, torch.randn(2, 7), torch.randn(2, 7),
        torch.randn(2, 7, 3), torch.rand(2, 7),
    )  # fmt: skip


class RigidMotion(nn.Module):
    """The exponential of a twist and the logarithm of its rotation, with series near zero."""

    def forward(self, twist):
        w, v = twist[:, :3], twist[:, 3:]
        t2 = (w * w).sum(-1)[:, None, None]
        t = t2.clamp(min=1e-12).sqrt()
        small = t2 < 1e-6
        a = torch.where(small, 1 - t2 / 6, t.sin() / t)
        b = torch.where(small, 0.5 - t2 / 24, (1 - t.cos()) / t2.clamp(min=1e-12))
        c = torch.where(small, 1 / 6 - t2 / 120, (t - t.sin()) / (t2 * t).clamp(min=1e-18))
        zero = torch.zeros_like(w[:, 0])
        k = torch.stack([zero, -w[:, 2], w[:, 1], w[:, 2], zero, -w[:, 0], -w[:, 1], w[:, 0], zero], -1).view(-1, 3, 3)
        eye = torch.eye(3)
        rotation = eye + a * k + b * (k @ k)
        move = ((eye + b * k + c * (k @ k)) @ v[..., None]).squeeze(-1)
        angle = torch.acos(((rotation.diagonal(dim1=1, dim2=2).sum(-1) - 1) / 2).clamp(-1, 1))
        return rotation, move, angle


@model("geometry", "SE(3): exponential of a twist with series near zero, angle back by acos of a trace")
def third_rigid_motion():
    torch.manual_seed(341)
    return RigidMotion(), (torch.randn(4, 6),)


class Slerp(nn.Module):
    def forward(self, a, b, t):
        a, b = functional.normalize(a, dim=-1), functional.normalize(b, dim=-1)
        dot = (a * b).sum(-1, keepdim=True)
        b = torch.where(dot < 0, -b, b)
        dot = dot.abs().clamp(max=1)
        theta = torch.acos(dot)
        s = theta.sin()
        near = dot > 0.9995
        wa = torch.where(near, 1 - t, ((1 - t) * theta).sin() / s)
        wb = torch.where(near, t, (t * theta).sin() / s)
        return functional.normalize(wa * a + wb * b, dim=-1)


@model("geometry", "spherical interpolation of quaternions: the sign of a product turns one round", range={"t": (0, 1)})
def third_slerp():
    torch.manual_seed(342)
    return Slerp(), (torch.randn(4, 4), torch.randn(4, 4), torch.rand(4, 1))


class Collatz(nn.Module):
    def forward(self, n):
        steps = torch.zeros_like(n)
        for _ in range(20):
            steps = steps + (n > 1).to(n.dtype)
            n = torch.where(n > 1, torch.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        return n, steps


@model("integers", "Collatz' steps on whole numbers", range={"n": (1, 1000)})
def third_collatz():
    return Collatz(), (torch.tensor([[1, 7, 27], [97, 871, 2]]),)


class ModularPower(nn.Module):
    """Square and multiply modulo a prime: products up to 2**60."""

    def forward(self, base, exponent):
        p = 998244353
        out, base = torch.ones_like(base), base % p
        for bit in range(16):
            odd = (exponent // 2**bit) % 2 == 1
            out = torch.where(odd, out * base % p, out)
            base = base * base % p
        return out


@model(
    "integers",
    "powers modulo a prime: int64 products of 2**60, exact",
    range={"base": (0, 2**31), "exponent": (0, 65535)},
)
def third_modular_power():
    torch.manual_seed(343)
    return ModularPower(), (torch.randint(0, 2**31, (3, 4)), torch.randint(0, 65536, (3, 4)))


class Wraparound(nn.Module):
    """Linear congruential noise: int32 products that overflow and wrap on purpose."""

    def forward(self, seed):
        out = []
        for _ in range(6):
            seed = seed * 1664525 + 1013904223
            out.append(seed)
        return torch.stack(out, -1), torch.stack(out, -1).to(torch.float32) / 2**31


@model("integers", "int32 arithmetic that wraps around on purpose")
def third_wraparound():
    return Wraparound(), (torch.tensor([[1, 2, 3], [40, 500, -6]], dtype=torch.int32),)


class ByteChecksum(nn.Module):
    """uint8 sums that wrap, exclusive or of bytes, a table of 256."""

    def __init__(self) -> None:
        super().__init__()
        table = []
        for value in range(256):
            for _ in range(8):
                value = (value << 1) ^ 7 if value & 128 else value << 1
            table.append(value & 255)
        self.register_buffer("table", torch.tensor(table))

    def forward(self, data):
        crc = torch.zeros_like(data[:, 0], dtype=torch.int64)
        parity = torch.zeros_like(data[:, 0])
        for i in range(data.shape[1]):
            crc = self.table[torch.bitwise_xor(crc, data[:, i].long())]
            parity = torch.bitwise_xor(parity, data[:, i])
        return crc, parity, (data[:, :4] + data[:, 4:]) * 3


@model("integers", "CRC-8 by a table, parity, and uint8 arithmetic that wraps")
def third_byte_checksum():
    torch.manual_seed(344)
    return ByteChecksum(), (torch.randint(0, 256, (3, 8), dtype=torch.uint8),)


class Morton(nn.Module):
    """Coordinates interleaved bit by bit and back."""

    def forward(self, x, y):
        code = torch.zeros_like(x)
        for bit in range(10):
            code = code + ((x >> bit) & 1) * 4**bit + ((y >> bit) & 1) * (2 * 4**bit)
        back = torch.zeros_like(x)
        for bit in range(10):
            back = back | (((code >> (2 * bit)) & 1) << bit)
        return code, back


@model("integers", "Morton codes: shifts, masks and powers of four", range={"x": (0, 1023), "y": (0, 1023)})
def third_morton():
    torch.manual_seed(345)
    return Morton(), (torch.randint(0, 1024, (3, 5)), torch.randint(0, 1024, (3, 5)))


class MinHash(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.randint(1, 2**31 - 1, (16,)))
        self.register_buffer("b", torch.randint(0, 2**31 - 1, (16,)))

    def forward(self, left, right):
        def sign(tokens):
            return ((tokens[..., None] * self.a + self.b) % (2**31 - 1)).amin(1)

        a, b = sign(left), sign(right)
        return a, (a == b).to(torch.float32).mean(-1)


@model(
    "integers",
    "MinHash: minima of hashes of 2**62, share of equal ones",
    range={"left": (0, 2**30), "right": (0, 2**30)},
)
def third_min_hash():
    torch.manual_seed(346)
    left = torch.randint(0, 2**30, (2, 9))
    return MinHash(), (left, torch.cat([left[:, :6], torch.randint(0, 2**30, (2, 3))], 1))


class EditDistance(nn.Module):
    def forward(self, a, b):
        row = torch.arange(b.shape[1] + 1).expand(a.shape[0], -1).unbind(1)
        for i in range(a.shape[1]):
            new = [torch.full_like(row[0], i + 1)]
            for j in range(b.shape[1]):
                change = row[j] + (a[:, i] != b[:, j]).long()
                new.append(torch.minimum(torch.minimum(row[j + 1], new[j]) + 1, change))
            row = new
        return row[-1]


@model("text", "Levenshtein's distance of ids: a table of integer minima", range={"a": (0, 5), "b": (0, 5)})
def third_edit_distance():
    torch.manual_seed(347)
    return EditDistance(), (torch.randint(0, 4, (3, 6)), torch.randint(0, 4, (3, 5)))


class Warping(nn.Module):
    """Dynamic time warping, hard and soft."""

    def forward(self, a, b):
        cost = (a[:, :, None] - b[:, None]).square()
        big = torch.full_like(cost[:, 0, 0], 1e10)
        hard, soft = {(0, 0): torch.zeros_like(big)}, {(0, 0): torch.zeros_like(big)}
        for i in range(1, a.shape[1] + 1):
            for j in range(1, b.shape[1] + 1):
                before = ((i - 1, j), (i, j - 1), (i - 1, j - 1))
                hard[i, j] = cost[:, i - 1, j - 1] + torch.stack([hard.get(p, big) for p in before]).amin(0)
                stacked = torch.stack([soft.get(p, big) for p in before])
                soft[i, j] = cost[:, i - 1, j - 1] - 0.1 * torch.logsumexp(-stacked / 0.1, 0)
        return hard[i, j], soft[i, j]


@model("time series", "dynamic time warping, hard and soft, walls of 1e10")
def third_warping():
    torch.manual_seed(348)
    return Warping(), (torch.randn(3, 6), torch.randn(3, 7))


class CtcForward(nn.Module):
    """CTC's forward variables with -inf for what cannot be reached."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 5)

    def forward(self, x, target):
        logp = self.net(x).log_softmax(-1)
        blank = torch.zeros_like(target)
        label = torch.stack([blank, target], -1).flatten(1)
        label = torch.cat([label, blank[:, :1]], 1)
        skip = torch.cat([torch.zeros_like(label[:, :2]) > 0, (label[:, 2:] != label[:, :-2]) & (label[:, 2:] != 0)], 1)
        first = torch.arange(label.shape[1]) < 2
        alpha = torch.where(first, logp[:, 0].gather(1, label), -torch.inf)
        gone = torch.full_like(alpha[:, :2], -torch.inf)
        for t in range(1, x.shape[1]):
            one = torch.cat([gone[:, :1], alpha[:, :-1]], 1)
            two = torch.where(skip, torch.cat([gone, alpha[:, :-2]], 1), -torch.inf)
            every = torch.stack([alpha, one, two])
            top = every.amax(0)
            top = torch.where(top.isinf(), 0.0, top)
            alpha = top + (every - top).exp().sum(0).log() + logp[:, t].gather(1, label)
        return alpha, -torch.logsumexp(alpha[:, -2:], 1)


@model("audio", "CTC's forward recursion: -inf for what cannot be reached, log of zero", range={"target": (1, 4)})
def third_ctc_forward():
    torch.manual_seed(349)
    return CtcForward().eval(), (torch.randn(2, 7, 6), torch.randint(1, 5, (2, 3)))


class ConstantQ(nn.Module):
    """Complex kernels of growing length as pairs of convolutions: magnitude in dB."""

    def __init__(self) -> None:
        super().__init__()
        n = torch.arange(128.0) - 64
        real, imaginary = [], []
        for k in range(12):
            f = 0.02 * 2 ** (k / 4)
            window = torch.exp(-((n / (0.8 / f)) ** 2))
            real.append(window * torch.cos(2 * math.pi * f * n))
            imaginary.append(window * torch.sin(2 * math.pi * f * n))
        self.register_buffer("real", torch.stack(real)[:, None])
        self.register_buffer("imaginary", torch.stack(imaginary)[:, None])

    def forward(self, wave):
        re = functional.conv1d(wave[:, None], self.real, stride=16, padding=64)
        im = functional.conv1d(wave[:, None], self.imaginary, stride=16, padding=64)
        return 10 * torch.log10(re * re + im * im + 1e-6)


@model(
    "audio",
    "a constant-Q transform: dB of silence; length dynamic",
    dynamic={"wave": {0: "batch", 1: "samples"}},
    range={"samples": (160, 400)},
)
def third_constant_q():
    t = torch.arange(256.0)
    return ConstantQ(), (torch.sin(0.3 * t)[None] * torch.tensor([[1.0], [0.01]]),)


class OverlapAdd(nn.Module):
    """A short-time transform by convolution, a mask, and back by a transposed one over the window's sum."""

    def __init__(self, size: int = 32, hop: int = 8) -> None:
        super().__init__()
        self.hop = hop
        k, n = torch.arange(size // 2 + 1.0)[:, None], torch.arange(float(size))
        window = torch.hann_window(size)
        self.register_buffer(
            "forth", torch.cat([torch.cos(2 * math.pi * k * n / size), -torch.sin(2 * math.pi * k * n / size)])
        )
        weight = torch.full((size // 2 + 1, 1), 2.0 / size)
        weight[0] = weight[-1] = 1.0 / size
        self.register_buffer("back", self.forth * torch.cat([weight, weight]))
        self.register_buffer("window", window)

    def forward(self, wave):
        y = functional.conv1d(wave[:, None], (self.forth * self.window)[:, None], stride=self.hop)
        re, im = y.chunk(2, 1)
        power = re * re + im * im
        gain = (1 - power.mean(2, keepdim=True) * 0.3 / power.clamp(min=1e-8)).clamp(min=0.05)
        y = torch.cat([re * gain, im * gain], 1)
        out = functional.conv_transpose1d(y, (self.back * self.window)[:, None], stride=self.hop)
        norm = functional.conv_transpose1d(torch.ones_like(y[:, :1]), self.window.square()[None, None], stride=self.hop)
        return (out / norm.clamp(min=1e-8)).squeeze(1)


@model("audio", "noise suppression: transform, gains, overlap-add over a window's sum that starts at zero")
def third_overlap_add():
    torch.manual_seed(350)
    return OverlapAdd(), (torch.randn(2, 128),)


class Resample(nn.Module):
    """From 44.1 to 16 kHz alike: rate 5 to 3 with a windowed sinc, phases as channels."""

    def __init__(self) -> None:
        super().__init__()
        n = torch.arange(-12.0, 13)
        bank = []
        for phase in range(3):
            t = (n - phase * 5 / 3) * 0.6
            bank.append(torch.sinc(t) * torch.cos(math.pi * t / 30).square() * 0.6)
        self.register_buffer("bank", torch.stack(bank)[:, None])

    def forward(self, wave):
        y = functional.conv1d(functional.pad(wave[:, None], (12, 12)), self.bank, stride=5)
        return y.transpose(1, 2).flatten(1)


@model(
    "audio",
    "resampling by a polyphase sinc",
    dynamic={"wave": {0: "batch", 1: "samples"}},
    range={"samples": (20, 300)},
)
def third_resample():
    torch.manual_seed(351)
    return Resample(), (torch.randn(2, 100),)


class Pitch(nn.Module):
    """YIN: cumulative mean of differences, the first dip under a threshold."""

    def forward(self, frame):
        n = 40
        d = torch.stack([(frame[:, :n] - frame[:, k : k + n]).square().sum(1) for k in range(1, 40)], 1)
        mean = d * torch.arange(1, 40) / d.cumsum(1).clamp(min=1e-12)
        under = mean < 0.15
        first = torch.where(under.any(1), under.to(torch.int64).argmax(1), mean.argmin(1))
        left, mid, right = (mean.gather(1, (first + o).clamp(0, 38)[:, None])[:, 0] for o in (-1, 0, 1))
        shift = (left - right) / (2 * (left - 2 * mid + right))
        return first + 1 + shift, first


@model("audio", "pitch by YIN: the first dip under a threshold, a parabola's tip by a quotient")
def third_pitch():
    t = torch.arange(80.0)
    return Pitch(), (torch.sin(t * torch.tensor([[0.41], [0.77], [0.2]])) + 0.2 * torch.sin(2 * t),)


class Garch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.tensor([-4.0, 0.1, 0.8]))

    def forward(self, returns):
        omega, alpha, beta = self.raw[0].exp(), self.raw[1], self.raw[2]
        h = returns.var(1)
        loss = torch.zeros_like(h)
        for t in range(returns.shape[1]):
            loss = loss + 0.5 * (math.log(2 * math.pi) + h.log() + returns[:, t].square() / h)
            h = omega + alpha * returns[:, t].square() + beta * h
        return h.sqrt() * math.sqrt(252), loss


@model("finance", "GARCH: a variance's recursion and its likelihood")
def third_garch():
    torch.manual_seed(352)
    return Garch(), (torch.randn(3, 30) * 0.02,)


class Drawdown(nn.Module):
    """What a desk reports: drawdown, Sharpe, Sortino, value at risk, streaks."""

    def forward(self, returns):
        wealth = torch.exp(torch.log1p(returns).cumsum(1))
        top = wealth[:, 0]
        worst, streak, longest = torch.zeros_like(top), torch.zeros_like(top), torch.zeros_like(top)
        for t in range(returns.shape[1]):
            top = torch.maximum(top, wealth[:, t])
            worst = torch.minimum(worst, wealth[:, t] / top - 1)
            streak = torch.where(returns[:, t] > 0, streak + 1, 0.0)
            longest = torch.maximum(longest, streak)
        down = returns.clamp(max=0).square().mean(1).sqrt()
        ordered = returns.sort(dim=1).values
        return worst, returns.mean(1) / returns.std(1), returns.mean(1) / down, ordered[:, 1], longest


@model("finance", "risk figures: ratios of mean and deviation, NaN where a return is below minus one")
def third_drawdown():
    torch.manual_seed(353)
    return Drawdown(), (torch.randn(3, 24) * 0.03,)


class ImpliedVolatility(nn.Module):
    """Newton's steps on a price: the slope vanishes far from the money."""

    def forward(self, price, strike):
        sigma = torch.full_like(price, 0.3)
        cdf = lambda x: 0.5 * (1 + torch.erf(x / math.sqrt(2)))  # noqa: E731
        for _ in range(12):
            d1 = (-strike.log() + 0.5 * sigma.square()) / sigma
            value = cdf(d1) - strike * cdf(d1 - sigma)
            slope = torch.exp(-d1.square() / 2) / math.sqrt(2 * math.pi)
            sigma = (sigma - (value - price) / slope.clamp(min=1e-8)).clamp(1e-3, 5)
        return sigma


@model(
    "finance",
    "implied volatility by Newton: a slope that vanishes, clamped at both ends",
    range={"price": (0, 1), "strike": (0.2, 5)},
)
def third_implied_volatility():
    torch.manual_seed(354)
    return ImpliedVolatility(), (torch.rand(3, 4) * 0.2 + 0.1, torch.rand(3, 4) * 0.4 + 0.8)


class BinomialTree(nn.Module):
    """An American put by backward induction, exercised by comparison."""

    def forward(self, spot, sigma):
        n, rate = 24, 0.03
        up = torch.exp(sigma * math.sqrt(1 / n))
        grow = math.exp(rate / n)
        p = ((grow - 1 / up) / (up - 1 / up)).clamp(0, 1)[:, None]
        prices = spot[:, None] * up[:, None] ** torch.arange(-n, n + 1, 2)
        value = (1 - prices).clamp(min=0)
        early = torch.zeros_like(spot)
        for i in range(n - 1, -1, -1):
            prices = spot[:, None] * up[:, None] ** torch.arange(-i, i + 1, 2)
            hold = (p * value[:, 1:] + (1 - p) * value[:, :-1]) / grow
            early = early + (1 - prices > hold).sum(1)
            value = torch.maximum(hold, 1 - prices)
        return value[:, 0], early


@model(
    "finance",
    "an American put on a tree: how often early exercise is better, counted",
    range={"spot": (0.5, 2), "sigma": (0.05, 1)},
)
def third_binomial_tree():
    torch.manual_seed(355)
    return BinomialTree(), (torch.rand(4) + 0.5, torch.rand(4) * 0.4 + 0.1)


class WebMercator(nn.Module):
    """Degrees to tiles and the geohash's bits: floors of scaled coordinates, poles clipped."""

    def forward(self, latitude, longitude):
        lat = latitude.clamp(-85.0511, 85.0511) * math.pi / 180
        x = (longitude + 180) / 360
        y = 0.5 - torch.log(torch.tan(math.pi / 4 + lat / 2)) / (2 * math.pi)
        tile = torch.stack([x, y], -1) * 2**16
        low, high, bits = torch.full_like(x, -180), torch.full_like(x, 180), torch.zeros_like(x, dtype=torch.int64)
        for _ in range(15):
            middle = (low + high) / 2
            right = longitude >= middle
            bits = bits * 2 + right.long()
            low, high = torch.where(right, middle, low), torch.where(right, high, middle)
        return tile.floor().long(), tile - tile.floor(), bits


@model("geospatial", "web tiles at zoom 16 and geohash bits", range={"latitude": (-90, 90), "longitude": (-180, 180)})
def third_web_mercator():
    torch.manual_seed(356)
    return WebMercator(), (torch.rand(5) * 160 - 80, torch.rand(5) * 360 - 180)


class Vincenty(nn.Module):
    """Distances on the ellipsoid by iteration: zero by zero for equal points."""

    def forward(self, start, end):
        a, f = 6378137.0, 1 / 298.257223563
        b = a * (1 - f)
        p, q = start * math.pi / 180, end * math.pi / 180
        u1, u2 = torch.atan((1 - f) * torch.tan(p[:, 0])), torch.atan((1 - f) * torch.tan(q[:, 0]))
        gap = q[:, 1] - p[:, 1]
        lam = gap
        for _ in range(8):
            ss = ((u2.cos() * lam.sin()) ** 2 + (u1.cos() * u2.sin() - u1.sin() * u2.cos() * lam.cos()) ** 2).sqrt()
            cs = u1.sin() * u2.sin() + u1.cos() * u2.cos() * lam.cos()
            sigma = torch.acos(cs.clamp(-1, 1))
            sa = u1.cos() * u2.cos() * lam.sin() / ss
            c2a = 1 - sa * sa
            c2m = cs - 2 * u1.sin() * u2.sin() / c2a
            c = f / 16 * c2a * (4 + f * (4 - 3 * c2a))
            lam = gap + (1 - c) * f * sa * (sigma + c * ss * (c2m + c * cs * (2 * c2m**2 - 1)))
        uu = c2a * (a * a - b * b) / (b * b)
        big = 1 + uu / 16384 * (4096 + uu * (uu * (320 - 175 * uu) - 768))
        return torch.where(ss == 0, 0.0, b * big * sigma)


@model(
    "geospatial",
    "Vincenty's distances in metres: 0/0 for equal points, roots of differences",
    range={"start": (-80, 80), "end": (-80, 80)},
)
def third_vincenty():
    torch.manual_seed(357)
    return Vincenty(), (torch.rand(4, 2) * 100 - 50, torch.rand(4, 2) * 100 - 50)


class SchNet(nn.Module):
    """Atoms by number, radial functions with a cut-off, no message to oneself; the energy's sum over a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 12, padding_idx=0)
        self.filter = nn.Sequential(nn.Linear(16, 12), nn.Softplus(), nn.Linear(12, 12))
        self.out = nn.Sequential(nn.Linear(12, 12), nn.Softplus(), nn.Linear(12, 1))
        self.register_buffer("centres", torch.linspace(0, 5, 16))

    def forward(self, numbers, positions):
        there = numbers > 0
        gap = positions[:, :, None] - positions[:, None]
        r = (gap.square().sum(-1) + 1e-6).sqrt()
        pair = there[:, :, None] & there[:, None] & (r < 5) & ~torch.eye(numbers.shape[1], dtype=torch.bool)
        cut = torch.where(pair, 0.5 * (torch.cos(math.pi * r / 5) + 1), 0.0)
        w = self.filter(torch.exp(-10 * (r[..., None] - self.centres).square())) * cut[..., None]
        h = self.embed(numbers)
        for _ in range(2):
            h = h + (w * h[:, None]).sum(2)
        return torch.where(there, self.out(h).squeeze(-1), 0.0).sum(1)


@model("chemistry", "SchNet: radial filters with a cut-off, padded molecules", range={"numbers": (0, 19)})
def third_schnet():
    torch.manual_seed(358)
    return SchNet().eval(), (torch.tensor([[6, 1, 1, 1, 1, 0], [8, 1, 1, 0, 0, 0]]), torch.randn(2, 6, 3) * 1.5)


class Buffer(nn.Module):
    """The pH of a weak acid by bisection on the charge."""

    def forward(self, acid, base):
        low, high = torch.zeros_like(acid), torch.full_like(acid, 14.0)
        for _ in range(30):
            ph = (low + high) / 2
            h = 10 ** (-ph)
            charge = base + h - 1e-14 / h - acid * 1.8e-5 / (1.8e-5 + h)
            low, high = torch.where(charge > 0, ph, low), torch.where(charge > 0, high, ph)
        return ph, 10 ** (-ph)


@model("chemistry", "a pH by bisection on a charge that cancels", range={"acid": (0, 1), "base": (0, 1)})
def third_buffer():
    torch.manual_seed(359)
    return Buffer(), (torch.rand(4) * 0.1, torch.rand(4) * 0.1)


class Billiard(nn.Module):
    """A ball between walls with a round obstacle: bounces by comparison."""

    def forward(self, place, speed):
        hits = torch.zeros_like(place[:, 0], dtype=torch.int32)
        for _ in range(40):
            place = place + 0.1 * speed
            out = place.abs() > 1
            speed = torch.where(out, -speed, speed)
            place = torch.where(out, place.sign() * 2 - place, place)
            r2 = place.square().sum(-1, keepdim=True)
            inside = (r2 < 0.09) & ((place * speed).sum(-1, keepdim=True) < 0)
            speed = torch.where(inside, speed - 2 * (place * speed).sum(-1, keepdim=True) / r2 * place, speed)
            hits = hits + (out.any(-1) | inside[:, 0]).to(torch.int32)
        return place, hits


@model(
    "physics", "a billiard with a round obstacle: chaotic bounces, counted", range={"place": (-1, 1), "speed": (-1, 1)}
)
def third_billiard():
    torch.manual_seed(361)
    return Billiard(), (torch.rand(3, 2) - 0.5, torch.randn(3, 2).clamp(-1, 1))


class NBody(nn.Module):
    """Leapfrog without softening enough: near encounters throw bodies out."""

    def forward(self, place, speed, mass):
        def pull(p):
            gap = p[:, None] - p[:, :, None]
            r2 = gap.square().sum(-1, keepdim=True) + 1e-4
            return (mass[:, None, :, None] * gap / (r2 * r2.sqrt())).sum(2)

        a = pull(place)
        for _ in range(25):
            half = speed + 0.02 * a
            place = place + 0.04 * half
            a = pull(place)
            speed = half + 0.02 * a
        return place, speed


@model("physics", "three bodies by leapfrog: near encounters magnify any rounding")
def third_n_body():
    torch.manual_seed(362)
    return NBody(), (torch.randn(2, 3, 2), torch.randn(2, 3, 2) * 0.3, torch.rand(2, 3) + 0.5)


class Life(nn.Module):
    def forward(self, board):
        x = board.to(torch.float32)[:, None]
        kernel = torch.ones(1, 1, 3, 3)
        for _ in range(5):
            around = functional.conv2d(functional.pad(x, (1, 1, 1, 1), mode="circular"), kernel) - x
            x = ((around == 3) | ((around == 2) & (x == 1))).to(torch.float32)
        return x[:, 0] > 0


@model("games", "Conway's life on a torus: equality of convolved counts, bool in and out")
def third_life():
    torch.manual_seed(363)
    return Life(), (torch.rand(2, 8, 9) > 0.6,)


class BoardPolicy(nn.Module):
    """A board of int8 as planes, legal moves as a mask, policy with -inf and entropy, value."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU())
        self.policy, self.value = nn.Conv2d(12, 1, 1), nn.Linear(12, 1)

    def forward(self, board, turn):
        own = board == turn[:, None, None]
        free = board == 0
        planes = torch.stack([own, ~own & ~free, free, own | True], 1).to(torch.float32)
        h = self.body(planes)
        logits = self.policy(h).flatten(1).masked_fill(~free.flatten(1), -torch.inf)
        logp = logits.log_softmax(-1)
        p = logp.exp()
        entropy = -torch.where(p > 0, p * logp, 0.0).sum(-1)
        return logits.argmax(-1), p, entropy, self.value(h.mean((2, 3))).tanh()


@model(
    "games",
    "a board game's policy over legal moves: -inf for the rest, NaN for a full board",
    range={"board": (-1, 1), "turn": (-1, 1)},
)
def third_board_policy():
    torch.manual_seed(364)
    return BoardPolicy().eval(), (
        torch.randint(-1, 2, (3, 5, 5), dtype=torch.int8),
        torch.tensor([1, -1, 1], dtype=torch.int8),
    )


class Advantage(nn.Module):
    """Generalised advantages, V-trace and a clipped ratio with the actions taken."""

    def __init__(self) -> None:
        super().__init__()
        self.policy, self.value = nn.Linear(4, 3), nn.Linear(4, 1)

    def forward(self, states, actions, rewards, done, old):
        logp = self.policy(states).log_softmax(-1).gather(-1, actions[..., None]).squeeze(-1)
        values = self.value(states).squeeze(-1)
        ratio = (logp - old).exp()
        out, last = [], torch.zeros_like(rewards[:, 0])
        for t in range(rewards.shape[1] - 1, -1, -1):
            after = values[:, t + 1] if t + 1 < rewards.shape[1] else torch.zeros_like(last)
            alive = 1.0 - done[:, t].to(torch.float32)
            last = rewards[:, t] + 0.99 * alive * after - values[:, t] + 0.99 * 0.95 * alive * last
            out.insert(0, last)
        advantage = torch.stack(out, 1)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        return -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


@model(
    "reinforcement",
    "a PPO loss inside forward: mean and deviation over the batch, one number out",
    range={"actions": (0, 2)},
)
def third_advantage():
    torch.manual_seed(365)
    return Advantage().eval(), (
        torch.randn(3, 6, 4), torch.randint(0, 3, (3, 6)), torch.randn(3, 6), torch.rand(3, 6) > 0.8, torch.randn(3, 6) - 1,
    )  # fmt: skip


class PageRank(nn.Module):
    """Ranks along edges that are an input; nodes without a way out share theirs."""

    def forward(self, edges):
        n = 8
        one = torch.ones_like(edges[0], dtype=torch.float32)
        degree = torch.zeros(n).index_add(0, edges[0], one)
        rank = torch.full((n,), 1 / n)
        for _ in range(20):
            share = torch.where(degree > 0, rank / degree.clamp(min=1), 0.0)
            lost = torch.where(degree > 0, 0.0, rank).sum()
            rank = 0.15 / n + 0.85 * (torch.zeros(n).index_add(0, edges[1], share[edges[0]]) + lost / n)
        return rank


@model(
    "graphs",
    "PageRank along given edges, their number dynamic",
    dynamic={"edges": {1: "edges"}},
    range={"edges": (0, 7)},
)
def third_page_rank():
    torch.manual_seed(366)
    return PageRank(), (torch.randint(0, 8, (2, 14)),)


class Aggregators(nn.Module):
    """PNA: sum, mean, maximum, minimum and deviation of neighbours, scaled by degrees."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6 * 4, 5)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        message = nodes[source]
        n = nodes.shape[0]
        place = target[:, None].expand(-1, message.shape[1])
        degree = torch.zeros(n).index_add(0, target, torch.ones_like(target, dtype=torch.float32))[:, None].clamp(min=1)
        mean = torch.zeros_like(nodes).scatter_add(0, place, message) / degree
        square = torch.zeros_like(nodes).scatter_add(0, place, message * message) / degree
        high = torch.zeros_like(nodes).scatter_reduce(0, place, message, "amax", include_self=False)
        low = torch.zeros_like(nodes).scatter_reduce(0, place, message, "amin", include_self=False)
        spread = ((square - mean * mean).relu() + 1e-5).sqrt()
        return self.out(torch.cat([mean, high, low, spread], 1)) * torch.log(degree + 1)


@model(
    "graphs",
    "PNA's aggregators by scatter: extrema without the start value, deviation of one neighbour",
    dynamic={"nodes": {}, "edges": {1: "edges"}},
    range={"edges": (0, 6)},
)
def third_aggregators():
    torch.manual_seed(367)
    return Aggregators().eval(), (torch.randn(7, 6), torch.randint(0, 7, (2, 12)))


class Egnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(9, 12), nn.SiLU(), nn.Linear(12, 8))
        self.node, self.gate = nn.Linear(12, 4), nn.Linear(8, 1)

    def forward(self, h, x):
        n = h.shape[1]
        gap = x[:, :, None] - x[:, None]
        d2 = gap.square().sum(-1, keepdim=True)
        m = self.edge(torch.cat([h[:, :, None].expand(-1, -1, n, -1), h[:, None].expand(-1, n, -1, -1), d2], -1))
        x = x + (gap / (d2 + 1e-6).sqrt() * self.gate(m).tanh()).sum(2) / (n - 1)
        return self.node(torch.cat([h, m.sum(2)], -1)), x


@model(
    "graphs",
    "an equivariant layer: directions of pairs, none to oneself",
    dynamic={"h": {0: "batch", 1: "atoms"}, "x": {0: "batch", 1: "atoms"}},
    range={"atoms": (2, 12)},
)
def third_egnn():
    torch.manual_seed(368)
    return Egnn().eval(), (torch.randn(2, 5, 4), torch.randn(2, 5, 3))


class EdgeSoftmax(nn.Module):
    """Attention over edges: maximum by scatter, exponentials, sums, isolated nodes stay zero."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.score = nn.Linear(5, 8), nn.Linear(16, 1)

    def forward(self, nodes, edges):
        h = self.lift(nodes)
        score = functional.leaky_relu(self.score(torch.cat([h[edges[0]], h[edges[1]]], -1)), 0.2).squeeze(-1)
        top = torch.full((nodes.shape[0],), -torch.inf).scatter_reduce(0, edges[1], score, "amax")
        e = (score - top[edges[1]]).exp()
        total = torch.zeros(nodes.shape[0]).scatter_add(0, edges[1], e)
        return functional.elu(torch.zeros_like(h).index_add(0, edges[1], (e / total[edges[1]])[:, None] * h[edges[0]]))


@model(
    "graphs",
    "softmax over edges by scatter with -inf",
    dynamic={"nodes": {}, "edges": {1: "edges"}},
    range={"edges": (0, 6)},
)
def third_edge_softmax():
    torch.manual_seed(369)
    return EdgeSoftmax().eval(), (torch.randn(7, 5), torch.randint(0, 7, (2, 11)))


class Shortest(nn.Module):
    """Bellman and Ford in the graph: infinite where there is no way."""

    def forward(self, weight):
        b, n, _ = weight.shape
        cost = torch.where(weight > 0.4, weight, torch.inf)
        d = torch.where(torch.arange(n) == 0, 0.0, torch.inf).expand(b, -1)
        for _ in range(n - 1):
            d = torch.minimum(d, (d[:, :, None] + cost).amin(1))
        return d, d.isfinite().sum(1)


@model("graphs", "shortest ways: sums of infinities, minima; unreachable stays infinite")
def third_shortest():
    torch.manual_seed(370)
    return Shortest(), (torch.rand(3, 6, 6),)


class SpectralPosition(nn.Module):
    """Power iteration with deflation: the second vector's sign and direction from a start of ones."""

    def forward(self, x):
        c = x.transpose(1, 2) @ x / x.shape[1]
        out = []
        for _ in range(3):
            v = torch.ones_like(c[:, 0])
            for _ in range(15):
                v = (c @ v[..., None]).squeeze(-1)
                v = v / v.norm(dim=-1, keepdim=True).clamp(min=1e-12)
            value = (v * (c @ v[..., None]).squeeze(-1)).sum(-1)
            c = c - value[:, None, None] * v[:, :, None] * v[:, None]
            out.append(v * v.sum(-1, keepdim=True).sign())
        return torch.stack(out, 1)


@model("numerics", "principal axes by power iteration and deflation, the sign from a sum")
def third_principal_axes():
    torch.manual_seed(371)
    return SpectralPosition(), (torch.randn(3, 12, 4),)


class ClosedEigen(nn.Module):
    """Eigenvalues of symmetric 3x3 matrices by the cosine formula: acos of a quotient near one."""

    def forward(self, a):
        a = (a + a.transpose(1, 2)) / 2
        q = a.diagonal(dim1=1, dim2=2).mean(-1)
        b = a - q[:, None, None] * torch.eye(3)
        p = (b.square().sum((1, 2)) / 6).sqrt()
        u = b / p.clamp(min=1e-20)[:, None, None]
        det = (u[:, 0] * torch.linalg.cross(u[:, 1], u[:, 2])).sum(-1) / 2
        phi = torch.acos(det.clamp(-1, 1)) / 3
        high, low = q + 2 * p * phi.cos(), q + 2 * p * (phi + 2 * math.pi / 3).cos()
        return torch.stack([high, 3 * q - high - low, low], -1)


@model("geometry", "eigenvalues of 3x3 matrices by acos: equal ones are at its edge")
def third_closed_eigen():
    torch.manual_seed(372)
    return ClosedEigen(), (torch.randn(4, 3, 3),)


class Tridiagonal(nn.Module):
    """Thomas' algorithm, as in implicit diffusion: pivots may vanish."""

    def forward(self, lower, main, upper, right):
        n = main.shape[1]
        c, d = [upper[:, 0] / main[:, 0]], [right[:, 0] / main[:, 0]]
        for i in range(1, n):
            m = main[:, i] - lower[:, i] * c[-1]
            c.append(upper[:, i] / m)
            d.append((right[:, i] - lower[:, i] * d[-1]) / m)
        x = [d[-1]]
        for i in range(n - 2, -1, -1):
            x.insert(0, d[i] - c[i] * x[0])
        return torch.stack(x, 1)


@model("numerics", "a tridiagonal system without pivoting: pivots near zero")
def third_tridiagonal():
    torch.manual_seed(373)
    return Tridiagonal(), (torch.randn(3, 10), torch.randn(3, 10) + 3, torch.randn(3, 10), torch.randn(3, 10))


class Square(nn.Module):
    """Extended and unscented steps for a bearing: angles wrapped into the innovation."""

    def forward(self, state, spread, bearing):
        x, p = state, spread @ spread.transpose(1, 2) + 0.1 * torch.eye(4)
        f = torch.eye(4)
        f = f + 0.1 * torch.diag(torch.ones(2), 2)
        for t in range(bearing.shape[1]):
            x, p = x @ f.t(), f @ p @ f.t() + 0.01 * torch.eye(4)
            r2 = x[:, :2].square().sum(-1) + 1e-6
            h = torch.stack([-x[:, 1] / r2, x[:, 0] / r2, torch.zeros_like(r2), torch.zeros_like(r2)], -1)
            y = bearing[:, t] - torch.atan2(x[:, 1], x[:, 0])
            y = torch.remainder(y + math.pi, 2 * math.pi) - math.pi
            ph = (p @ h[..., None]).squeeze(-1)
            k = ph / ((h * ph).sum(-1) + 0.01)[:, None]
            x = x + k * y[:, None]
            p = p - k[:, :, None] * ph[:, None]
        return x, p


@model("control", "an extended Kalman filter on bearings: angles wrapped at pi")
def third_bearings():
    torch.manual_seed(374)
    return Square(), (torch.randn(3, 4) * 2, torch.randn(3, 4, 4) * 0.5, torch.randn(3, 8))


class Pareto(nn.Module):
    """Which points no other one beats, and how crowded it is around them."""

    def forward(self, costs):
        worse = (costs[:, :, None] >= costs[:, None]).all(-1) & (costs[:, :, None] > costs[:, None]).any(-1)
        rank = worse.sum(-1)
        ordered, place = costs.sort(dim=1)
        gap = torch.full_like(ordered[:, :1], torch.inf)
        gap = torch.cat([gap, ordered[:, 2:] - ordered[:, :-2], gap], 1) / (ordered[:, -1:] - ordered[:, :1])
        return rank, torch.zeros_like(costs).scatter(1, place, gap).sum(-1)


@model("decisions", "Pareto ranks and crowding distances: infinite at the ends, 0/0 for equal points")
def third_pareto():
    torch.manual_seed(375)
    return Pareto(), (torch.randn(3, 8, 2),)


class Auction(nn.Module):
    """Greedy matching: the best pair is taken out, again and again, with -inf."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 8), nn.Linear(6, 8)

    def forward(self, a, b):
        score = self.left(a) @ self.right(b).transpose(1, 2)
        n = score.shape[2]
        match = torch.full_like(score[:, :, 0], -1, dtype=torch.int64)
        for _ in range(score.shape[1]):
            flat = score.flatten(1).argmax(1)
            row, column = flat // n, flat % n
            match = match.scatter(1, row[:, None], column[:, None])
            gone = (torch.arange(score.shape[1]) == row[:, None])[:, :, None] | (torch.arange(n) == column[:, None])[
                :, None
            ]
            score = score.masked_fill(gone, -torch.inf)
        return match


@model("decisions", "greedy matching of tracks and detections: ids chosen one after another")
def third_auction():
    torch.manual_seed(376)
    return Auction().eval(), (torch.randn(2, 4, 6), torch.randn(2, 5, 6))


class DeltaSigma(nn.Module):
    def forward(self, x):
        first, second, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            bit = torch.where(second >= 0, 1.0, -1.0)
            first = first + x[:, t] - bit
            second = second + first - 2 * bit
            out.append(bit)
        return torch.stack(out, 1)


@model("audio", "a second-order delta-sigma modulator: a stream of bits from integrators", range={"x": (-0.8, 0.8)})
def third_delta_sigma():
    torch.manual_seed(377)
    return DeltaSigma(), (torch.rand(2, 64) - 0.5,)


class MuLaw(nn.Module):
    def forward(self, wave):
        y = wave.sign() * torch.log1p(255 * wave.abs().clamp(max=1)) / math.log(256)
        code = ((y + 1) / 2 * 255 + 0.5).floor().to(torch.uint8)
        back = code.to(torch.float32) / 255 * 2 - 1
        return code, back.sign() * (torch.exp(back.abs() * math.log(256)) - 1) / 255


@model("audio", "mu-law: eight bits by a logarithm, uint8 out, and back", range={"wave": (-1, 1)})
def third_mu_law():
    torch.manual_seed(378)
    return MuLaw(), (torch.rand(2, 40) * 2 - 1,)


class HalfNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.norm(x * 100)), x.float().square().mean(-1).sqrt().half()


@model("dtypes", "float16: a LayerNorm of hundreds, whose squares pass 65504; a norm taken in float32")
def third_half_norm():
    torch.manual_seed(380)
    return HalfNorm().half().eval(), (torch.randn(3, 64, dtype=torch.float16),)


class MixedTypes(nn.Module):
    """uint8, int8, int32, bool, float16 and float64 in one graph, promoted as PyTorch does."""

    def forward(self, a, b, c, d, e):
        total = a.to(torch.int32) + b.to(torch.int32) * c
        ratio = total / 7
        return total, torch.where(d, ratio, e.to(torch.float32) * 3), (total > 100) ^ d, e.to(torch.float64) * c


@model("dtypes", "five types in, four out, promoted along the way", range={"c": (-1000, 1000)})
def third_mixed_types():
    torch.manual_seed(381)
    return MixedTypes(), (
        torch.randint(0, 256, (3, 4), dtype=torch.uint8), torch.randint(-128, 128, (3, 4), dtype=torch.int8),
        torch.randint(-50, 50, (3, 4), dtype=torch.int32), torch.rand(3, 4) > 0.5, torch.randn(3, 4, dtype=torch.float16),
    )  # fmt: skip


class ExponentSplit(nn.Module):
    """The exponent by floor of log2, the mantissa by dividing: at powers of two a digit decides."""

    def forward(self, x):
        size = x.abs().clamp(min=1e-30)
        exponent = torch.floor(torch.log2(size))
        mantissa = size / torch.exp2(exponent)
        return exponent.to(torch.int32), mantissa, x.sign()


@model("numerics", "exponent and mantissa by floor of log2: powers of two sit on the edge")
def third_exponent_split():
    torch.manual_seed(382)
    return ExponentSplit(), (torch.tensor([[1.0, 2, 8, 1000], [0.125, 3, 1e-6, 7]]),)


class SignificantDigits(nn.Module):
    def forward(self, x):
        digits = torch.floor(torch.log10(x.abs().clamp(min=1e-20)))
        scale = 10 ** (2 - digits)
        return torch.round(x * scale) / scale


@model("numerics", "rounding to three significant digits: halves and powers of ten flip")
def third_significant_digits():
    torch.manual_seed(383)
    return SignificantDigits(), (torch.randn(3, 8) * 100,)


class StochasticRounding(nn.Module):
    def forward(self, x, u):
        low = torch.floor(x * 16)
        return (low + (u < x * 16 - low).to(x.dtype)).clamp(-128, 127).to(torch.int8)


@model("dtypes", "stochastic rounding to int8 with its random numbers as an input", range={"u": (0, 1)})
def third_stochastic_rounding():
    torch.manual_seed(384)
    return StochasticRounding(), (torch.randn(3, 10), torch.rand(3, 10))


class FiniteScalar(nn.Module):
    """FSQ: bounded channels, rounded to levels, joined into one id, decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(10, 4), nn.Linear(4, 10)
        self.register_buffer("levels", torch.tensor([8.0, 5, 5, 3]))
        self.register_buffer("basis", torch.tensor([1, 8, 40, 200]))

    def forward(self, x):
        half = (self.levels - 1) * (1 - 1e-3) / 2
        offset = torch.where(self.levels % 2 == 0, 0.5, 0.0)
        z = torch.tanh(self.encode(x) + torch.atanh(offset / half)) * half - offset
        z = torch.round(z)
        width = torch.div(self.levels, 2, rounding_mode="floor")
        return ((z + width).long() * self.basis).sum(-1), self.decode(z / width)


@model("compression", "finite scalar quantisation: a tanh rounded to levels, an id")
def third_finite_scalar():
    torch.manual_seed(385)
    return FiniteScalar().eval(), (torch.randn(3, 10),)


class ResidualCodes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("books", torch.randn(4, 16, 6) * torch.tensor([1, 0.5, 0.25, 0.12])[:, None, None])

    def forward(self, x):
        left, codes = x, []
        for book in self.books:
            code = (left[:, None] - book).square().sum(-1).argmin(-1)
            codes.append(code)
            left = left - book[code]
        return torch.stack(codes, -1), x - left


@model("compression", "residual vector quantisation: a code decides what the next one sees")
def third_residual_codes():
    torch.manual_seed(386)
    return ResidualCodes(), (torch.randn(4, 6),)


class Binarised(nn.Module):
    """Weights and activations of a sign each, straight-through form."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Parameter(torch.randn(16, 12)), nn.Parameter(torch.randn(16, 16)), nn.Linear(16, 3)
        self.norm = nn.BatchNorm1d(16)

    def binary(self, x):
        y = torch.where(x >= 0, 1.0, -1.0)
        return x + (y - x)

    def forward(self, x):
        h = self.norm(functional.linear(self.binary(x), self.binary(self.a)))
        h = functional.linear(self.binary(h), self.binary(self.b)) * self.b.abs().mean()
        return self.c(functional.hardtanh(h))


@model("decisions", "a binary network in straight-through form: x + (sign - x) is not quite a sign")
def third_binarised():
    torch.manual_seed(387)
    net = Binarised()
    net.norm.running_mean.normal_()
    net.norm.running_var.uniform_(1, 12)
    return net.eval(), (torch.randn(4, 12),)


class BitLinear(nn.Module):
    """BitNet: ternary weights by a mean, int8 activations by a maximum, rescaled."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(20, 20) * 0.1) for _ in range(3)])

    def forward(self, x):
        for w in self.weights:
            size = w.abs().mean().clamp(min=1e-5)
            ternary = (w / size).round().clamp(-1, 1)
            x = functional.rms_norm(x, (20,))
            scale = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
            x = functional.linear((x * scale).round().clamp(-128, 127), ternary) / scale * size
            x = functional.relu(x).square()
        return x


@model("decisions", "BitNet layers: activations rounded to int8 levels, squared ReLU")
def third_bit_linear():
    torch.manual_seed(388)
    return BitLinear().eval(), (torch.randn(3, 20),)


class Canny(nn.Module):
    """Gradients, thin edges by the direction's bin, two thresholds and growth."""

    def forward(self, image):
        k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
        g = functional.conv2d(image, torch.stack([k, k.t()])[:, None], padding=1)
        size = g.square().sum(1, keepdim=True).sqrt()
        way = torch.remainder(torch.round(torch.atan2(g[:, 1:], g[:, :1]) / (math.pi / 4)), 4)
        p = functional.pad(size, (1, 1, 1, 1))
        h, w = image.shape[2:]
        thin = torch.zeros_like(size, dtype=torch.bool)
        for number, (dy, dx) in enumerate(((0, 1), (1, 1), (1, 0), (1, -1))):
            a, b = p[:, :, 1 + dy : 1 + dy + h, 1 + dx : 1 + dx + w], p[:, :, 1 - dy : 1 - dy + h, 1 - dx : 1 - dx + w]
            thin = thin | ((way == number) & (size >= a) & (size >= b))
        strong, weak = thin & (size > 1.2), thin & (size > 0.5)
        for _ in range(4):
            strong = (functional.max_pool2d(strong.to(image.dtype), 3, 1, 1) > 0) & weak
        return strong


@model("vision", "Canny's edges: direction bins, thin lines by comparison, growth")
def third_canny():
    torch.manual_seed(389)
    return Canny(), (torch.rand(2, 1, 12, 12),)


class Otsu(nn.Module):
    """The threshold that parts a picture best: first of equal maxima."""

    def forward(self, image):
        flat = image.flatten(1).long()
        counts = torch.zeros(flat.shape[0], 256).scatter_add(1, flat, torch.ones_like(flat, dtype=torch.float32))
        level = torch.arange(256.0)
        w = counts.cumsum(1)
        m = (counts * level).cumsum(1)
        total, mean = w[:, -1:], m[:, -1:]
        between = (mean * w - m * total).square() / (w * (total - w)).clamp(min=1)
        best = between.argmax(1)
        return best, image > best[:, None, None].to(torch.uint8)


@model("vision", "Otsu's threshold of uint8 pictures: plateaus of exact ties")
def third_otsu():
    torch.manual_seed(390)
    return Otsu(), (torch.randint(0, 256, (2, 10, 10), dtype=torch.uint8),)


class GuidedFilter(nn.Module):
    def forward(self, guide, image):
        box = lambda x: functional.avg_pool2d(x, 5, 1, 2, count_include_pad=False)  # noqa: E731
        mg, mi = box(guide), box(image)
        a = (box(guide * image) - mg * mi) / (box(guide * guide) - mg * mg + 1e-6)
        return box(a) * guide + box(mi - a * mg)


@model("vision", "a guided filter: covariances as differences of means over a tiny epsilon")
def third_guided_filter():
    torch.manual_seed(391)
    return GuidedFilter(), (torch.rand(2, 1, 12, 12), torch.rand(2, 1, 12, 12))


class Census(nn.Module):
    """Local binary patterns and the Hamming distance of census codes over disparities."""

    def code(self, x):
        p = functional.pad(x, (1, 1, 1, 1), mode="replicate")
        h, w = x.shape[2:]
        return torch.cat(
            [p[:, :, dy : dy + h, dx : dx + w] > x for dy in range(3) for dx in range(3) if (dy, dx) != (1, 1)], 1
        )

    def forward(self, left, right):
        a, b = self.code(left), self.code(right)
        cost = torch.stack([(a ^ torch.roll(b, d, 3)).sum(1) for d in range(4)], 1)
        weights = 2 ** torch.arange(8)
        return (a.long() * weights[None, :, None, None]).sum(1), cost.argmin(1)


@model("vision", "census codes and a disparity: bits of comparisons, argmin of small integers with ties")
def third_census():
    torch.manual_seed(392)
    return Census(), (torch.rand(2, 1, 8, 10), torch.rand(2, 1, 8, 10))


class Homography(nn.Module):
    """Points through a projective map: a division that passes zero."""

    def forward(self, points, h):
        full = torch.cat([points, torch.ones_like(points[..., :1])], -1)
        y = full @ h.transpose(1, 2)
        flat = y[..., :2] / y[..., 2:]
        inside = ((flat >= 0) & (flat < 8)).all(-1) & (y[..., 2] > 0)
        cell = torch.where(inside, flat[..., 1].clamp(0, 7).floor() * 8 + flat[..., 0].clamp(0, 7).floor(), -1.0)
        return flat, cell.to(torch.int64)


@model("geometry", "a homography: poles, and cells of a grid by floor")
def third_homography():
    torch.manual_seed(393)
    return Homography(), (torch.rand(3, 7, 2) * 8, torch.eye(3) + torch.randn(3, 3, 3) * 0.1)


class InPolygon(nn.Module):
    def forward(self, points, polygon):
        a, b = polygon, torch.roll(polygon, -1, 1)
        x, y = points[:, :, None, 0], points[:, :, None, 1]
        across = (a[:, None, :, 1] > y) != (b[:, None, :, 1] > y)
        cut = (b[:, None, :, 0] - a[:, None, :, 0]) * (y - a[:, None, :, 1]) / (
            b[:, None, :, 1] - a[:, None, :, 1]
        ) + a[:, None, :, 0]
        area = (a[..., 0] * b[..., 1] - b[..., 0] * a[..., 1]).sum(1) / 2
        return (across & (x < cut)).sum(-1) % 2 == 1, area


@model("geospatial", "points in polygons: level edges divide by zero and are masked")
def third_in_polygon():
    torch.manual_seed(394)
    return InPolygon(), (torch.randn(3, 6, 2), torch.randn(3, 5, 2))


class Clothoid(nn.Module):
    """Headings and places summed along curvatures: a track of 300 steps."""

    def forward(self, curvature):
        heading = (curvature * 0.1).cumsum(1)
        place = torch.stack([heading.cos(), heading.sin()], -1).cumsum(1) * 0.1
        return place, torch.remainder(heading, 2 * math.pi)


@model("geometry", "dead reckoning over 300 steps: sums of sines of sums", dynamic={"curvature": {0: "batch", 1: "steps"}}, range={"steps": (1, 600)})  # fmt: skip
def third_dead_reckoning():
    torch.manual_seed(395)
    return Clothoid(), (torch.randn(2, 300) * 5,)


class HaarLifting(nn.Module):
    """Integer wavelets by lifting: floor of halves, lossless both ways."""

    def forward(self, x):
        even, odd = x[:, ::2], x[:, 1::2]
        d = odd - even
        s = even + (d >> 1)
        back_even = s - (d >> 1)
        back = torch.stack([back_even, d + back_even], -1).flatten(1)
        return s, d, back


@model("compression", "an integer wavelet by lifting: shifts of negative numbers", range={"x": (-1000, 1000)})
def third_haar_lifting():
    torch.manual_seed(396)
    return HaarLifting(), (torch.randint(-500, 500, (3, 16)),)


class ArithmeticInterval(nn.Module):
    """An arithmetic coder's interval: int64 products and floor divisions by a total."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.tensor([0, 3, 10, 12, 27, 32]))

    def forward(self, symbols):
        low = torch.zeros_like(symbols[:, 0])
        width = torch.full_like(low, 2**24)
        for t in range(symbols.shape[1]):
            start, end = self.edges[symbols[:, t]], self.edges[symbols[:, t] + 1]
            low = low + width * start // 32
            width = width * end // 32 - width * start // 32
        return low, width


@model("compression", "the interval of an arithmetic coder, whole numbers", range={"symbols": (0, 4)})
def third_arithmetic_interval():
    torch.manual_seed(397)
    return ArithmeticInterval(), (torch.randint(0, 5, (3, 5)),)


class QuotientEmbedding(nn.Module):
    """Compositional embeddings: quotient and remainder, a hash of pairs, a padding of zero."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.r, self.cross = nn.Embedding(100, 6), nn.Embedding(101, 6), nn.Embedding(64, 6)
        self.head = nn.Linear(6, 1)

    def forward(self, ids, country):
        x = self.q(ids // 101) * self.r(ids % 101)
        pair = self.cross(((ids * 2654435761 + country[:, None] * 40503) >> 7) & 63)
        return self.head((x + pair).mean(1)).sigmoid()


@model(
    "recommender",
    "compositional and crossed embeddings: multiplicative hashes of 2**46",
    range={"ids": (0, 10099), "country": (0, 249)},
)
def third_quotient_embedding():
    torch.manual_seed(398)
    return QuotientEmbedding().eval(), (torch.randint(0, 10100, (3, 4)), torch.randint(0, 250, (3,)))


class PiecewiseTokens(nn.Module):
    """Numbers as piecewise linear encodings, categories as rows, a class token, attention."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.randn(3, 9).sort(-1).values)
        self.lift = nn.Parameter(torch.randn(3, 8, 16) * 0.3)
        self.rows, self.token = nn.Embedding(15, 16), nn.Parameter(torch.randn(1, 1, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, numbers, categories):
        left, right = self.edges[:, :-1], self.edges[:, 1:]
        part = ((numbers[..., None] - left) / (right - left)).clamp(0, 1)
        tokens = torch.einsum("bfk,fkd->bfd", part, self.lift)
        offset = torch.tensor([0, 5])
        x = torch.cat([self.token.expand(numbers.shape[0], -1, -1), tokens, self.rows(categories + offset)], 1)
        return self.head(self.block(x)[:, 0])


@model("tabular", "FT-Transformer with piecewise linear encodings", range={"categories": (0, 4)})
def third_piecewise_tokens():
    torch.manual_seed(399)
    return PiecewiseTokens().eval(), (torch.randn(3, 3), torch.randint(0, 5, (3, 2)))


class Lattice(nn.Module):
    """A calibrated lattice: floors of scaled inputs, corners blended by products."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.randn(4, 4, 4))

    def forward(self, x):
        x = x.clamp(0, 1) * 3
        low = x.floor().clamp(max=2)
        part = x - low
        low = low.long()
        out = torch.zeros_like(x[:, 0])
        for corner in range(8):
            bits = [(corner >> i) & 1 for i in range(3)]
            weight = torch.ones_like(out)
            for i, bit in enumerate(bits):
                weight = weight * (part[:, i] if bit else 1 - part[:, i])
            out = out + weight * self.values[low[:, 0] + bits[0], low[:, 1] + bits[1], low[:, 2] + bits[2]]
        return out


@model("tabular", "a lattice of 4x4x4: cells by floor, corners by index")
def third_lattice():
    torch.manual_seed(400)
    return Lattice(), (torch.rand(5, 3),)


class GradientBoosted(nn.Module):
    """Trees of a boosted ensemble as arrays: four hops by gather, thresholds taken from the data."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("feature", torch.randint(0, 6, (10, 15)))
        self.register_buffer("threshold", (torch.randn(10, 15) * 4).round() / 4)
        self.register_buffer("leaf", torch.randn(10, 16) * 0.3)

    def forward(self, x):
        trees = torch.arange(10)
        node = torch.zeros(x.shape[0], 10, dtype=torch.int64)
        for _ in range(4):
            value = x.gather(1, self.feature[trees, node])
            node = 2 * node + 1 + (~(value <= self.threshold[trees, node])).long()
        return self.leaf[trees, node - 15].sum(1).sigmoid(), node - 15


@model("tabular", "boosted trees: hops by gather, data on the thresholds, NaN goes right")
def third_boosted_trees():
    torch.manual_seed(401)
    return GradientBoosted(), ((torch.randn(4, 6) * 4).round() / 4,)


class Cyclic(nn.Module):
    """Seconds since 1970 in int64 to cyclic features: hour, weekday, year."""

    def forward(self, seconds):
        day = seconds // 86400
        parts = torch.stack([seconds % 86400 / 86400, (day + 4) % 7 / 7, seconds % 31556952 / 31556952], -1)
        angle = 2 * math.pi * parts
        return torch.cat([angle.sin(), angle.cos()], -1), ((day + 4) % 7 >= 5)


@model(
    "time series",
    "time stamps of 1.7e9 as sines: whole numbers first, floats after",
    range={"seconds": (0, 4102444800)},
)
def third_time_stamps():
    return Cyclic(), (torch.tensor([[1700000000, 1763424000], [0, 951782400]]),)


class WrappedTime(nn.Module):
    """The same careless: seconds of 1.7e9 as float32, then sines."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, seconds):
        t = seconds.to(torch.float32)
        day, week = t * (2 * math.pi / 86400), t * (2 * math.pi / 604800)
        return self.head(torch.stack([day.sin(), day.cos(), week.sin(), week.cos()], -1))


@model(
    "time series",
    "time stamps of 1.7e9 in float32: sines of a hundred thousand",
    range={"seconds": (1600000000, 1800000000)},
)
def third_careless_time():
    torch.manual_seed(402)
    return WrappedTime().eval(), (torch.tensor([1700000000, 1763424000, 1650000000]),)


class Loess(nn.Module):
    """STL in short: a season by means over a period, a trend by local lines, robust weights."""

    def forward(self, series):
        b, n = series.shape
        t = torch.arange(float(n))
        gap = (t[:, None] - t).abs() / 7
        w = torch.where(gap < 1, (1 - gap**3) ** 3, 0.0)
        robust = torch.ones_like(series)
        season = torch.zeros_like(series)
        for _ in range(3):
            x = series - season
            ww = w * robust[:, None]
            s0, s1, s2 = ww.sum(-1), (ww * t).sum(-1), (ww * t * t).sum(-1)
            y0, y1 = (ww * x[:, None]).sum(-1), (ww * t * x[:, None]).sum(-1)
            det = s0 * s2 - s1 * s1
            trend = ((s2 * y0 - s1 * y1) + t * (s0 * y1 - s1 * y0)) / det.clamp(min=1e-6)
            cycle = (series - trend).view(b, n // 6, 6).mean(1)
            season = (cycle - cycle.mean(1, keepdim=True)).repeat(1, n // 6)
            rest = (series - trend - season).abs()
            h = 6 * rest.sort(dim=1).values[:, n // 2][:, None]
            robust = torch.where(rest < h, (1 - (rest / h.clamp(min=1e-12)) ** 2) ** 2, 0.0)
        return trend, season, robust


@model("time series", "local lines by determinants of large sums, robust weights by a median")
def third_loess():
    torch.manual_seed(403)
    t = torch.arange(24.0)
    return Loess(), (0.2 * t + torch.sin(t * math.pi / 3) + 0.1 * torch.randn(3, 24),)


class RunningParity(nn.Module):
    """Brackets: depth by a running sum over 4000 ids, whether balanced, the deepest."""

    def forward(self, ids):
        step = (ids == 1).long() - (ids == 2).long()
        depth = step.cumsum(1)
        return depth[:, -1] == 0, (depth >= 0).all(1), depth.amax(1), (ids == 3).cumsum(1)[:, -1] % 2


@model("text", "brackets over a long text: integer running sums", range={"ids": (0, 3), "length": (1, 6000)}, dynamic={"ids": {0: "batch", 1: "length"}})  # fmt: skip
def third_brackets():
    torch.manual_seed(404)
    return RunningParity(), (torch.randint(0, 4, (2, 4000)),)


class ByteClasses(nn.Module):
    """UTF-8 bytes: kinds by ranges, starts of characters, lower case, code points of two bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 8)

    def forward(self, data):
        start = (data & 0xC0) != 0x80
        upper = (data >= 65) & (data <= 90)
        lower = torch.where(upper, data + 32, data)
        two = (data[:, :-1] & 0xE0) == 0xC0
        point = torch.where(two, (data[:, :-1].int() & 0x1F) * 64 + (data[:, 1:].int() & 0x3F), -1)
        return lower, start.cumsum(1), point, (self.embed(lower.int()) * start[..., None]).sum(1)


@model("text", "UTF-8 bytes of type uint8: masks of bits, code points, case")
def third_utf8():
    raw = [list("Größe über ALLES".encode()), list("naïve CAFÉ, oui!!".encode())]
    torch.manual_seed(405)
    return ByteClasses().eval(), (
        torch.tensor([row[:18] + [32] * (18 - len(row[:18])) for row in raw], dtype=torch.uint8),
    )


class ContainersAndNone(nn.Module):
    """A dictionary, a None, a plain number and a tuple in; a tensor twice, an input and a constant out."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.register = nn.Linear(4, 4), nn.Parameter(torch.arange(3.0))

    def forward(self, features, mask=None, scale=2.0, pair=None):
        y = self.a(features["x"]) * scale + features["bias"]
        if mask is not None:
            y = y * mask
        if pair is not None:
            y = y + pair[0] - pair[1]
        return {"y": y, "again": y, "bias": features["bias"], "constant": self.register * 2, "sum": y.sum()}


@model(
    "structure",
    "a dictionary, None, a number and a tuple in; an output twice, an input and a constant out",
    dynamic="none",
)
def third_containers():
    torch.manual_seed(406)
    return ContainersAndNone().eval(), (
        {"x": torch.randn(3, 4), "bias": torch.randn(3, 4)}, None, 3.0, (torch.randn(3, 4), torch.randn(3, 4)),
    )  # fmt: skip


class ShapesOut(nn.Module):
    """Shapes and counts as outputs beside the values, an empty slice, six dimensions."""

    def forward(self, x):
        n = (x > 0).flatten(1).sum(1)
        six = x.view(x.shape[0], 2, 2, 1, 3, -1).permute(0, 5, 3, 1, 4, 2)
        return six.contiguous(), torch.tensor(x.shape[0]) * 2, n, x[:, :0], x.amax()


@model("structure", "six dimensions, an empty slice, a size and counts as outputs")
def third_shapes_out():
    torch.manual_seed(407)
    return ShapesOut(), (torch.randn(3, 24),)


class ScalarStep(nn.Module):
    """A whole number without dimensions picks a row, a flag a branch, a float a rate."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 5))

    def forward(self, x, step, fast, rate):
        row = self.table[step]
        warm = torch.minimum((step + 1) / 4, torch.ones(()))
        return torch.where(fast, x * row, x + row) * rate * warm


@model("structure", "inputs without dimensions: a step, a flag, a rate", range={"step": (0, 9)})
def third_scalar_step():
    torch.manual_seed(408)
    return ScalarStep(), (torch.randn(3, 5), torch.tensor(3), torch.tensor(True), torch.tensor(0.1))


class Capsules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 3, 4, 5) * 0.4)

    def forward(self, x):
        u = torch.einsum("bif,ijfd->bijd", x, self.w)
        logits = torch.zeros_like(u[..., 0])
        for _ in range(3):
            s = (logits.softmax(2)[..., None] * u).sum(1)
            n2 = s.square().sum(-1, keepdim=True)
            v = n2 / (1 + n2) * s / (n2 + 1e-6).sqrt()
            logits = logits + (u * v[:, None]).sum(-1)
        return v, v.norm(dim=-1)


@model("networks", "capsules with routing by agreement")
def third_capsules():
    torch.manual_seed(409)
    return Capsules(), (torch.randn(3, 6, 4),)


class Hyper(nn.Module):
    """Weights made from the input: a product per example, dynamic convolutions as grouped ones by unfold."""

    def __init__(self) -> None:
        super().__init__()
        self.make, self.kernel = nn.Linear(5, 6 * 4 + 4), nn.Linear(5, 3 * 9)

    def forward(self, z, x, image):
        p = self.make(z)
        y = torch.baddbmm(p[:, 24:, None], p[:, :24].view(-1, 4, 6), x[..., None]).squeeze(-1)
        k = self.kernel(z).view(-1, 3, 9).softmax(-1)
        patches = functional.unfold(image, 3, padding=1).view(image.shape[0], 3, 9, -1)
        return y, (patches * k[..., None]).sum(2).view_as(image)


@model("networks", "a hypernetwork: weights and kernels from an input")
def third_hyper():
    torch.manual_seed(410)
    return Hyper().eval(), (torch.randn(3, 5), torch.randn(3, 6), torch.randn(3, 3, 6, 6))


class ChebyshevKan(nn.Module):
    """KAN layers of cosines of multiples of an acos: the edge of the interval is met by a tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(5, 8, 7) * 0.3), nn.Parameter(torch.randn(8, 2, 7) * 0.3)

    def layer(self, x, w):
        angle = torch.acos(torch.tanh(x).clamp(-1 + 1e-6, 1 - 1e-6))
        return torch.einsum("bik,iok->bo", torch.cos(angle[..., None] * torch.arange(7)), w)

    def forward(self, x):
        return self.layer(self.layer(x, self.a), self.b)


@model("networks", "a Chebyshev KAN: cosines of multiples of acos of tanh")
def third_chebyshev_kan():
    torch.manual_seed(411)
    return ChebyshevKan(), (torch.randn(4, 5),)


class TemperatureSweep(nn.Module):
    """Confidences for the reliability diagram: bins of 0.1 by floor, mean gap of each bin."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.7))

    def forward(self, logits, labels):
        p, guess = (logits / self.temperature).softmax(-1).max(-1)
        place = (p * 10).floor().clamp(max=9).long()
        hot = functional.one_hot(place, 10).to(p.dtype)
        count = hot.sum(0)
        gap = ((p - (guess == labels).to(p.dtype))[:, None] * hot).sum(0)
        return gap.abs().sum() / logits.shape[0], count, gap / count


@model("statistics", "a calibration error by bins: empty bins are 0/0", range={"labels": (0, 4)})
def third_calibration_error():
    torch.manual_seed(412)
    return TemperatureSweep(), (torch.randn(16, 5) * 2, torch.randint(0, 5, (16,)))


class Auc(nn.Module):
    """Area under the curve by ranks with ties shared, and average precision by counting."""

    def forward(self, score, label):
        above = (score[:, :, None] > score[:, None]).to(score.dtype)
        same = (score[:, :, None] == score[:, None]).to(score.dtype)
        positive = label.to(score.dtype)
        pairs = positive[:, :, None] * (1 - positive)[:, None]
        auc = ((above + 0.5 * same) * pairs).sum((1, 2)) / pairs.sum((1, 2))
        reached = above.transpose(1, 2) + same
        precision = (reached * positive[:, None]).sum(-1) / reached.sum(-1)
        return auc, (precision * positive).sum(1) / positive.sum(1)


@model("statistics", "AUC with ties and average precision: 0/0 without positives")
def third_auc():
    torch.manual_seed(413)
    return Auc(), (torch.randn(3, 10).round(), torch.rand(3, 10) > 0.5)


class Laplace(nn.Module):
    """A last layer's Laplace approximation: a variance, a probit-scaled logit, mutual information."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(5, 16), nn.Tanh()), nn.Linear(16, 3)
        a = torch.randn(16, 40)
        self.register_buffer("covariance", torch.linalg.inv(a @ a.t() + torch.eye(16)))
        self.register_buffer("draws", torch.randn(12, 1, 3))

    def forward(self, x):
        h = self.body(x)
        variance = ((h @ self.covariance) * h).sum(-1, keepdim=True)
        logits = self.head(h)
        p = (logits / (1 + math.pi / 8 * variance).sqrt()).softmax(-1)
        many = (logits + variance.sqrt() * self.draws).softmax(-1)
        mean = many.mean(0)
        information = -(mean * mean.log()).sum(-1) + (many * many.log()).sum(-1).mean(0)
        return p, information


@model("probabilistic", "a Laplace approximation: mutual information as a small difference of entropies")
def third_laplace():
    torch.manual_seed(414)
    return Laplace().eval(), (torch.randn(4, 5),)


class UnclampedDeviation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(6, 10)

    def forward(self, x):
        y = self.lift(x)
        return (y.square().mean(-1) - y.mean(-1).square()).sqrt(), (x.square().mean(-1) - x.mean(-1).square()).sqrt()


@model("statistics", "a deviation from moments without a clamp: NaN where rounding makes it negative, on either side")
def third_unclamped_deviation():
    torch.manual_seed(416)
    return UnclampedDeviation().eval(), (torch.randn(4, 6) * 0.01 + 5,)


class UnclampedAngle(nn.Module):
    def forward(self, a, b):
        a, b = a / a.norm(dim=-1, keepdim=True), b / b.norm(dim=-1, keepdim=True)
        return torch.acos((a * b).sum(-1)), torch.acos((a * a).sum(-1))


@model("geometry", "the angle of a vector to itself without a clamp: NaN where the product is rounded above one")
def third_unclamped_angle():
    torch.manual_seed(417)
    return UnclampedAngle(), (torch.randn(5, 7), torch.randn(5, 7))


class GramCholesky(nn.Module):
    """Cholesky by hand of a Gram matrix of five vectors in four dimensions: the last pivot is rounding."""

    def forward(self, x):
        g = x @ x.transpose(1, 2)
        n = g.shape[1]
        low: list[list[torch.Tensor]] = [[torch.zeros_like(g[:, 0, 0])] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                s = g[:, i, j] - sum((low[i][k] * low[j][k] for k in range(j)), torch.zeros_like(g[:, 0, 0]))
                low[i][j] = s.sqrt() if i == j else s / low[j][j]
        return torch.stack([torch.stack(row, -1) for row in low], 1)


@model("numerics", "Cholesky of a singular Gram matrix: the root of a pivot that is rounding, of either sign")
def third_gram_cholesky():
    torch.manual_seed(418)
    return GramCholesky(), (torch.randn(3, 5, 4),)


class PivotedElimination(nn.Module):
    """Elimination with row exchange: the pivot's row by argmax, determinant and order out."""

    def forward(self, a, b):
        n = a.shape[1]
        m = torch.cat([a, b[..., None]], -1)
        sign = torch.ones_like(b[:, 0])
        rows = torch.arange(n)
        pivots = []
        for i in range(n):
            column = torch.where(rows >= i, m[:, :, i].abs(), -1.0)
            p = column.argmax(1)
            pivots.append(p)
            swap = torch.where(rows == i, p[:, None], torch.where(rows == p[:, None], i, rows))
            m = m.gather(1, swap[..., None].expand(-1, -1, n + 1))
            sign = torch.where(p == i, sign, -sign)
            pivot = m[:, i : i + 1, i]
            factor = torch.where(rows > i, m[:, :, i] / torch.where(pivot == 0, 1.0, pivot), 0.0)
            m = m - factor[..., None] * m[:, i : i + 1]
        x: list[torch.Tensor] = []
        for i in range(n - 1, -1, -1):
            s = m[:, i, n] - sum((m[:, i, n - 1 - k] * v for k, v in enumerate(x)), torch.zeros_like(sign))
            x.append(s / m[:, i, i])
        return torch.stack(x[::-1], 1), sign * m[:, :, :n].diagonal(dim1=1, dim2=2).prod(-1), torch.stack(pivots, 1)


@model("numerics", "elimination with pivots by argmax: the order of rows as an output")
def third_pivoted_elimination():
    torch.manual_seed(419)
    return PivotedElimination(), (torch.randn(3, 4, 4), torch.randn(3, 4))


class FloatCounter(nn.Module):
    """A counter in float32: at 2**24 adding one does nothing."""

    def forward(self, start, event):
        n = start
        for t in range(event.shape[1]):
            n = n + event[:, t].to(n.dtype)
        return n


@model("numerics", "a float32 counter near 2**24, where one more is not more", range={"start": (16777200, 16777300)})
def third_float_counter():
    torch.manual_seed(420)
    return FloatCounter(), (torch.tensor([16777210.0, 16777216.0, 16777215.0]), torch.rand(3, 20) > 0.3)


class DekkerProduct(nn.Module):
    def split(self, x):
        c = x * 4097.0
        high = c - (c - x)
        return high, x - high

    def forward(self, x, y):
        p = x * y
        a, b = self.split(x)
        c, d = self.split(y)
        return p, ((a * c - p) + a * d + b * c) + b * d


@model("numerics", "the rounding error of a product by Dekker's split: zero in float64, not in float32")
def third_dekker_product():
    torch.manual_seed(421)
    return DekkerProduct(), (torch.randn(3, 8), torch.randn(3, 8))


class IntegralImage(nn.Module):
    """Box filters of three sizes from a summed-area table of bright pictures."""

    def forward(self, image):
        s = functional.pad(image.cumsum(1).cumsum(2), (1, 0, 1, 0))
        out = []
        for k in (2, 3, 5):
            total = s[:, k:, k:] - s[:, :-k, k:] - s[:, k:, :-k] + s[:, :-k, :-k]
            out.append((total / (k * k)).amax((1, 2)))
        mean = s[:, 3:, 3:] - s[:, :-3, 3:] - s[:, 3:, :-3] + s[:, :-3, :-3]
        return torch.stack(out, 1), mean / 9 - image[:, 1:-1, 1:-1]


@model("vision", "box filters from a summed-area table: small differences of large sums", range={"image": (0, 255)})
def third_integral_image():
    torch.manual_seed(422)
    return IntegralImage(), (torch.rand(2, 48, 48) * 255,)


class FoldedNorm(nn.Module):
    """A convolution whose batch norm takes away a mean of thousands and divides by a small deviation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)
        self.conv.bias.data.fill_(4000)
        self.norm.running_mean.fill_(4000)
        self.norm.running_var.fill_(0.01)

    def forward(self, x):
        return functional.relu(self.norm(self.conv(x)))


@model("networks", "a batch norm that cancels a bias of 4000 and multiplies by ten: folding is more exact than PyTorch")
def third_folded_norm():
    torch.manual_seed(423)
    return FoldedNorm().eval(), (torch.randn(2, 3, 8, 8),)


class Ransac(nn.Module):
    """Lines through fixed pairs of points: inliers counted, the best line by argmax with ties."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pairs", torch.combinations(torch.arange(9), 2))

    def forward(self, points):
        a, b = points[:, self.pairs[:, 0]], points[:, self.pairs[:, 1]]
        way = functional.normalize(b - a, dim=-1)
        normal = torch.stack([-way[..., 1], way[..., 0]], -1)
        offset = (normal * a).sum(-1)
        away = ((points[:, None] * normal[:, :, None]).sum(-1) - offset[..., None]).abs()
        count = (away < 0.1).sum(-1)
        best = count.argmax(1)
        line = torch.cat([normal, offset[..., None]], -1).gather(1, best[:, None, None].expand(-1, 1, 3)).squeeze(1)
        return line, count.amax(1)


@model("geometry", "RANSAC over all pairs: a count decides, and counts are tied")
def third_ransac():
    torch.manual_seed(424)
    x = torch.randn(3, 9)
    return Ransac(), (torch.stack([x, 0.5 * x + 0.3 * torch.randn(3, 9).round()], -1),)


class Lloyd(nn.Module):
    """k-means: the farthest points as seeds, five rounds, empty clusters kept."""

    def forward(self, x):
        far = (x - x.mean(1, keepdim=True)).square().sum(-1)
        seeds = []
        for _ in range(3):
            pick = far.argmax(1)
            centre = x.gather(1, pick[:, None, None].expand(-1, 1, x.shape[2]))
            seeds.append(centre)
            gap = (x - centre).square().sum(-1)
            far = torch.minimum(far, gap)
        c = torch.cat(seeds, 1)
        for _ in range(5):
            near = (x[:, :, None] - c[:, None]).square().sum(-1).argmin(-1)
            hot = functional.one_hot(near, 3).to(x.dtype)
            n = hot.sum(1)[..., None]
            c = torch.where(n > 0, hot.transpose(1, 2) @ x / n.clamp(min=1), c)
        return c, near


@model("statistics", "k-means from farthest points: seeds and members by argmax and argmin")
def third_lloyd():
    torch.manual_seed(425)
    return Lloyd(), (torch.randn(3, 12, 2),)


class ExpertCapacity(nn.Module):
    """Switch routing with a capacity: places by running sums of one-hot rows, tokens beyond are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(6, 3), nn.Parameter(torch.randn(3, 6, 6) * 0.4)

    def forward(self, x):
        p, choice = self.gate(x).softmax(-1).max(-1)
        hot = functional.one_hot(choice, 3)
        place = (hot.cumsum(1) * hot).sum(-1)
        keep = place <= 3
        y = torch.einsum("btf,btfg->btg", x, self.experts[choice]) * (p * keep)[..., None]
        return x + y, keep, place


@model("networks", "switch experts with a capacity: one route's flip moves the places of all behind it")
def third_expert_capacity():
    torch.manual_seed(426)
    return ExpertCapacity().eval(), (torch.randn(2, 10, 6),)


class TokenMerging(nn.Module):
    """ToMe: tokens of one half merged into their nearest of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.key = nn.Linear(8, 8)

    def forward(self, x):
        k = functional.normalize(self.key(x), dim=-1)
        score, near = (k[:, ::2] @ k[:, 1::2].transpose(1, 2)).max(-1)
        order = score.argsort(dim=-1, descending=True)
        gone, kept = order[:, :2], order[:, 2:]
        target = near.gather(1, gone)
        even, odd = x[:, ::2], x[:, 1::2]

        def rows(v, index):
            return v.gather(1, index[..., None].expand(-1, -1, v.shape[2]))

        place = target[..., None].expand(-1, -1, 8)
        moved = rows(even, gone)
        merged = odd.scatter_add(1, place, moved) / torch.ones_like(odd).scatter_add(1, place, torch.ones_like(moved))
        return torch.cat([rows(even, kept), merged], 1)


@model("vision", "token merging: the most similar pairs, mean by scatter")
def third_token_merging():
    torch.manual_seed(427)
    return TokenMerging().eval(), (torch.randn(2, 10, 8),)


class Speculative(nn.Module):
    """Which drafted tokens are kept: probabilities' ratio against a random number, the first refusal ends it."""

    def forward(self, target, draft, tokens, u):
        p, q = target.softmax(-1), draft.softmax(-1)
        chosen = tokens[..., None]
        ok = u < (p.gather(-1, chosen) / q.gather(-1, chosen)).squeeze(-1)
        length = (~ok).long().cumsum(1).eq(0).sum(1)
        rest = (p - q).clamp(min=0)
        return length, rest / rest.sum(-1, keepdim=True)


@model(
    "decoders",
    "speculative decoding: accepted length, and a remainder that is 0/0 where both agree",
    range={"tokens": (0, 8), "u": (0, 1)},
)
def third_speculative():
    torch.manual_seed(428)
    return Speculative(), (torch.randn(2, 5, 9), torch.randn(2, 5, 9), torch.randint(0, 9, (2, 5)), torch.rand(2, 5))


class InverseSampling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 12)

    def forward(self, x, u):
        total = self.net(x).softmax(-1).cumsum(-1)
        return (total < u[:, None]).sum(-1)


@model("probabilistic", "a sample by the inverse of a running sum, whose end may lie under one", range={"u": (0, 1)})
def third_inverse_sampling():
    torch.manual_seed(429)
    return InverseSampling().eval(), (torch.randn(4, 6), torch.tensor([0.0, 1.0, 0.5, 0.999]))


class KeptBoxes(nn.Module):
    """Boxes above a score, as many as there are."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.box = nn.Linear(6, 1), nn.Linear(6, 4)

    def forward(self, x):
        score = self.score(x).squeeze(-1).sigmoid()
        keep = score > 0.5
        return self.box(x)[keep], score[keep]


@model("decisions", "boxes above a score: as many rows out as there are", dynamic={"x": {0: "anchors"}})
def third_kept_boxes():
    torch.manual_seed(430)
    return KeptBoxes().eval(), (torch.randn(12, 6),)


class InBatchNegatives(nn.Module):
    """CLIP's loss: every other row is a negative, a label may be ignored."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(6, 8), nn.Linear(5, 8), nn.Parameter(torch.tensor(4.6))

    def forward(self, x, y, weight):
        a, b = functional.normalize(self.a(x), dim=-1), functional.normalize(self.b(y), dim=-1)
        logits = self.scale.exp() * a @ b.t()
        loss = -(logits.log_softmax(1) + logits.log_softmax(0)).diagonal() / 2
        return (loss * weight).sum() / weight.sum(), logits


@model("ranking", "a contrastive loss over the batch: logits of a hundred, weights that may sum to zero")
def third_in_batch_negatives():
    torch.manual_seed(431)
    return InBatchNegatives().eval(), (torch.randn(4, 6), torch.randn(4, 5), torch.rand(4))


class NewtonBasins(nn.Module):
    def forward(self, z):
        x, y = z.unbind(-1)
        for _ in range(10):
            x2, y2 = x * x - y * y, 2 * x * y
            x3, y3 = x2 * x - y2 * y, x2 * y + y2 * x
            d = (x2 * x2 + y2 * y2) * 3
            x, y = x - ((x3 - 1) * x2 + y3 * y2) / d, y - (y3 * x2 - (x3 - 1) * y2) / d
        roots = torch.tensor([[1.0, 0], [-0.5, math.sqrt(0.75)], [-0.5, -math.sqrt(0.75)]])
        away = (x[..., None] - roots[:, 0]).square() + (y[..., None] - roots[:, 1]).square()
        return away.argmin(-1)


@model("numerics", "basins of Newton's method: fractal edges between integer labels, 0/0 at the origin")
def third_newton_basins():
    torch.manual_seed(432)
    return NewtonBasins(), (torch.randn(3, 8, 2),)


class Binarisation(nn.Module):
    """DBNet: a steep sigmoid of a difference of maps, a mask, its area."""

    def __init__(self) -> None:
        super().__init__()
        self.p, self.t = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, image):
        soft = torch.sigmoid(50 * (self.p(image).sigmoid() - self.t(image).sigmoid()))
        mask = soft > 0.3
        return soft, mask, mask.sum((1, 2, 3)), functional.hardshrink(soft - 0.5, 0.25)


@model(
    "vision",
    "differentiable binarisation and hard shrinkage: steep and then cut",
    dynamic={"image": {0: "batch", 2: "height", 3: "width"}},
    range={"height": (3, 32), "width": (3, 32)},
)
def third_binarisation():
    torch.manual_seed(433)
    return Binarisation().eval(), (torch.rand(2, 1, 10, 12),)


class PadToMultiple(nn.Module):
    """Any length filled up to whole windows, attention inside of them, cut back."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        b, n, f = x.shape
        fill = (-n) % 4
        y = functional.pad(x, (0, 0, 0, fill))
        there = (torch.arange(n + fill) < n).view(-1, 4)
        q, k, v = self.qkv(y).view(b, (n + fill) // 4, 4, 3 * f).chunk(3, -1)
        w = (q @ k.transpose(-1, -2) / math.sqrt(f)).masked_fill(~there[:, None], -torch.inf).softmax(-1)
        return (w @ v).reshape(b, n + fill, f)[:, :n]


@model("text", "windows of four over any length: filled up, masked, cut back", dynamic={"x": {0: "batch", 1: "length"}}, range={"length": (1, 40)})  # fmt: skip
def third_pad_to_multiple():
    torch.manual_seed(434)
    return PadToMultiple().eval(), (torch.randn(2, 10, 8),)


class IntegerProduct(nn.Module):
    """A quantised layer in whole numbers: int32 product, zero points, a fixed-point multiplier and shift."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (12, 6), dtype=torch.int32))

    def forward(self, x):
        y = (x.to(torch.int32) - 7) @ self.weight
        scaled = (y.to(torch.int64) * 1518500250 + 2**35) >> 36
        return (scaled - 3).clamp(-128, 127).to(torch.int8)


@model("integers", "an int8 layer in whole numbers: fixed-point multiplier, rounding shift")
def third_integer_product():
    torch.manual_seed(435)
    return IntegerProduct(), (torch.randint(-128, 128, (3, 12), dtype=torch.int8),)


class BitCounts(nn.Module):
    """Popcount by masks and sums, lowest set bit, grey codes: fingerprints compared by Tanimoto."""

    def count(self, x):
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F
        return ((x * 0x01010101) & 0xFFFFFFFF) >> 24

    def forward(self, a, b):
        both, either = self.count(a & b).sum(-1), self.count(a | b).sum(-1)
        return both / either, a & -a, a ^ (a >> 1)


@model(
    "chemistry",
    "fingerprints of 32 bits in int64: popcounts, Tanimoto, 0/0 for empty ones",
    range={"a": (0, 2**32 - 1), "b": (0, 2**32 - 1)},
)
def third_bit_counts():
    torch.manual_seed(436)
    return BitCounts(), (torch.randint(0, 2**32, (3, 4)), torch.randint(0, 2**32, (3, 4)))


class Survival(nn.Module):
    """Discrete survival: what is left after each interval, and the hazard by dividing by it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 10)

    def forward(self, x):
        p = self.net(x).softmax(-1)
        left = 1 - p.cumsum(-1)
        hazard = p / (left + p)
        return left, hazard, torch.log(left[:, -1].abs().clamp(min=1e-12))


@model("statistics", "survival: one minus a running sum that ends at one, its logarithm")
def third_survival():
    torch.manual_seed(437)
    return Survival().eval(), (torch.randn(4, 6),)


class SineOfCosine(nn.Module):
    """The sine from the cosine of two directions, which may be the same."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("axes", functional.normalize(torch.randn(4, 5), dim=-1))

    def forward(self, x):
        d = functional.normalize(x, dim=-1)
        c = torch.cat([d @ self.axes.t(), (d * d).sum(-1, keepdim=True)], -1)
        return (1 - c * c).sqrt()


@model("geometry", "a sine as the root of one minus a squared cosine that is one but for rounding")
def third_sine_of_cosine():
    torch.manual_seed(438)
    return SineOfCosine(), (torch.randn(4, 5),)


class SystematicResampling(nn.Module):
    """A particle filter's resampling: parents by floors of a running sum that ends at a whole number."""

    def forward(self, logits, particles):
        n = logits.shape[1]
        w = logits.softmax(-1)
        edge = torch.floor(w.cumsum(-1) * n)
        parent = (edge[:, None] <= torch.arange(n)[:, None]).sum(-1)
        chosen = particles.gather(1, parent.clamp(max=n - 1))
        return parent, chosen, 1 / w.square().sum(-1)


@model("control", "systematic resampling of particles: floors of sums that are whole numbers but for rounding")
def third_systematic_resampling():
    torch.manual_seed(439)
    return SystematicResampling(), (torch.randn(3, 8), torch.randn(3, 8))


class SpectrumPeak(nn.Module):
    """The strongest of all bins of a real signal: every bin has its mirror, equal but for rounding."""

    def __init__(self, n: int = 24) -> None:
        super().__init__()
        k = torch.arange(float(n))
        self.register_buffer("cos", torch.cos(2 * math.pi * k[:, None] * k / n))
        self.register_buffer("sin", torch.sin(2 * math.pi * k[:, None] * k / n))

    def forward(self, x):
        power = (x @ self.cos).square() + (x @ self.sin).square()
        return power.argmax(-1), power.amax(-1)


@model("audio", "the peak of a two-sided spectrum: mirrored bins are tied but for rounding")
def third_spectrum_peak():
    torch.manual_seed(440)
    return SpectrumPeak(), (torch.randn(3, 24),)


class ClosestPair(nn.Module):
    """The closest two points of a set: either order is as near."""

    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(3, 8)

    def forward(self, points):
        h = self.lift(points)
        n2 = h.square().sum(-1)
        d = n2[:, :, None] + n2[:, None] - 2 * h @ h.transpose(1, 2)
        d = d + 1e9 * torch.eye(points.shape[1])
        flat = d.flatten(1).argmin(1)
        return torch.stack([flat // points.shape[1], flat % points.shape[1]], -1)


@model("geometry", "the closest pair by argmin of a symmetric matrix: both orders are tied but for rounding")
def third_closest_pair():
    torch.manual_seed(441)
    return ClosestPair().eval(), (torch.randn(3, 7, 3),)


class SumsToOne(nn.Module):
    """A guard as people write it: probabilities that sum to one, exactly and nearly."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 9)

    def forward(self, x):
        p = self.net(x).softmax(-1)
        total = p.sum(-1)
        return p, total <= 1, (total - 1).abs() < 1e-6, torch.where(total > 1, p.amax(-1), p.amin(-1))


@model("decisions", "whether a softmax sums to at most one: a coin toss of rounding, as a bool and inside a where")
def third_sums_to_one():
    torch.manual_seed(442)
    return SumsToOne().eval(), (torch.randn(4, 5),)


class Residual(nn.Module):
    """What is left of a vector behind its projection, normalised: nothing but rounding if it lies inside."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("basis", torch.linalg.qr(torch.randn(6, 3)).Q)
        self.lift = nn.Linear(4, 3)

    def forward(self, x):
        inside = self.lift(x) @ self.basis.t()
        rest = inside - (inside @ self.basis) @ self.basis.t()
        return rest / rest.norm(dim=-1, keepdim=True), rest.norm(dim=-1) > 1e-7


@model("numerics", "the direction of a residual that is zero but for rounding")
def third_residual_direction():
    torch.manual_seed(443)
    return Residual().eval(), (torch.randn(4, 4),)


class Antisymmetric(nn.Module):
    """A log of a quotient of equal things, its sign and where it ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(7, 7)

    def forward(self, x):
        y = functional.softplus(self.a(x))
        forth, back = y.sum(-1), y.flip(-1).sum(-1)
        drift = torch.log(forth / back)
        return drift * 1e6, torch.sign(drift)


@model("numerics", "the log of a sum over the same sum backwards, times a million, and its sign")
def third_same_sum_backwards():
    torch.manual_seed(444)
    return Antisymmetric().eval(), (torch.randn(4, 7),)


class SmithWaterman(nn.Module):
    """Local alignment with affine gaps and a learned table: fourteen by fourteen cells."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.randn(6, 6) + 3 * torch.eye(6))

    def forward(self, a, b):
        match = self.scores[a[:, :, None], b[:, None]]
        zero = torch.zeros_like(match[:, 0, 0])
        low = torch.full_like(zero, -1e9)
        n, m = a.shape[1], b.shape[1]
        h, e = [zero] * (m + 1), [low] * (m + 1)
        best = zero
        for i in range(n):
            new, f = [zero], low
            for j in range(1, m + 1):
                e[j] = torch.maximum(e[j] - 0.3, h[j] - 1.1)
                f = torch.maximum(f - 0.3, new[j - 1] - 1.1)
                cell = torch.stack([zero, h[j - 1] + match[:, i, j - 1], e[j], f]).amax(0)
                new.append(cell)
                best = torch.maximum(best, cell)
            h = new
        return best


@model("text", "local alignment with affine gaps: two thousand nodes of maxima", range={"a": (0, 5), "b": (0, 5)})
def third_smith_waterman():
    torch.manual_seed(445)
    return SmithWaterman(), (torch.randint(0, 6, (2, 14)), torch.randint(0, 6, (2, 14)))
