"""Reinforcement learning on Fieldswarm's problems with the field's own libraries: what the swarms are held against.

`python -m fieldswarm_baselines --help`; what each method sees and where its numbers are from is in `README.md`.
"""
