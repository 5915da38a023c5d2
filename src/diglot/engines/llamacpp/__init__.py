"""llama.cpp in a child process for each loaded model, spoken to through `engines.peer`.

A crash or a broken file ends the child and not the server, unloading returns all of its memory, and the
event loop shares no interpreter lock with it. The child ends when its parent does.
"""
