"""What a method can do beyond one label per task: a record of booleans, with descriptions for tables and messages.

Each method declares its record once, in its entry in :mod:`rarevote.methods.registry`, so that help texts need not load
the method; its class has it as :attr:`Estimator.capabilities <rarevote.methods.base.Estimator.capabilities>`.
Loaded by ``import rarevote``, so it imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _capability(verb: str, where: str) -> bool:
    """A field that is False by default: what a method "can" or "cannot" do, and the arguments that need it."""
    made: bool = field(default=False, metadata={"verb": verb, "where": where})
    return made


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a method can do; the text of each field is in its metadata.

    Example:
        >>> one = Capabilities(gold=True)
        >>> one.gold, one.dask, Capabilities.verb("gold")
        (True, False, 'learn from gold')
    """

    predict: bool = _capability(
        "label new tasks", "`predict`, `predict_proba`, `save`; `--model-out`, then `rarevote predict`"
    )
    explain: bool = _capability("say what each vote adds to its label", "`rarevote explain`")
    gold: bool = _capability("learn from gold", "`true_labels`, `gold=`, `--gold`; needs: there is no fit without gold")
    dask: bool = _capability("run on dask", "`--engine dask`")
    checkpoint: bool = _capability("resume a fit after a crash", "`checkpoint=`, `--checkpoint`")
    replicate: bool = _capability("say how likely a vote is", "does the model fit its votes: `rarevote check`")
    float32: bool = _capability("compute in single precision", '`dtype="float32"`, `--set dtype=float32`')
    features: bool = _capability(
        "use features of the items", "`features=`, `pred_probs=`; `--features`, `--pred-probs`"
    )
    ordered: bool = _capability("use the order of grades", "`ordered=`, `--ordered`: classes that are grades")
    #: in addition to the capability ``gold``: the method cannot be fitted without gold
    needs_gold: bool = False

    def __post_init__(self) -> None:
        if self.needs_gold and not self.gold:
            raise ValueError("a method that needs gold can learn from it")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """All capabilities, in the order of the tables."""
        return tuple(one.name for one in fields(cls) if "verb" in one.metadata)

    @classmethod
    def verb(cls, name: str) -> str:
        """What a method "can" or "cannot" do, as messages say it."""
        return str(cls.__dataclass_fields__[name].metadata["verb"])

    @classmethod
    def where(cls, name: str) -> str:
        """Arguments, options and verbs that need the capability, in Markdown."""
        return str(cls.__dataclass_fields__[name].metadata["where"])

    def has(self, name: str) -> bool:
        """Whether the capability with this name is declared."""
        return bool(getattr(self, name))
