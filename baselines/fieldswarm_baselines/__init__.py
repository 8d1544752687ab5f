"""Reinforcement learning on Fieldswarm's problems with the field's own libraries, to hold the swarms against.

`python -m fieldswarm_baselines --help`; what each method sees and where its numbers are from is in `README.md`.
"""
