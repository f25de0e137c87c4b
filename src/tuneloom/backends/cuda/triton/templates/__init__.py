"""One template a file: which meanings it takes, its knobs, its text."""
