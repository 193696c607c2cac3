"""The audit: prove a recall with few reviews by an expert, whatever the crowd or the model says."""

from rarevote.decide.floor import Share
from rarevote.meaning.audit.audit import Audit
from rarevote.meaning.audit.plan_file import Aim
from rarevote.meaning.audit.verify import Verdict, verify, verify_files

__all__ = ["Aim", "Audit", "Share", "Verdict", "verify", "verify_files"]
