"""Figures of explanations, drawn with matplotlib; nothing here computes an explanation."""
