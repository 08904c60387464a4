"""`python -m zomirror`: the same as `zomirror`."""

from zomirror.cli import main

main()
