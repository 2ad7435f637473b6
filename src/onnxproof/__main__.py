"""`python -m onnxproof`."""

from onnxproof.cli import main

main()
