"""Servers of labelling platforms, one module each; nothing here loads unless a live verb is used."""
