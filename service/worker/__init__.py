"""The program of a node: it claims suites, measures, and stores results until they are acknowledged."""
