"""Serves this machine as a board over TVM's RPC protocol, each session in a process of its own.

A session that crashes, hangs or eats memory ends with its process; TVM's own server stops answering
after the first crash. Modules here need Python and TVM's runtime, nothing of Tuneloom: `tuneloom board file`
joins them to one file for boards that have no more.
"""
