"""Durable runs: a directory that survives kills, crashes and full disks, and is resumed by the same call."""

from zomirror.runs.inspection import RunInfo, inspect, list_runs

__all__ = ["RunInfo", "inspect", "list_runs"]
