"""OX0xx: the run itself."""

from onnxproof.findings.record import Entry

ENTRIES = (
    Entry(
        "OX001",
        "the process died",
        "block",
        "PyTorch, the exporter or ONNX Runtime killed the process that ran it (a signal, not an exception).",
        "A server that meets this input dies with it.",
        "Take the named case as a reproduction; if the crash is in the export, try `--exporter torchscript` or rewrite the "
        "named operation; if it is in onnxruntime, guard the input before it reaches the session.",
        "run",
    ),
    Entry(
        "OX002",
        "a case did not end in time",
        "block",
        "A stage ran longer than `--case-timeout` allows and was stopped.",
        "Either the model hangs on this input or it is much slower than expected.",
        "Raise `--case-timeout`, lower `--batch-sizes`, or look at the named case and stage.",
        "run",
    ),
    Entry(
        "OX003",
        "out of memory",
        "block",
        "A stage asked for more memory than the machine has.",
        "The case could not be compared.",
        "Lower `--batch-sizes` or run on a larger machine.",
        "run",
    ),
    Entry(
        "OX004",
        "nothing was compared",
        "block",
        "No case produced outputs on both sides.",
        "A run that compared nothing proves nothing; it is never a pass.",
        "Give inputs that the PyTorch module accepts: `--input`, `--range`, `--data`.",
        "run",
    ),
    Entry(
        "OX005",
        "cases left out",
        "note",
        "Some planned cases were not run because the time or memory budget was spent.",
        "The proof covers less than planned.",
        "Raise `--budget` to run them all.",
        "run",
    ),
    Entry(
        "OX006",
        "PyTorch rejects the inputs",
        "note",
        "The PyTorch module itself raised for these cases, so there is nothing to compare.",
        "If production sends such inputs, neither side can answer.",
        "Declare what is valid with `--range` and `--dynamic` to get more useful cases.",
        "model",
    ),
    Entry(
        "OX007",
        "the search ended early",
        "note",
        "`--search` met a module or an input that it cannot work with; the planned cases are not affected.",
        "Less was tried than asked for.",
        "The evidence has the error. Please report it: a search should take any module that PyTorch runs.",
        "run",
    ),
)
