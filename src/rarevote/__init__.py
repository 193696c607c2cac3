"""One answer per item from many annotators, without losing the rare class.

>>> from rarevote import CCRasch
>>> model = CCRasch().fit(frame)      # columns task, worker, label       # doctest: +SKIP
>>> model.labels_                                                         # doctest: +SKIP

Names load when they are first used, so that ``import rarevote`` costs next to nothing; ``__init__.pyi`` lists them.
"""

import lazy_loader

from rarevote.compat.moved import forward

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

forward()
