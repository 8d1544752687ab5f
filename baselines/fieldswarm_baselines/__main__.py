"""`python -m fieldswarm_baselines`."""

import sys

from .commands import main

sys.exit(main())
