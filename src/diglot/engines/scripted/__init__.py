"""An engine that answers from a script: for tests, examples and client matrices. Shipped, deterministic, quick.

    {"replies": [
        {"say": "Hello there."},
        {"think": "Weather, so a call.", "call": [{"name": "get_weather", "arguments": {"city": "Brno"}}]},
        {"when": "echo", "echo": true},
        {"say": "This one never", "fault": "crash", "after": 2},
        {"say": "Paused until the test opens it.", "gate": "door", "after": 1},
        {"hang": true}
    ]}

Replies are given in order and from the start again; one with `when` is given whenever the last user message
holds that text, before all others. See `script` for every field.
"""
