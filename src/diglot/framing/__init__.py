"""Framing: how a stream of messages is cut out of, and written into, a stream of bytes.

Sans-IO: bytes in, bytes out. Server-sent events in `sse`, newline-delimited JSON in `ndjson`. What the
messages mean is the business of dialects and engines.
"""
