"""The soak: a server with real models, used for a while by everybody at once, with engines killed under it."""
