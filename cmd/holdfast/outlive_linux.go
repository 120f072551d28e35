package main

import "syscall"

// outlive kills the command when holdfast is killed, since a command without holdfast is
// unguarded. The kill is triggered by the end of the thread that started the command.
// Processes started by the command are not reached.
func outlive(sys *syscall.SysProcAttr) { sys.Pdeathsig = syscall.SIGKILL }

// adopt makes this process the parent of the command's orphans. Otherwise this process
// could not notice the end of the last process of the group, and in a container without an
// init nobody would reap the orphans.
func adopt() {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}
