"""The tables as queries see them; the migrations create them, a test compares the two."""
