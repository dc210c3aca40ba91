"""What the conformance suite asks for and we do not do, each with its reason. docs/mcp-conformance.md says the same to users."""

from __future__ import annotations

from collections.abc import Mapping

_OLD_LOGIN = "a login of the revision 2025-03-26, which later ones took out"
_NO_PERSON = "an extension for a company's own logins, which stand in for the person"
_NO_PROMPTS = "we serve no prompts, and say so"
_LINKED = "we serve no resources but the files that an answer links to"
_OWN_WORDS = "our questions are one free text each: no form with defaults or choices"

CLIENT: Mapping[str, str] = {
    "auth/basic-cimd": "a client on somebody's machine has no page on the public web that would describe it; it registers itself",
    "auth/2025-03-26-oauth-metadata-backcompat": f"{_OLD_LOGIN}: its metadata names another issuer than was asked",
    "auth/2025-03-26-oauth-endpoint-fallback": f"{_OLD_LOGIN}: addresses of a login are never guessed",
    "auth/client-credentials-jwt": "a program logs in with its secret: keys that sign for it are not supported",
    "auth/cross-app-access-complete-flow": _NO_PERSON,
}
SERVER: Mapping[str, str] = {
    "logging-set-level": "our server sends no log messages, and says so; logging is deprecated since 2026-07-28",
    "tools-call-with-logging": "our server sends no log messages, and says so; logging is deprecated since 2026-07-28",
    "completion-complete": "our server completes no arguments, and says so",
    "tools-call-audio": "no tool of ours makes sounds",
    "tools-call-embedded-resource": "files come as links, which a client reads when it wants them",
    "tools-call-mixed-content": "files come as links, which a client reads when it wants them",
    "tools-call-sampling": "a task's model is the user's own; sampling is deprecated since 2026-07-28",
    "elicitation-sep1034-defaults": _OWN_WORDS,
    "elicitation-sep1330-enums": _OWN_WORDS,
    "server-sse-polling": "a stream that breaks is not resumed: a call's outcome is in the session's journal",
    "resources-read-text": _LINKED,
    "resources-read-binary": _LINKED,
    "resources-templates-read": _LINKED,
    "resources-subscribe": _LINKED,
    "resources-unsubscribe": _LINKED,
    "prompts-list": _NO_PROMPTS,
    "prompts-get-simple": _NO_PROMPTS,
    "prompts-get-with-args": _NO_PROMPTS,
    "prompts-get-embedded-resource": _NO_PROMPTS,
    "prompts-get-with-image": _NO_PROMPTS,
}
