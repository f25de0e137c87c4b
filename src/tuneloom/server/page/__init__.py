"""The web page of a service: one document, and the files that it is made of."""
