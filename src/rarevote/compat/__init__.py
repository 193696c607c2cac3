"""Names of other libraries and of version 0.2: crowd-kit's metrics, and deprecated names that warn."""
