"""The one EM loop, and ways to run a step over shards and add the sums."""
