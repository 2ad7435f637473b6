"""The run: one list of stages (`stages.py`), in this process or in supervised children (`executors.py`)."""
