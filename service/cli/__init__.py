"""The command line: a module for each group of commands, and how answers look at a terminal."""
