package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Windows has neither process groups to signal nor stopped processes. Ctrl-C
// reaches every process of a console by itself, and TERM can only be a kill.
var (
	ending  = []os.Signal{os.Interrupt, syscall.SIGTERM}
	passing []os.Signal
)

func listen(to chan<- os.Signal, signals []os.Signal) {
	if len(signals) > 0 {
		signal.Notify(to, signals...)
	}
}

// A child is a command. What the command starts itself is not reached.
type child struct {
	process *os.Process
	news    chan os.Signal // look has something to tell
	ended   chan *os.ProcessState
	onExit  func()
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

// look returns the exit code of the command if it has ended.
func (c *child) look() (status int, ended bool) {
	select {
	case state := <-c.ended:
		if state == nil {
			return exitFailed, true
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

func signalNumber(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}

func isTerminal(f *os.File) bool {
	var mode uint32
	return syscall.GetConsoleMode(syscall.Handle(f.Fd()), &mode) == nil
}
