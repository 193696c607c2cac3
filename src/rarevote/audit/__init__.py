"""The audit: prove a recall with few reviews by an expert, whatever the quality of the crowd or the model."""

from rarevote.audit.audit import Audit
from rarevote.audit.plan_file import Aim
from rarevote.audit.verify import Verdict, verify, verify_files
from rarevote.decide.floor import Share

__all__ = ["Aim", "Audit", "Share", "Verdict", "verify", "verify_files"]
