"""Version of the service that the types describe. Written by `make client-sources`."""

__version__ = "0.1.0"
