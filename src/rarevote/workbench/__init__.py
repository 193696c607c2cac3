"""The workbench: an expert's answers in the browser, one item at a time, on this machine only."""
