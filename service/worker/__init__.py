"""What runs on a node: it claims suites, measures, keeps results until they are acknowledged."""
