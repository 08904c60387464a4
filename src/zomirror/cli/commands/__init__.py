"""The commands of zomirror, one file each."""
