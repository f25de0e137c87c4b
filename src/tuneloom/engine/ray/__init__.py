"""The engine of several machines: Ray places and supervises an agent on each, and knows of no stages."""
