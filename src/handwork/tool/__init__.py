"""What an agent can do: the tool's contract, the collection, and one file a tool.

`handwork.tool` is this package and also, as a public name, the decorator `@tool`. Python binds a subpackage to its parent
as soon as anything below it is imported, so the package itself can be called: whichever `from handwork import tool` finds,
it works.
"""

import sys
from types import ModuleType
from typing import Any


class _Decorator(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from handwork.tool.function import tool

        return tool(*args, **kwargs)


sys.modules[__name__].__class__ = _Decorator
