"""Formats that others publish: a parsed document in, planning values out."""
