package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// Windows has neither process groups to signal nor stopped processes. Ctrl-C reaches every
// process of a console by itself, and TERM can only be a kill.

// lossSignals are the signals that a command can get at a loss of the lock, by name. INT
// could not be sent, so the command would run on until KILL.
var lossSignals = map[string]os.Signal{"TERM": syscall.SIGTERM}

const lossNames = "TERM"

// A child is a command. Processes started by the command are not reached.
type child struct {
	process *os.Process
	news    chan os.Signal // look has news
	ended   chan *os.ProcessState
	by      os.Signal // nil: a process is never ended by a signal
	lent    bool
}

func start(path string, argv, env []string, _ chan<- os.Signal) (*child, error) {
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, err
	}
	c := &child{process: p, news: make(chan os.Signal, 1), ended: make(chan *os.ProcessState, 1)}
	go func() {
		state, _ := p.Wait()
		c.ended <- state
		c.news <- os.Kill
	}()
	return c, nil
}

// look returns the exit code of the command if the command has ended.
func (c *child) look() (status int, ended bool) {
	select {
	case state := <-c.ended:
		if state == nil {
			return cli.ExitFailed, true
		}
		return state.ExitCode(), true
	default:
		return 0, false
	}
}

func (c *child) signal(sig os.Signal) error {
	if sig == os.Interrupt {
		return nil
	}
	if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (c *child) wake()      {}
func (c *child) resume()    {}
func (c *child) close()     {}
func (c *child) gone() bool { return true }

// become runs another program in place of this program, and exits with the exit code of
// that program.
func become(path string, argv []string) error {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // ends the program, and then this process
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return notStarted(path, err)
	}
	state, err := p.Wait()
	switch {
	case err != nil:
		return cli.Failure(cli.ExitFailed, err)
	case state.Success():
		return nil
	}
	return cli.Failure(state.ExitCode(), nil)
}
