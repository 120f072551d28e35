package main

import "syscall"

// outlive keeps a command from outliving a holdfast that is killed, since
// nobody would guard it then. It is the thread that starts the command whose
// end counts. What the command has started itself is not reached.
func outlive(sys *syscall.SysProcAttr) { sys.Pdeathsig = syscall.SIGKILL }

// adopt makes orphans of the command ours: nobody else would tell us when the
// last of its group has ended, and in a container without an init nobody would
// bury them.
func adopt() {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}
