"""Why something failed: messages of torch, onnxruntime and their neighbours, and people's own words, told as findings."""
