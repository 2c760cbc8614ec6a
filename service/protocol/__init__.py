"""Messages between node and service. Pydantic and the standard library only: both sides import them."""
