"""`python -m tuneloom` is the command `tuneloom`."""

import sys

from tuneloom.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
