"""What runs beside the handlers: looking into uploads, removing what is old, executors."""
