"""What can be said without running anything: of the module before its export, and of any ONNX file."""
