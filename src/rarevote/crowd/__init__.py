"""The crowd as numbers, and the names behind them. Lower layers use only the numbers."""
