"""HTTP: carries bytes between clients and dialects.

The only room that knows Starlette. It knows of a dialect that it is a table, and nothing of what is in it:
`app` mounts the tables, `serve` answers one request, `body` reads, `guard` keeps strangers out.
"""
