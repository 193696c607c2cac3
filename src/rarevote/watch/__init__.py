"""The watch: aggregation beside people who still label, round by round, for files and for servers."""
