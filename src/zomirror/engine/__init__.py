"""The one loop that asks: minimize, explain, attack and the paper's experiments are generators that it drives.

A search yields a Request and is sent the answer. The engine owns everything else: the ledger of queries, retries,
caps, joint batches, interruption, run directories and resume.
"""
