"""Tuning for tenants: what they upload and submit, what they see of it, and for how long it is kept."""
