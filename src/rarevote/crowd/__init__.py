"""The crowd as numbers and the names behind them. Nothing below knows a name."""
