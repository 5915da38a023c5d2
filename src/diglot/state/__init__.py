"""State: what the server remembers between runs, other than models.

Neighbours: `core.ports` for what is implemented here, `app` hands it in. `store` holds the models.
"""
