"""What runs in a process of its own, under whatever Python has the library that is measured."""
