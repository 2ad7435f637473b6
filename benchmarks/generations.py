"""Generations of small random models: every token that changed is classified, and planted faults are called bugs.

`python -m benchmarks.generations` continues a thousand prompts by 64 tokens through right exports (with and without a cache, decoders
and encoder–decoders), then a few through wrong ones. Half of the vocabulary is nearly a copy of the other half, so that rounding often decides.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import onnxproof

VOCAB, LENGTH, LAYERS, WIDTH = 200, 9, 2, 32
# What a speech model hears.
MELS, HEARD = 16, 40
RESULTS = Path(__file__).parents[1] / "docs" / "answers.json"
Change = Callable[..., Any]


def make_model(family: str, seed: int) -> nn.Module:
    """A model with random weights, large enough to choose, and with tokens that are nearly alike."""
    import transformers as hf

    torch.manual_seed(seed)
    like: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": WIDTH,
        "intermediate_size": 64,
        "num_hidden_layers": LAYERS,
    }
    like |= {"num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.3, "pad_token_id": 0}
    like |= {"bos_token_id": None, "eos_token_id": None}
    made = {
        "gpt2": lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(
                vocab_size=VOCAB,
                n_embd=WIDTH,
                n_layer=LAYERS,
                n_head=2,
                n_positions=128,
                initializer_range=0.3,
                bos_token_id=None,
                eos_token_id=None,
            )
        ),
        "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**like)),
        "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**like)),
        "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**like)),
        "t5": lambda: hf.T5ForConditionalGeneration(
            hf.T5Config(
                vocab_size=VOCAB,
                d_model=WIDTH,
                d_kv=16,
                d_ff=64,
                num_layers=LAYERS,
                num_heads=2,
                eos_token_id=None,
                decoder_start_token_id=0,
                pad_token_id=0,
                initializer_factor=3.0,
            )
        ),
        "whisper": lambda: hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(
                vocab_size=VOCAB,
                d_model=WIDTH,
                encoder_layers=1,
                decoder_layers=LAYERS,
                num_mel_bins=MELS,
                max_source_positions=HEARD // 2,
                max_target_positions=128,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=64,
                decoder_ffn_dim=64,
                pad_token_id=0,
                bos_token_id=None,
                eos_token_id=None,
                decoder_start_token_id=1,
                init_std=0.3,
            )
        ),
    }[family]()
    head = made.get_output_embeddings().weight
    with torch.no_grad():
        head[VOCAB // 2 :] = head[: VOCAB // 2] * (1 + 2e-7 * torch.randn(VOCAB // 2, 1))
    return made.eval()


class Plain(nn.Module):
    """Scores of a whole sequence."""

    def __init__(self, model: nn.Module, change: Change | None = None) -> None:
        super().__init__()
        self.model, self.change = model, change

    def forward(self, input_ids, attention_mask, position_ids):
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "position_ids": position_ids}
        given = self.change(given) if self.change is not None else given
        logits = self.model(**{n: v for n, v in given.items() if n != "after"}, use_cache=False).logits
        return given["after"](logits) if "after" in given else logits


class Translated(nn.Module):
    """Scores of a decoder for its own tokens and those of an encoder."""

    def __init__(self, model: nn.Module, change: Change | None = None) -> None:
        super().__init__()
        self.model, self.change = model, change

    def forward(self, input_ids, attention_mask, decoder_input_ids):
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "decoder_input_ids": decoder_input_ids}
        given = self.change(given) if self.change is not None else given
        return self.model(**given, use_cache=False).logits


class Cached(nn.Module):
    """Scores of the next tokens, with a cache of those before."""

    def __init__(self, model: nn.Module, change: Change | None = None) -> None:
        super().__init__()
        self.model, self.change = model, change

    def forward(self, input_ids, attention_mask, position_ids, past):
        from transformers.cache_utils import DynamicCache

        given = {"input_ids": input_ids, "attention_mask": attention_mask, "position_ids": position_ids, "past": past}
        given = self.change(given) if self.change is not None else given
        past = given.pop("past")
        after = given.pop("after", lambda present: present)
        cache = DynamicCache.from_legacy_cache(tuple(zip(past[::2], past[1::2], strict=True)))
        answer = self.model(**given, past_key_values=cache, use_cache=True)
        return answer.logits, after([part for pair in answer.past_key_values.to_legacy_cache() for part in pair])


def export(family: str, model: nn.Module, kind: str, file: Path, change: Change | None = None) -> None:
    ids, sizes = torch.randint(1, VOCAB, (2, 5)), {0: "batch", 1: "seq"}
    positions = torch.arange(5).expand(2, 5).contiguous()
    names, outputs, shapes = ["input_ids", "attention_mask", "position_ids"], ["logits"], [sizes] * 3
    inputs: tuple[Any, ...] = (ids, torch.ones_like(ids), positions)
    wrapped: nn.Module = Plain(model, change)
    if kind == "cached":
        heads = 2 if family == "gpt2" else 1
        past = [torch.randn(2, heads, 6, WIDTH // 2) for _ in range(2 * LAYERS)]
        inputs = (ids, torch.ones(2, 11, dtype=torch.int64), positions + 6, past)
        shapes = [sizes, {0: "batch", 1: "total"}, sizes, [{0: "batch", 2: "past"}] * len(past)]
        parts = [f"{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
        names, outputs = (
            [*names, *(f"past_key_values.{p}" for p in parts)],
            [*outputs, *(f"present.{p}" for p in parts)],
        )
        wrapped = Cached(model, change)
    elif family == "t5":
        names, wrapped = ["input_ids", "attention_mask", "decoder_input_ids"], Translated(model, change)
        inputs, shapes = (ids, torch.ones_like(ids), ids[:, :4]), [sizes, sizes, {0: "batch", 1: "told"}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            wrapped.eval(),
            inputs,
            file,
            dynamo=True,
            dynamic_shapes=tuple(shapes),
            input_names=names,
            output_names=outputs,
            verbose=False,
        )


def export_parts(model: nn.Module, given: dict[str, torch.Tensor], folder: Path) -> tuple[Path, list[Path]]:
    """A decoder with its cache, and beside it its encoder and its first step, each as `onnxproof export` makes it."""
    from transformers.modeling_outputs import BaseModelOutput

    main = model.main_input_name
    heard = {name: given[name] for name in (main, "attention_mask") if name in given}
    masked = {name: mask for name, mask in heard.items() if name != main}
    with torch.no_grad():
        encoded = BaseModelOutput(last_hidden_state=model.get_encoder()(**heard).last_hidden_state)
        told = {"encoder_outputs": encoded, **masked, "decoder_input_ids": given["decoder_input_ids"][:, :1]}
        cache = model(**{**told, "decoder_input_ids": given["decoder_input_ids"]}, use_cache=True).past_key_values
    inputs = {"encoder": heard, "first": told, "later": {**told, "past_key_values": cache}}
    wide: dict[str, Any] = {name: {0: "batch", 1: "source"} for name in masked}
    sources = {0: "batch", 1: "source"} if masked else {0: "batch"}
    dynamic = {
        "encoder": {main: sources, **wide},
        "first": {"encoder_outputs.last_hidden_state": sources, **wide, "decoder_input_ids": {0: "batch"}},
        "later": None,
    }
    files = [
        onnxproof.export(
            Encoder(model) if part == "encoder" else model, inputs[part], out=folder / part, dynamic=dynamic[part]
        ).artifact.path
        for part in inputs
    ]
    return Path(files[2]), [Path(file) for file in files[:2]]


class Encoder(nn.Module):
    """What it hears, encoded."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, **heard):
        return {"last_hidden_state": self.encoder(**heard).last_hidden_state}


def make_sounds(file: Path, count: int, seed: int) -> None:
    np.savez(file, input_features=np.random.default_rng(seed).normal(size=(count, MELS, HEARD)).astype(np.float32))


def make_prompts(file: Path, count: int, seed: int) -> None:
    """Prompts, every other one padded on the left."""
    generator = np.random.default_rng(seed)
    ids, mask = generator.integers(1, VOCAB, (count, LENGTH)), np.ones((count, LENGTH), np.int64)
    for row in range(1, count, 2):
        mask[row, : generator.integers(1, 5)] = 0
    np.savez(file, input_ids=np.where(mask > 0, ids, 0), attention_mask=mask)


def example(family: str) -> dict[str, torch.Tensor]:
    ids = torch.randint(1, VOCAB, (2, 5))
    if family == "whisper":
        return {"input_features": torch.randn(2, MELS, HEARD), "decoder_input_ids": ids[:, :4]}
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {**given, "decoder_input_ids": ids[:, :4]} if family == "t5" else given


def evaluate(family: str, model: nn.Module, file: Path, prompts: Path, tokens: int, out: Path, **more: Any) -> Any:
    return onnxproof.evaluate(
        model,
        example(family),
        onnx=str(file),
        data=str(prompts),
        task="generate",
        tokens=tokens,
        out=out,
        in_process=True,
        threads=1,
        **more,
    )


def keep_columns(mask: torch.Tensor, chosen: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A mask that forgets some places."""
    return mask * chosen(torch.arange(mask.shape[1])).to(mask.dtype)


def swap_tokens(logits: torch.Tensor) -> torch.Tensor:
    order = torch.arange(VOCAB)
    order[[3, 7]] = order[[7, 3]]
    return logits[..., order]


def late(positions: torch.Tensor) -> torch.Tensor:
    return positions + (positions >= LENGTH + 16).to(positions.dtype)


def forget_newest(present: list[torch.Tensor]) -> list[torch.Tensor]:
    return [*present[:-1], torch.cat([present[-1][:, :, :-1], torch.zeros_like(present[-1][:, :, -1:])], 2)]


# Name → the family, the kind of file, what it does otherwise, and the step that shows it first (None where it is the first).
FAULTS: dict[str, tuple[str, str, Change]] = {
    "positions off by one after step 16": ("gpt2", "plain", lambda g: {**g, "position_ids": late(g["position_ids"])}),
    "positions off by one after step 16, rotary": ("llama", "plain", lambda g: {**g, "position_ids": late(g["position_ids"])}),
    "left padding ignored": ("gpt2", "plain", lambda g: {**g, "attention_mask": torch.ones_like(g["attention_mask"])}),
    "positions count the padding": (
        "gpt2", "plain", lambda g: {**g, "position_ids": torch.ones_like(g["position_ids"]).cumsum(1) - 1},
    ),
    "two tokens swapped": ("llama", "plain", lambda g: {**g, "after": swap_tokens}),
    "scores 0.1 % larger": ("llama", "plain", lambda g: {**g, "after": lambda logits: logits * 1.001}),
    "positions off by one with the cache only": (
        "gpt2", "cached", lambda g: {**g, "position_ids": g["position_ids"] + (g["position_ids"] >= LENGTH).long()},
    ),
    "mask of the past one short": (
        "llama", "cached",
        lambda g: {**g, "attention_mask": keep_columns(g["attention_mask"], lambda at: at != g["attention_mask"].shape[1] - 2)},
    ),
    "cache of the wrong layer": ("llama", "cached", lambda g: {**g, "past": g["past"][2:] + g["past"][:2]}),
    "newest value of the cache lost": ("gpt2", "cached", lambda g: {**g, "after": forget_newest}),
    "keys and values of the cache swapped": ("llama", "cached", lambda g: {**g, "after": lambda p: [p[1], p[0], *p[2:]]}),
    "cache forgets what is 20 tokens old": (
        "llama", "cached",
        lambda g: {**g, "attention_mask": keep_columns(g["attention_mask"], lambda at: at >= g["attention_mask"].shape[1] - 20)},
    ),
    "left padding ignored with the cache": (
        "llama", "cached", lambda g: {**g, "attention_mask": torch.ones_like(g["attention_mask"])},
    ),
    "padding of the encoder ignored": ("t5", "plain", lambda g: {**g, "attention_mask": torch.ones_like(g["attention_mask"])}),
    "the decoder's first token is another": (
        "t5", "plain",
        lambda g: {**g, "decoder_input_ids": g["decoder_input_ids"] + (torch.arange(g["decoder_input_ids"].shape[1]) == 0).long()},
    ),
}  # fmt: skip
RIGHT = [
    *((family, "plain") for family in ("gpt2", "llama", "t5")),
    *((family, "cached") for family in ("gpt2", "llama", "mistral", "qwen2")),
    *((family, "parts") for family in ("t5", "whisper")),
    *((family, "beams") for family in ("gpt2", "llama")),
]


def run_right(family: str, kind: str, seed: int, count: int, tokens: int, folder: Path) -> dict[str, Any]:
    model, file, prompts = make_model(family, seed), folder / f"{family}-{kind}-{seed}.onnx", folder / "prompts.npz"
    more: dict[str, Any] = {}
    if kind == "parts":
        file, beside = export_parts(model, example(family), folder)
        more = {"beside": [str(one) for one in beside]}
    else:
        export(family, model, "cached" if kind == "beams" else kind, file)
        more = {"beams": 4} if kind == "beams" else {}
    (make_sounds if family == "whisper" else make_prompts)(prompts, count, seed)
    began = time.perf_counter()
    proof = evaluate(family, model, file, prompts, tokens, folder / "out", **more)
    q = proof.quality
    return {
        **{
            "family": family,
            "kind": kind,
            "seed": seed,
            "generations": q.n,
            "steps": q.decisions,
            "changed": q.flip_count,
        },
        "unclassified": sum(flip.explained is None for flip in q.flips) + q.flip_count - len(q.flips),
        "bugs": len(q.unexplained),
        "verdict": proof.verdict,
        "alarms": sorted({f.code for f in proof.findings if f.weight}),
        "seconds": round(time.perf_counter() - began, 1),
    }


def run_fault(name: str, count: int, tokens: int, folder: Path) -> dict[str, Any]:
    family, kind, change = FAULTS[name]
    model, file, prompts = make_model(family, 0), folder / "wrong.onnx", folder / "prompts.npz"
    export(family, model, kind, file, change)
    make_prompts(prompts, count, 0)
    proof = evaluate(family, model, file, prompts, tokens, folder / "out")
    steps = [one.step for one in proof.quality.score_difference.farthest if one.step is not None]
    caught = sorted({f.code for f in proof.findings if f.weight})
    return {
        "fault": name,
        "family": family,
        "kind": kind,
        "verdict": proof.verdict,
        "codes": caught,
        "first": min(steps, default=None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="generations through right exports")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--only", choices=("right", "faults"), help="one half of it")
    parser.add_argument("--kinds", nargs="*", help="only files of these kinds; what is known of others stays")
    parser.add_argument("--seeds", type=int, default=2, help="models of each kind")
    asked = parser.parse_args()
    torch.set_num_threads(1)  # the models are small
    each = -(-asked.count // (len(RIGHT) * asked.seeds))
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as made:
        if asked.only != "faults":
            chosen = [(family, kind) for family, kind in RIGHT if kind in (asked.kinds or {kind})]
            earlier = known.get("right generations", [])
            known["right generations"] = [one for one in earlier if (one["family"], one["kind"]) not in chosen]
            for seed in range(asked.seeds):
                for family, kind in chosen:
                    note(known, "right generations", run_right(family, kind, seed, each, asked.tokens, Path(made)))
        if asked.only != "right":
            known["wrong generations"] = []
            for name in FAULTS:
                note(known, "wrong generations", run_fault(name, 16, asked.tokens, Path(made)))


def note(known: dict[str, Any], kind: str, made: dict[str, Any]) -> None:
    """Tell it and write it down: what was run is not lost with what comes after."""
    known[kind].append(made)
    print(made, flush=True)
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
