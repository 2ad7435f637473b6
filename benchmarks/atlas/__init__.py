"""Every operation of torch's own test samples, exported and tried on the edges of its values.

python -m benchmarks.atlas.run            measures what is missing, then writes docs/atlas.md, docs/atlas.json and docs/atlas/*.py
python -m benchmarks.atlas.run --minutes 10 --only float32 "older float32 opsets"
"""
