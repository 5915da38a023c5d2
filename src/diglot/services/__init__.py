"""Services: what the server does, over ports.

They know `core` and nothing else: no dialect, no engine, no HTTP. `services.desk` is where a request is
handed in; everything else is a part of how it is answered.
"""
