"""The loop that sends queries: minimize, explain, attack and the paper's experiments are generators that it drives.

A search yields a Request and is sent the answer. The engine does the rest: counting queries, retries, limits, joint
batches, interruption, run directories and resuming.
"""
