"""Proofs: programs that attack the package, or compare it with an earlier version of itself."""
