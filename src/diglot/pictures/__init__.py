"""Pictures: really decoded before an engine sees them, in a process of their own.

`gallery` is what the services are given, `studio` the parent's side of the process and `__main__` the process, which alone
knows Pillow. Neighbour: `core.images` has judged the frame of every picture by then.
"""
