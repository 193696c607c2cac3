"""What a fit means: probabilities, decisions, reviews, scores, explanations, people, items and classes."""
