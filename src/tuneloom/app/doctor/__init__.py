"""What a machine offers for tuning, and what would disturb it."""
