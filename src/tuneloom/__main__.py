"""`python -m tuneloom` is the command `tuneloom`."""

from tuneloom.cli.main import main

if __name__ == "__main__":
    main()
