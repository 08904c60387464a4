"""The loop that asks: ledger, retries, joint batches, interruption and durability, for every kind of search."""
