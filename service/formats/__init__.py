"""Formats of other publishers: readers turn a parsed document into planning values."""
