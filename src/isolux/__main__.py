"""``python -m isolux``: the command line, where its script is not on the path."""

from isolux.cli import main

if __name__ == "__main__":
    main()
