"""Registries: models fetched from and brought to servers that speak Ollama's and Docker's registry protocol.

`address` says where things are, `tokens` who we are, `pull` and `push` what is done. Neighbours: `store.fetch`
moves bytes, `store.local` keeps them.
"""
