"""What node and service say to each other. Pydantic and the standard library only: both sides import it."""
