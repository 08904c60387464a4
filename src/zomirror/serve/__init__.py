"""Explanations beside a model server: the service, its guard, and the explainer for KServe."""
