"""Features of items beside their votes: from numbers or predicted probabilities to a class prior per item."""
