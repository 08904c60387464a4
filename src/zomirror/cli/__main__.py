"""`python -m zomirror.cli`: the same as `zomirror`."""

from zomirror.cli import main

main()
