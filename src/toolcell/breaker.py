"""The breaker: a model that is refused the same call again and again is told so, then stopped.

After a denial many models repeat the call unchanged. Past a number the answer says that
repeating will not help; past another one the run takes no more calls.
"""

from collections import OrderedDict

from toolcell.model import Category, ToolCall, ToolResult, digest_of

_REMEMBERED = 1000
_COUNTED = frozenset(
    {
        Category.UNKNOWN_TOOL,
        Category.INVALID_ARGUMENTS,
        Category.POLICY_DENIED,
        Category.APPROVAL_DENIED,
    }
)


class RefusalCount:
    """Counts refusals of the same tool with the same arguments, of the calls refused last."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()

    def add(self, call: ToolCall, result: ToolResult) -> int:
        """Return how often this call was refused, this result included; 0 for other results."""
        if result.error is None or result.error.category not in _COUNTED:
            return 0
        key = _key(call)
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)
        return self._counts[key]


def _key(call: ToolCall) -> str:
    try:
        return digest_of([call.name, call.arguments])
    except (ValueError, RecursionError):  # arguments that are no JSON: one like the other
        return f"no JSON: {call.name!r}"


def told_again(result: ToolResult, count: int) -> ToolResult:
    """Return a refusal that says how often it has been given."""
    if result.error is None:
        return result
    hint = (
        f"this very call has now been refused {count} times and will be again; do something "
        "else, or tell the user what you would need"
    )
    error = result.error.model_copy(update={"hint": hint, "retryable": False})
    return result.model_copy(update={"error": error})
