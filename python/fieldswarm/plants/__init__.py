"""Published solvers as plants; each is run with ``python -m fieldswarm.plants.<name>``."""
