"""Hugging Face: GGUF files of a repository, chosen by quantisation, fetched and made into a model.

`listing` asks what there is, `choice` takes from it, `pull` does the rest. Neighbours: `store.fetch` moves bytes,
`store.local` keeps them.
"""
