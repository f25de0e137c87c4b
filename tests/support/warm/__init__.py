"""Python processes that start in milliseconds: forks of one that has imported everything once.

A program that tunes a model spends seconds on imports, in itself and in the parent of its workers.
Tests start hundreds of such programs, so one warm process (`server`) imports all that any of
them needs and then serves as the interpreter: it forks, and the fork gets the words, the folder,
the environment and the descriptors of whoever asked (`orders`), as if it had been started anew.
"""

from support.warm.interpreter import WarmInterpreter
from support.warm.process import WarmProcess

__all__ = ["WarmInterpreter", "WarmProcess"]
