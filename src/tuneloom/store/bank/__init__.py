"""Trials of jobs; all of them together are the bank that later jobs draw on."""
