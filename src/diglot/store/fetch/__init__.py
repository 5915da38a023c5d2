"""Fetching: contents brought over HTTP into the store, in parts, as often as it takes.

It knows no registry and no manifest: only URLs, what may be sent to which host, and files. Neighbours:
`registry` and `hub` say what is to be fetched from where.
"""
