package servers

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// children returns the processes whose parent is one of pids.
func children(pids ...int) (all []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		if _, parent, err := status(pid); err == nil && slices.Contains(pids, parent) {
			all = append(all, pid)
		}
	}
	return all, nil
}

// descendants returns all processes below a process.
func descendants(pid int) (all []int, err error) {
	generation, err := children(pid)
	for err == nil && len(generation) > 0 {
		all = append(all, generation...)
		generation, err = children(generation...)
	}
	return all, err
}

// status returns the parent and the state of a process, such as "T" for stopped and "Z"
// for ended. status fails if there is no such process.
func status(pid int) (state string, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	rest := string(text[strings.LastIndex(string(text), ")")+1:]) // a name may contain anything
	_, err = fmt.Sscan(rest, &state, &parent)
	return state, parent, err
}

// awaitState returns when a process has one of the states, or is gone. The state is the
// state of the first thread; the processes below a server have only one thread.
func awaitState(pid int, states string) error {
	return await(func() error {
		state, _, err := status(pid)
		if err == nil && !strings.Contains(states, state) {
			return fmt.Errorf("process %d has the state %s, not one of %s", pid, state, states)
		}
		return nil
	}, nil)
}

// guard kills stopped processes if the test binary dies before the call of dismiss. The
// kernel kills only the server itself. The processes below notice the end of the server,
// but not while they are stopped.
func guard(pids []int) (dismiss func(), err error) {
	if len(pids) == 0 {
		return func() {}, nil
	}
	cmd := exec.Command("/bin/sh", "-c", `read -r line || kill -KILL "$@"`, "guard")
	for _, pid := range pids {
		cmd.Args = append(cmd.Args, strconv.Itoa(pid))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the shell survives a Ctrl-C
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		io.WriteString(lifeline, "\n")
		cmd.Wait() // closes the lifeline
	}, nil
}
