"""Compaction: a long conversation folded into one item, so that it can go on.

Pure rules, each in a file of its own. `window` says what a compaction item means, `plan` what may go and
what must stay, `prompt` how the model is asked, `record` what is kept by code without any model, `budget`
how long each part may be, `envelope` how it is written down. `services.compact` puts them to work.

The one promise: nothing that a person or the system said is ever rewritten by a model.
"""
