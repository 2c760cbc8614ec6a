"""The four estimates: questions resolved, planned and answered, and their HTTP face."""
