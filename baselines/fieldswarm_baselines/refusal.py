"""What is said no to."""


class Refused(Exception):
    """What was asked for cannot be done; the message says why, and what can."""
