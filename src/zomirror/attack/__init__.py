"""Sparse adversarial inputs of any classifier that can be asked."""

from zomirror.attack.attack import Attack, attack, attack_many

__all__ = ["Attack", "attack", "attack_many"]
