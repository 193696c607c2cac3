"""Servers of labelling platforms, one module each; nothing here is imported unless a live command is used."""
