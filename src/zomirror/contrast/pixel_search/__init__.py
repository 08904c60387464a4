"""The search for adversarial inputs that change few pixels, by full changes of pixels."""
