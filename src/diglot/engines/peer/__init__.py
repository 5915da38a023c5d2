"""The client of any OpenAI-compatible server: requests become chat completions, their stream becomes events.

It always streams, so that a client who leaves frees the slot at once, also while the prompt is read.
Used by `llamacpp` on a child of its own and by `remote` on somebody else's server.
"""
