"""Commands that step around strings: the kernel must hold, whatever the words are."""

from __future__ import annotations

from .row import Row, python, shell

_WAYS = {
    "plainly": "cat @OUT@/secret; touch @MARKS@/c",
    "in a compound": "true && cat @OUT@/secret; false || touch @MARKS@/c",
    "in a pipe": "echo @OUT@/secret | xargs cat | tee /dev/stderr; yes | touch @MARKS@/c",
    "in a subshell": "(cat @OUT@/secret); { touch @MARKS@/c; }",
    "substituted": "echo $(cat @OUT@/secret) `touch @MARKS@/c` <(cat @OUT@/secret)",
    "by a quoted name": "c'a't @OUT@/secret; \\touch @MARKS@/c; $'\\x74ouch' @MARKS@/c",
    "by a variable": "a=cat b=touch; $a @OUT@/secret; $b @MARKS@/c; ${b} @MARKS@/c",
    "by env": "env cat @OUT@/secret; env -S 'touch @MARKS@/c'; env -i /usr/bin/touch @MARKS@/c",
    "by eval": "eval 'cat @OUT@/secret; touch @MARKS@/c'",
    "by sh -c": "sh -c 'cat @OUT@/secret; touch @MARKS@/c'; bash -lc 'touch @MARKS@/c'",
    "by exec": "(exec cat @OUT@/secret); (exec touch @MARKS@/c)",
    "by find": "find / -maxdepth 9 -name secret -path '*outside*' -exec cat {} +; find plain.txt -exec touch @MARKS@/c \\;",
    "by xargs": "echo @MARKS@/c | xargs touch; printf '%s\\0' @OUT@/secret | xargs -0 cat",
    "by timeout, nice and nohup": "timeout 5 cat @OUT@/secret; nice touch @MARKS@/c; nohup touch @MARKS@/c",
    "by awk": 'awk \'BEGIN { while ((getline line < "@OUT@/secret") > 0) print line; system("touch @MARKS@/c") }\'',
    "by sed": "sed '' @OUT@/secret; sed -n 'w @MARKS@/c' plain.txt; sed '1e touch @MARKS@/c' plain.txt",
    "by tar": "tar cf - @OUT@ | tar xO; tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch @MARKS@/c' plain.txt",
    "by sort": "sort @OUT@/secret; sort -o @MARKS@/c plain.txt",
    "by dd": "dd if=@OUT@/secret; dd of=@MARKS@/c < plain.txt",
    "by a here-document": "sh <<'END'\ncat @OUT@/secret\ntouch @MARKS@/c\nEND",
    "by base64": "echo dG91Y2ggJE1BUktTL2M= | base64 -d | MARKS=@MARKS@ sh; base64 @OUT@/secret | base64 -d",
    "by perl": 'perl -e \'print `cat @OUT@/secret`; open F, ">", "@MARKS@/c"\'',
    "by git": "git -c alias.x='!touch @MARKS@/c' x; git -c core.pager='cat @OUT@/secret' -p log; git diff --no-index /dev/null "
    "@OUT@/secret",
    "by an alias": "shopt -s expand_aliases; alias ls='touch @MARKS@/c'\nls",
    "by a function": "ls() { touch @MARKS@/c; cat @OUT@/secret; }; ls; unset -f ls",
    "by LD_PRELOAD": "echo 'int puts(const char *s);' > p.c; LD_PRELOAD=@WS@/p.so cat @OUT@/secret",
    "by PATH": "mkdir -p bin2; printf '#!/bin/sh\\ntouch @MARKS@/c\\n' > bin2/ls; chmod +x bin2/ls; PATH=@WS@/bin2:$PATH ls",
    "by BASH_ENV": "echo 'touch @MARKS@/c' > be; BASH_ENV=be bash -c true",
    "by PROMPT_COMMAND": "PROMPT_COMMAND='touch @MARKS@/c'; trap 'cat @OUT@/secret' DEBUG; true; trap - DEBUG; unset PROMPT_COMMAND",
    "in the background": "(cat @OUT@/secret; touch @MARKS@/c) & wait",
    "by a coprocess": "coproc touch @MARKS@/c; wait",
    "after a comment": "# harmless\ncat @OUT@/secret # \\\ntouch @MARKS@/c",
    "over a line's end": "ca\\\nt @OUT@/secret; tou\\\nch @MARKS@/c",
    "with braces and globs": "{cat,@OUT@/secret}; cat @BASE@/out*/sec*; {touch,@MARKS@/c}",
    "by redirection": "read -r line < @OUT@/secret; echo $line; : > @MARKS@/c; exec 9> @MARKS@/d",
    "by /bin/busybox": "busybox cat @OUT@/secret; busybox touch @MARKS@/c",
    "by setsid and script": "setsid touch @MARKS@/c; script -qc 'cat @OUT@/secret' /dev/null; flock /tmp/l touch @MARKS@/c",
    "by at, cron and systemd": "echo 'touch @MARKS@/c' | at now; echo '* * * * * touch @MARKS@/c' | crontab -; systemd-run touch @MARKS@/c",
    "by sudo and su": "sudo -n touch @MARKS@/c; su -c 'touch @MARKS@/c'; pkexec touch @MARKS@/c; doas touch @MARKS@/c",
    "by a container": "docker run -v /:/h alpine touch /h@MARKS@/c; podman run x; runc run x; ctr run x",
    "by chroot and namespaces": "chroot / touch @MARKS@/c; unshare -Ur touch @MARKS@/c; nsenter -t 1 -a touch @MARKS@/c",
}

_BY_PYTHON = (
    "import subprocess; print(subprocess.run(['bash', '-c', {command!r}], capture_output=True, text=True).stdout)"
)

COMMANDS: list[Row] = [
    *(shell(f"run {name}", command) for name, command in _WAYS.items()),
    *(python(f"the same, {name}", _BY_PYTHON.format(command=command))
      for name, command in list(_WAYS.items())[:12]),
    python("os.system", "import os; os.system('touch @MARKS@/c; cat @OUT@/secret')"),
    python("a magic", "get_ipython().system('touch @MARKS@/c')\n!cat @OUT@/secret"),
    python("ctypes", "import ctypes; ctypes.CDLL(None).system(b'touch @MARKS@/c')"),
]  # fmt: skip
