"""The vocabulary and the rules of Diglot.

Everything here is pure: no input or output, no clock, no randomness, no environment, no logging.
It knows msgspec and the standard library and nothing else of Diglot. Read `items`, `request` and
`events` first: a request is made of items, and a request becomes events.
"""
