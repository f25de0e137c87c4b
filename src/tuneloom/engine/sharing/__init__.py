"""Devices of a machine shared by processes that know nothing of each other: reservations and locks.

Both are files in one folder of the machine, locked by `flock`, so they vanish with their process
however it ends, and hold for different users and for containers that mount the folder.
"""
