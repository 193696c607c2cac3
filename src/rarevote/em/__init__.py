"""The EM loop, and engines that run a step over shards and add the sums."""
