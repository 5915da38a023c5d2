"""How much a compaction keeps: scripted agent sessions with planted facts, and what is counted on them."""
