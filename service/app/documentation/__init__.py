"""The documentation of the API: documents by audience, and pages that are rendered from them."""
