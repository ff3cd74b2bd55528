"""The built-in tools, as they run inside a cell. Their specs live on the trusted side."""


class ToolError(Exception):
    """A tool's own way to say no: the message and the hint are written for the model."""

    is_tool_error = True

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
