"""How a command ends; docs/exit-codes.md says it to users."""

DONE = 0
# A gate the user asked for, such as --max-drop.
GATE_FAILED = 1
# A wrong option, config, file or model: something the user can mend.
WRONG = 2
# EX_SOFTWARE of sysexits.h: not 1, by which a script knows that a gate failed.
BUG = 70
# As a shell has it of a process that SIGINT ended.
INTERRUPTED = 130
# As a shell has it of SIGPIPE: whoever read stdout has left.
NOBODY_READS = 141
