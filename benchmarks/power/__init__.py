"""Measured power: every verifier on every fault and every correct model, in one run."""
