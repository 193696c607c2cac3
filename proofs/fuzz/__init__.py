"""Every door of the house, tried with files that somebody damaged or made up.

A door is a way in: a reader, a platform, a model, a checkpoint, a plan, a request. Its seeds are whole files of ours
(:mod:`proofs.fuzz.doors`); they are altered by their bytes and by what their format is made of
(:mod:`proofs.fuzz.mutate`), and handed in. Whatever comes out must be an answer or an error of ours, within ten
seconds of the processor and a gigabyte (:mod:`proofs.fuzz.run`); ``python -m proofs.fuzz`` runs a campaign.
"""
