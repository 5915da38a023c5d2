"""`python -m diglot` is the command `diglot`: the same entry point, nothing of its own."""

from diglot.cli.main import main

if __name__ == "__main__":
    main()
