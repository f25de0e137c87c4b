"""Runs, their jobs, who carries them out, and what others want of them."""
