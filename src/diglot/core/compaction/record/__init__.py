"""The record: what a compaction keeps without any model, exact whatever the model.

A ledger says what was done and how it stands, an excerpt quotes what was said, called and printed. The next
compaction reads both back and goes on from there, so that nothing is summarised twice. It deliberately holds
nothing that a person said (that is kept as it is) and no prose.

`taking` makes a record of items, with `calls` (and its `shell`, `paths`, `changes`, `runs`) for the ledger and
`excerpt` (with `masking`) for what is quoted; `writing` makes text of a record and reads it back; `values` is what
they all speak of. Neighbours outside import this door.
"""

from diglot.core.compaction.record.taking import record_of
from diglot.core.compaction.record.values import Record
from diglot.core.compaction.record.writing import read_summary, write_record, write_summary

__all__ = ["Record", "read_summary", "record_of", "write_record", "write_summary"]
