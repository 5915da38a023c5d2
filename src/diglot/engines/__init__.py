"""Engines: what turns a request into events.

`peer` is the client of any OpenAI-compatible server; `llamacpp` puts such a server into a child process,
`remote` finds one at a base URL, `scripted` answers from a script. All of them implement `core.ports` and
pass one conformance file. No engine knows a dialect or a service.
"""
