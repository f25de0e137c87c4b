"""Tuneloom weaves the stages of many tuning jobs through shared hosts and devices."""

__version__ = "0.1.0"
