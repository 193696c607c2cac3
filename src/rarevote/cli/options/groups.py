"""Options that several verbs share as one thing: a frozen record whose fields say how each looks on the command line.

A verb that wants such records is decorated with :func:`takes` and gets one of each as its first arguments; its command
line gets their options. So an option is declared once, whoever uses it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args

from typer.models import ArgumentInfo

Verb = Callable[..., None]


def takes(*groups: type) -> Callable[[Verb], Verb]:
    """Decorates a verb whose first parameters are these records.

    Arguments come first, then the options of groups without a ``PANEL``, then the verb's own, and last those of groups
    that have a panel of their own in the help.
    """

    def decorate(command: Verb) -> Verb:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[len(groups) :]
        shared = {group: list(inspect.signature(group, eval_str=True).parameters.values()) for group in groups}

        def run(**given: Any) -> None:
            records = [group(**{one.name: given.pop(one.name) for one in shared[group]}) for group in groups]
            command(*records, **given)

        arguments = [one for ones in shared.values() for one in ones if _is_argument(one)]
        plain: list[inspect.Parameter] = []
        in_panels: list[inspect.Parameter] = []
        for group, ones in shared.items():
            panel = getattr(group, "PANEL", None)
            for one in ones:
                if not _is_argument(one):
                    (in_panels if panel else plain).append(_in_panel(one, panel) if panel else one)
        # Files may be many, so a verb's own argument has to come before them.
        own_arguments = [one for one in own if _is_argument(one)]
        own_options = [one for one in own if not _is_argument(one)]
        parameters = [*own_arguments, *arguments, *plain, *own_options, *in_panels]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        keyword = inspect.Parameter.KEYWORD_ONLY
        run.__signature__ = inspect.Signature([one.replace(kind=keyword) for one in parameters])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(part, ArgumentInfo) for part in get_args(parameter.annotation))


def _in_panel(parameter: inspect.Parameter, panel: str) -> inspect.Parameter:
    kind, option = get_args(parameter.annotation)
    option = copy.copy(option)
    option.rich_help_panel = panel
    return parameter.replace(annotation=Annotated[kind, option])
