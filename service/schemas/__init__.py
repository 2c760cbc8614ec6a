"""Requests and answers as they are on the wire; `resolve` turns a request into planning values."""
