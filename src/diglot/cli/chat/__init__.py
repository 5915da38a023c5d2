"""A chat in the terminal: what `diglot run` is made of. It knows the server's HTTP interface and nothing behind it."""
