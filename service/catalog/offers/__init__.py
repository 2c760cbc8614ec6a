"""Offers: dated prices of instances with accelerators."""
