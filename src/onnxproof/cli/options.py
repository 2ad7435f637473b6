"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Target = Annotated[
    str, typer.Argument(help="path/file.py:name, package.module:name, file.pt2 or file.pt", show_default=False)
]
OptionalTarget = Annotated[
    str | None,
    typer.Argument(
        help="path/file.py:name, package.module:name, file.pt2, file.pt or a subject of the configuration.",
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Prove every subject of the configuration.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Subjects at a time, with --all.", show_default=False)]
Onnx = Annotated[str | None, typer.Option("--onnx", help="Prove this file instead of exporting.", show_default=False)]
Input = Annotated[
    list[str] | None,
    typer.Option("--input", help="Example input: x:4x3x224x224:float32 (repeatable).", show_default=False),
]
Range_ = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        help="Valid values of an input, or sizes of a dynamic dimension, both ends included: ids:0,30521, seq:1,512 (repeatable).",
        show_default=False,
    ),
]
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        help="What an input means: ids:id, x:image, m:mask, m:additive-mask, n:length, n:integer, x:float (repeatable).",
        show_default=False,
    ),
]
Search = Annotated[
    str | None,
    typer.Option("--search", help="Look for an input that breaks it, this long: 30s, 5m.", show_default=False),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="Memory for inner values while locating: 512MB. Default 2GB.", show_default=False),
]
Dynamic = Annotated[
    list[str] | None,
    typer.Option(
        "--dynamic",
        help="Dynamic dims: x:0=batch,1=seq (repeatable); 'none' for none. Default: the batch.",
        show_default=False,
    ),
]
Batches = Annotated[
    str | None, typer.Option("--batch-sizes", help="Batch sizes to verify: 1,2,7,32,128.", show_default=False)
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data", help="Your data: npz, npy, pt, safetensors, csv, parquet or file.py:name.", show_default=False
    ),
]
Opset = Annotated[
    int | None, typer.Option("--opset", help="Opset to export. Default: the exporter's best.", show_default=False)
]
ExporterName = Annotated[str, typer.Option("--exporter", help="dynamo, torchscript or auto.")]
NoOptimize = Annotated[bool, typer.Option("--no-optimize", help="Leave the exporter's own graph optimiser out.")]
Strict = Annotated[bool, typer.Option("--strict", help="Let torch.export trace Python strictly.")]
Disable = Annotated[
    list[str] | None,
    typer.Option("--disable", help="An onnxruntime rewrite to switch off, by name (repeatable).", show_default=False),
]
Heal = Annotated[bool, typer.Option("--heal", help="Where the sides part: try other settings until one passes.")]
Fix = Annotated[bool, typer.Option("--fix", help="Write the settings that worked into the configuration.")]
KeepMetadata = Annotated[
    bool, typer.Option("--keep-metadata", help="Leave source paths and lines in the shipped file.")
]
Provider = Annotated[
    list[str] | None,
    typer.Option("--provider", help="Execution provider NAME[:k=v,…] (repeatable). Default: CPU.", show_default=False),
]
Optimization = Annotated[str, typer.Option("--optimization", help="disable, basic, extended or all.")]
Threads = Annotated[int | None, typer.Option("--threads", help="onnxruntime's intra-op threads.", show_default=False)]
Atol = Annotated[
    list[str] | None,
    typer.Option("--atol", help="Absolute tolerance, or output=number (repeatable). Default 1e-4.", show_default=False),
]
Rtol = Annotated[
    list[str] | None,
    typer.Option("--rtol", help="Relative tolerance, or output=number (repeatable). Default 1e-3.", show_default=False),
]
MaxAbs = Annotated[
    list[str] | None,
    typer.Option("--max-abs", help="Largest absolute difference, or output=number. Default 1e-3.", show_default=False),
]
Noise = Annotated[
    float | None,
    typer.Option(
        "--noise", help="Times PyTorch's own rounding error that is accepted. Default 10.", show_default=False
    ),
]
Accept = Annotated[
    list[str] | None, typer.Option("--accept", help="Accept findings of this code (with --reason).", show_default=False)
]
Reason = Annotated[list[str] | None, typer.Option("--reason", help="Why: one for each --accept.", show_default=False)]
Nonfinite = Annotated[bool, typer.Option("--nonfinite", help="NaN and infinite inputs gate the verdict too.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the generated cases.")]
Budget = Annotated[str, typer.Option("--budget", help="Time for verifying: 120s, 5m.")]
CaseTimeout = Annotated[
    str | None,
    typer.Option(
        "--case-timeout", help="Longest silence of a stage. Default 300s, 30m for the export.", show_default=False
    ),
]
InProcess = Annotated[bool, typer.Option("--in-process", help="Work in this process (for debugging).")]
Json = Annotated[str | None, typer.Option("--json", help="Write the proof; - for stdout.", show_default=False)]
Html = Annotated[
    str | None,
    typer.Option("--html", help="Write the report as one HTML page. prove does by default.", show_default=False),
]
Junit = Annotated[str | None, typer.Option("--junit", help="Write JUnit XML.", show_default=False)]
Markdown = Annotated[
    str | None, typer.Option("--markdown", help="Write Markdown for a pull-request comment.", show_default=False)
]
Github = Annotated[bool, typer.Option("--github", help="GitHub annotations, and the job's summary.")]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="An earlier proof.json: fail only on what got worse since.", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict's line.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="One line for every output of every case.")]
Out = Annotated[str, typer.Option("--out", help="Folder for the artifact and the proof.")]
