"""Imported for what it does: what this process and those it starts tune knows nothing of the starter bank.

Its records would be trials that nobody counts, of the networks that are compared here.
"""

import os

os.environ["TUNELOOM_STARTER_BANK"] = "off"
