"""Rows of the policy's table: commands whose standard input is fed, which a rule about their words does not know."""

from __future__ import annotations

from tests.policy.table import Row

_RUN = "allow run sh ;; allow run python3 ;; allow run git status ;; allow run cat * ;; allow run exec"
_DATA = (
    "allow run git log * ;; allow run cat * ;; allow run grep * ;; allow run sort * ;; allow run head * ;; "
    "allow run wc * ;; allow run uniq * ;; allow run cut * ;; allow run tr * ;; allow run sed * ;; allow run awk * ;; "
    "allow run jq * ;; allow run echo *"
)

FED = [
    *(
        Row(_RUN, "ask", command, "ask")
        for command in (
            "python3 <<'E'\nopen('x', 'w')\nE",
            "python3 <<-E\n\tprint()\n\tE",
            "sh <<< 'touch x'",
            "<<< 'touch x' sh",
            "sh < evil.sh",
            "0<evil.sh sh",
            "sh 0<> evil.sh",
            "sh 3< evil.sh 0<&3",
            "sh 0>&3",
            "sh <&10",
            "git status | sh",
            "git status |& sh",
            "git status |\n\n sh",
            "git status | # said\n sh",
            "git status | time sh",
            "git status | cat - | sh",
            "git status && git status | sh; git status",
            "git status | { git status; sh; }",
            "git status | (sh)",
            "git status | if git status; then sh; fi",
            "git status | while git status; do sh; done",
            "git status | for x in 1; do sh; done",
            "git status | for x in 1; { sh; }",
            "git status | case a in a) sh;; esac",
            "git status | case a in a) git status;; b) sh;& c) git status;; esac",
            "{ sh; } < evil.sh",
            "{ { sh; }; git status; } < evil.sh",
            "( (sh) ) <<< 'touch x'",
            "while git status; do sh; done < evil.sh",
            "until sh; do git status; done < evil.sh",
            "if git status; then git status; elif sh; then git status; else git status; fi <<< x",
            "for x in 1 2; do sh; done <<E\ntouch x\nE",
            "{ git status; } | { sh; } > /dev/null",
            "exec < evil.sh\nsh",
            "exec < evil.sh; git status",
            "cat - > >(sh)",
            "cat x | cat - > >(git status; python3)",
            "git status | cat - $(sh)",
            "git status | cat - `sh`",
            "git status | cat <<E\n$(sh)\nE",
            "f() { sh; }",
            "function f { sh; }",
            "f()\n{ sh; }",
            "sh /dev/stdin",
            "sh /dev/null < evil.sh",
            "./cat < evil.sh",
            "exec sh < evil.sh",
        )
    ),
    *(
        Row(_RUN, "ask", command, "allow")
        for command in (
            "sh",
            "sh </dev/null",
            "sh <&-",
            "sh 2>&1",
            "git status; sh",
            "sh | cat -",
            "{ sh; } | cat -",
            "sh; git status | cat -; sh",
            "sh; { cat -; } < x; sh",
            "sh\nwhile cat -; do cat -; done < x\nsh",
            "if sh; then sh; fi",
        )
    ),
    Row("allow run sh /dev/fd/3", "ask", "sh /dev/fd/3", "ask"),
    Row("allow run python3 /proc/self/fd/3", "ask", "python3 /proc/self/fd/3", "ask"),
    Row("allow run ./cat *", "ask", "./cat < x", "ask"),
    Row("allow run env cat", "ask", "env cat < x", "ask"),
    Row("allow run bash -s", "ask", "bash -s < x", "ask"),
    Row("allow run xargs -n1 touch", "ask", "cat x | xargs -n1 touch", "ask"),
    Row("allow run sort --compress-program sh ;; allow run cat *", "ask", "cat x | sort --compress-program sh", "ask"),
    Row("allow run sed -f -", "ask", "sed -f - < x", "ask"),
    Row("allow run uniq *", "ask", "uniq - out < x", "ask"),
    Row("allow run cat * ;; deny run sh *", "ask", "cat x | sh", "deny"),
    Row("allow run *", "ask", "cat x | sh", "allow"),
    Row("allow tool bash", "ask", "cat x | sh", "allow"),
    *(
        Row(_DATA, "ask", command, "allow")
        for command in (
            "git log | head -3",
            "git log | grep -c x | wc -l",
            "cat a | sort -u | uniq -c | sort -rn | head",
            "cut -d: -f1 < a | tr a b",
            "cat <<'E'\nhello\nE",
            "git log | sed -n 1,5p | awk '{print $1}'",
            "cat a | jq .name",
            "cat a | { grep x; echo done; }",
            "cat <<< x",
        )
    ),
]
