"""The commands, one module each; `command` in it is what `diglot.cli.main` calls."""
