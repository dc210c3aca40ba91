"""Every error that Handwork raises on purpose.

HandworkError
├── ConfigError                 a setting, file or argument is wrong: fix it and start again
│   └── NoModelError            no model is configured, no key is set and none was found
├── ModelError                  the model's provider (or the way to it) failed
│   ├── AuthenticationError     401: the key is missing or wrong
│   ├── PermissionDeniedError   403: the key may not do this
│   ├── ModelNotFoundError      404: no such model or address
│   ├── BadRequestError         400, 422: the provider refuses the request itself
│   │   ├── TokenLimitExceeded  the request is larger than the model's context window
│   │   └── ImageRefusedError   because of a picture in it
│   │       └── NoVisionError   because the model takes none at all
│   ├── ContentFilterError      a refusal or a content filter in place of an answer
│   ├── QuotaError              no money or quota left: waiting does not help
│   ├── UntrustedServerError    the server's certificate is not trusted, so nothing was sent
│   ├── ScriptExhausted         the scripted model was asked more often than it has answers
│   └── TransientModelError     asking again may help; the retry wrapper does
│       ├── RateLimitError      429
│       ├── OverloadedError     503, 529
│       ├── ServerError         any other 5xx
│       ├── ModelConnectionError  no connection, or it was reset
│       ├── ModelTimeoutError   nothing came within the time limit (or 408)
│       └── BrokenStreamError   the stream ended without a terminal event, or held no sense
├── ToolError                   a tool's own failure: becomes an observation that the model reads
│   ├── ArgumentsError          a call's arguments are no JSON or break the tool's schema; it never ran
│   └── PictureError            what was given as a picture is none, is broken, or is too large
├── Waiting                     a question or an approval has no human at the door (headless)
├── BudgetExceeded              the budget (USD or tokens) of the session tree is spent
├── RunFailed                   RunResult.raise_for_status(): the run ended without finishing
├── SandboxError                the place where tools run failed
│   ├── SandboxLacks            it has not what was wanted of it (a terminal)
│   └── SandboxUnavailable      it cannot be started on this machine
│       └── SandboxMissing      because its program is not installed
├── MCPServerError              an MCP server (or the way to it) failed
│   ├── MCPUnavailable          there is no connection: it cannot be started or reached, was lost, or is gone
│   │   ├── MCPLost             … while it had a request: whether it did it, nobody knows
│   │   └── MCPLoginNeeded      it wants to know who we are: handwork mcp login NAME
│   └── MCPRefused              the server answered a request with an error
├── GitFailed                   git, as we run it ourselves, could not do something
└── JournalError                the journal cannot be read or written
    ├── SessionBusy             another process or agent writes to the session now
    ├── SessionNotFound         no session of that id
    ├── StoreUnusable           the store cannot be used as, or where, it is: rights, version, file system
    └── JournalCorrupt          the store's file is damaged
"""

from __future__ import annotations

from typing import Literal


class HandworkError(Exception):
    """Base of all: `what` says what was tried and what happened, `hint` what the user can do about it ('': `what` says it all).

    `str()` is both in one line; the command line gives each a line of its own.
    """

    def __init__(self, what: str = "", *, hint: str = "") -> None:
        self.what, self.hint = what, hint
        super().__init__(f"{what} – {hint}" if hint else what)


class ConfigError(HandworkError):
    """A setting, a configuration file or an argument is wrong."""


class NoModelError(ConfigError):
    """No model is configured and none was found."""


class ModelError(HandworkError):
    """A request to a model failed.

    Args:
        message: what happened, without any key.
        provider: the provider's name (`openai`), '' if unknown.
        model: the model's name at the provider, '' if unknown.
        hint: what the user can do about it.
        status: the HTTP status, if there was an answer.
        retry_after: seconds that the provider asks us to wait, if it said so.
    """

    message_default = "the request failed"
    hint_default = ""

    def __init__(
        self,
        message: str = "",
        *,
        provider: str = "",
        model: str = "",
        hint: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.provider, self.model, self.status, self.retry_after = provider, model, status, retry_after
        where = ":".join(part for part in (provider, model) if part)
        message = message or self.message_default
        super().__init__(f"{where}: {message}" if where else message, hint=hint or self.hint_default)


class AuthenticationError(ModelError):
    hint_default = "check the API key ([llm] api_key, or the provider's environment variable)"


class PermissionDeniedError(ModelError):
    hint_default = "this key may not use that model or feature: ask the provider, or choose another model"


class ModelNotFoundError(ModelError):
    hint_default = "check the model's name and the base URL"


class BadRequestError(ModelError):
    pass


class TokenLimitExceeded(BadRequestError):
    """The request does not fit into the model's context window.

    A user's own model may raise it bare (`TokenLimitExceeded()`) or as the `__cause__` of another exception (CONTRACT B18).
    """

    message_default = "the context window is exceeded"


class ImageRefusedError(BadRequestError):
    """A picture of the request is not taken."""


class NoVisionError(ImageRefusedError):
    """The model takes no pictures."""


class ContentFilterError(ModelError):
    hint_default = "the provider declined to answer; rephrase the task or choose another model"


class QuotaError(ModelError):
    hint_default = "the account has no credit or quota left: top it up, or choose another provider"


class UntrustedServerError(ModelError):
    hint_default = "check the base URL, or name the file with your CA's certificate in SSL_CERT_FILE"


class ScriptExhausted(ModelError):
    pass


class TransientModelError(ModelError):
    """Asking again may help."""


class RateLimitError(TransientModelError):
    hint_default = "too many requests: wait, or ask the provider for a higher limit"


class OverloadedError(TransientModelError):
    hint_default = "the provider is overloaded: try again later, or choose another model"


class ServerError(TransientModelError):
    hint_default = "the provider failed: try again later"


class ModelConnectionError(TransientModelError):
    hint_default = "check the base URL, the network and the proxy"


class ModelTimeoutError(TransientModelError):
    hint_default = "the provider did not answer in time: try again later, or choose another model"


class BrokenStreamError(TransientModelError):
    hint_default = "the answer broke off: try again"


class ToolError(HandworkError):
    """Raised inside a tool: becomes a result with this error, which the model reads."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class ArgumentsError(ToolError):
    """A call's arguments cannot be used, so the tool did not run.

    `kind` is json (the text is no acceptable JSON object) or schema (it is one that the tool does not take).
    """

    def __init__(self, kind: Literal["json", "schema"], message: str) -> None:
        self.kind = kind
        super().__init__(message)


class PictureError(ToolError):
    """What was given as a picture cannot be used as one; no request ever holds it."""


class Waiting(HandworkError):
    """A question or an approval needs a human and nobody is there; the run ends as `waiting`."""


class BudgetExceeded(HandworkError):
    """The budget of the session tree is spent; `option` is how the command line raises it, as it is typed ('': not said)."""

    def __init__(self, message: str, *, option: str = "") -> None:
        self.option = option
        super().__init__(message)


class RunFailed(HandworkError):
    """A run ended with a status other than finished and no typed error of its own."""


class SandboxError(HandworkError):
    """The sandbox failed while it ran."""


class SandboxLacks(SandboxError):
    """This kind of sandbox has not what was wanted of it; nothing has failed."""


class SandboxUnavailable(SandboxError):
    """The sandbox cannot be started here; the message names the choices."""


class SandboxMissing(SandboxUnavailable):
    """The sandbox's program is not installed; the message names the line that installs it."""


class MCPServerError(HandworkError):
    """An MCP server failed; the message names it."""


class MCPUnavailable(MCPServerError):
    """There is no connection to the server. `lasting`: trying again does not help (its program is not there, its address is none).
    `retry_after`: seconds that it asks us to wait, 0 where it said nothing of that."""

    def __init__(self, what: str = "", *, hint: str = "", lasting: bool = False, retry_after: float = 0.0) -> None:
        self.lasting, self.retry_after = lasting, retry_after
        super().__init__(what, hint=hint)


class MCPLost(MCPUnavailable):
    """The connection went while the server had a request: whether it did what it was asked for is not known."""


class MCPLoginNeeded(MCPUnavailable):
    """The server wants its user to log in; the hint names the command."""


class MCPRefused(MCPServerError):
    """The server answered a request with an error; `code` is JSON-RPC's."""

    def __init__(self, what: str = "", *, hint: str = "", code: int = 0) -> None:
        self.code = code
        super().__init__(what, hint=hint)


class GitFailed(HandworkError):
    """Git, as we run it ourselves, could not do something; says what it said."""


class JournalError(HandworkError):
    """The journal cannot be read or written; the run stops before its next effect."""


class SessionBusy(JournalError):
    """Somebody else holds the session; the message says who and since when."""


class SessionNotFound(JournalError):
    """There is no session of that id; the message names the nearest."""


class StoreUnusable(JournalError):
    """The store cannot be used as, or where, it is, and asking again does not help; the message says what does."""


class JournalCorrupt(JournalError):
    """The store's file is damaged; the message says what can be done."""
