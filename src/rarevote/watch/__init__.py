"""The watch: aggregation while annotators are still labelling, round by round, for files and for servers.

>>> from rarevote.watch import Files, LabelsWatch
>>> watch = LabelsWatch(Files(["labels.csv"]), Path("watched"))  # doctest: +SKIP
>>> watch.poll()  # a round, or None if nothing is new  # doctest: +SKIP
"""

from rarevote.io.live.label_studio import Project, Pushed
from rarevote.io.live.pulled import Pulled, pull
from rarevote.watch import audits, labels, projects, sources, state
from rarevote.watch.audits import AuditRound, AuditWatch
from rarevote.watch.changes import Changes, StandsOut
from rarevote.watch.labels import LabelsWatch, WatchRound
from rarevote.watch.projects import ReviewProject
from rarevote.watch.sources import Files, LabelStudioProject

#: The files that are written in the folder of a watch.
NAMES = (
    *(labels.RESULT, labels.CHANGES, state.FILE, projects.ANSWERS, sources.EXPORT),
    *(audits.CERTIFICATE, audits.PAGE),
)

__all__ = [
    "AuditRound",
    "AuditWatch",
    "Changes",
    "Files",
    "LabelStudioProject",
    "LabelsWatch",
    "Project",
    "Pulled",
    "Pushed",
    "ReviewProject",
    "StandsOut",
    "WatchRound",
    "pull",
]
