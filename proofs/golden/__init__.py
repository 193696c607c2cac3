"""The golden run: everything that the package prints, writes and computes, by hash, before and after a change.

    python -m proofs.golden record FILE
    python -m proofs.golden compare FILE [--allow PATTERN] [--only commands|snippets|bits]

``record`` runs every case (commands in an empty folder each, Python snippets, fits by every method) and writes a hash
of every part of what came of it (exit code, stdout, stderr, files) to FILE; the parts themselves go to the folder
``FILE.parts`` by their hash. ``compare`` runs the cases again and shows what differs, line by line; its exit code is 1
where anything differs that no ``--allow`` names.

Cases use public names and the command line only, so that they outlive a change of modules; only
:mod:`proofs.golden.forced` reaches inside. Data are the shipped example, simulated crowds and fixtures of the tests.
"""
