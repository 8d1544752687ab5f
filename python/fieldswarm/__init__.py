"""Swarms of tiny controllers that steer physical fields.

Simulate a problem, run a policy with the bits of a microcontroller, train one, or put a solver of your
own in the field's place.
"""

from ._native import VERSION as __version__

__all__ = ["__version__"]
