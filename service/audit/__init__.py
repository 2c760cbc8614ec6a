"""What was done: every stored write, once, with a record that shows whether it was tampered with."""
