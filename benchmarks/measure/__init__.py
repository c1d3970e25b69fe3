"""The parts of bench.py: what is measured, by whom, what was found, how it is told."""


class Failure(Exception):
    """What went wrong, for people."""
