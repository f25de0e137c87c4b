"""What requests and answers look like; the description of the API is made from these."""
