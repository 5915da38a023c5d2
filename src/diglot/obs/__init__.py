"""Observation: what the operator of a server gets to see. `log` sets the log up."""
