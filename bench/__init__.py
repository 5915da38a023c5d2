"""Measurements: what Diglot costs over the engine alone, and what it costs by itself. `python -m bench`, `make bench`.

`compaction` beside it measures how much a compaction keeps.
"""
