"""Other tools: each module needs its own extra."""
