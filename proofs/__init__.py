"""Proofs: programs that attack the package or hold it against an earlier version of itself."""
