"""HTTP, authentication and the page of a service; calls the same functions as the command line.

FastAPI and pydantic are used in this room and nowhere else.
"""
