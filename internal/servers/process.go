package servers

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A program says how to run a server.
type program struct {
	name string // for messages
	path string

	// owner is the account that runs the server, and owns its folder.
	owner *account

	// quit asks the server to end; 0 means SIGTERM.
	quit syscall.Signal

	// setup picks ports, writes the files of the server into its folder, and returns the
	// arguments. If a port was taken meanwhile, setup is called again.
	setup func(tb TB, dir string) (args []string, err error)

	// ready returns nil once the server answers and has the process id pid. If another
	// process has taken the port, that process answers.
	ready func(pid int) error

	// volatile says that a crash of the machine may take the data.
	volatile bool

	// forget removes what a killed server leaves outside of its folder; nil for most
	// servers.
	forget func()

	// whole waits until no write is under way, and keeps writes away until the kill is over. It
	// is for a server whose data a kill could tear; nil for most servers.
	whole func() (over func())
}

// A Process is a server that runs for a test.
type Process struct {
	tb      TB
	program program
	dir     string
	args    []string

	mu     sync.Mutex
	cmd    *exec.Cmd     // nil before the first start
	ended  chan struct{} // closed when cmd has ended
	told   bool          // cmd was told to end
	settle func()        // ends the last Pause; nil after the end
}

// start starts a server that ends with the test, and returns when it answers.
func start(tb TB, prog program) *Process {
	tb.Helper()
	p := &Process{tb: tb, program: prog, dir: folder(tb, prog.volatile)}
	tb.Cleanup(p.end)
	if err := prog.owner.own(p.dir); err != nil {
		tb.Fatalf("start %s: %v", prog.name, err)
	}
	var err error
	for range 5 {
		if p.args, err = prog.setup(tb, p.dir); err != nil {
			break
		}
		if err = p.run(); err == nil || !strings.Contains(strings.ToLower(p.log()), "address already in use") {
			break
		}
	}
	if err != nil {
		tb.Fatalf("start %s: %v", prog.name, err)
	}
	return p
}

// folder makes a folder that is removed with the test. Volatile data are in memory: the data
// of PostgreSQL are a thousand files, and some file systems take 0.4 s of processor time to
// create as many as were just removed.
func folder(tb TB, volatile bool) string {
	tb.Helper()
	if in := memory(); volatile && in != "" {
		if dir, err := os.MkdirTemp(in, "servers"); err == nil {
			tb.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	return tb.TempDir()
}

// run starts the server and waits until it answers.
func (p *Process) run() error {
	if err := p.spawn(); err != nil {
		return err
	}
	pid := p.cmd.Process.Pid
	err := await(func() error { return p.program.ready(pid) }, p.ended)
	if err != nil {
		if err := p.kill(); err != nil {
			return err
		}
		return fmt.Errorf("%w (%v)", err, p.cmd.ProcessState)
	}
	return nil
}

func (p *Process) spawn() error {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.program.path, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	if tb, ok := p.tb.(interface{ Environ() []string }); ok {
		cmd.Env = append(os.Environ(), tb.Environ()...)
	}
	bindToParent(cmd)
	p.program.owner.run(cmd)

	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		// The server dies with the thread that started it, so the thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() // a test may end the server in any way
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.cmd, p.ended, p.told = cmd, ended, false
	return nil
}

// Kill kills the server, and the processes that the server has started, as kill -9 does.
// Kill returns when the processes are gone. If the server does not run, Kill does nothing.
func (p *Process) Kill() {
	p.tb.Helper()
	p.act("kill", p.kill)
}

// act does something to the server, and nothing else meanwhile. An error ends the test.
func (p *Process) act(what string, do func() error) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := do(); err != nil {
		p.tb.Fatalf("%s %s: %v", what, p.program.name, err)
	}
}

func (p *Process) kill() error {
	if p.cmd == nil {
		return nil
	}
	if p.program.whole != nil {
		if p.settle != nil { // A paused server ends no write.
			if err := resume(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
		}
		defer p.program.whole()()
	}
	err := kill(p.cmd.Process)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	if err != nil && !p.told {
		p.tb.Logf("%s has ended before its test (%v). It said last:\n%s", p.program.name, p.cmd.ProcessState, tail(p.log()))
	}
	p.told = true
	p.calm()
	return nil
}

// Stop asks the server to end, as an operator would, and returns when the server is gone.
func (p *Process) Stop() {
	p.tb.Helper()
	p.act("stop", func() error {
		p.told = true
		quit := cmp.Or(p.program.quit, syscall.SIGTERM)
		if err := p.cmd.Process.Signal(quit); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-p.ended:
			return nil
		case <-time.After(patience):
			return errors.New("it does not end when asked to")
		}
	})
}

// Restart kills the server if the server runs, and starts the server again at the same
// address and in the same folder. Restart returns when the server answers.
func (p *Process) Restart() {
	p.tb.Helper()
	p.restart(func() error { return nil })
}

// restart calls between while the server is down.
func (p *Process) restart(between func() error) {
	p.tb.Helper()
	p.act("restart", func() error {
		if err := p.kill(); err != nil {
			return err
		}
		if err := between(); err != nil {
			return err
		}
		return p.run()
	})
}

// Pause stops the server as SIGSTOP does: connections stay, the system still accepts new
// connections, and nobody answers. Pause returns when no thread of the server runs, nor of
// the processes that the server has started.
func (p *Process) Pause() {
	p.tb.Helper()
	p.act("pause", func() (err error) {
		p.calm()
		p.settle, err = suspend(p.cmd.Process)
		return err
	})
}

// calm settles the last Pause, if there is one.
func (p *Process) calm() {
	if p.settle != nil {
		p.settle()
		p.settle = nil
	}
}

// Resume ends a Pause. If the server was not paused, or has ended, Resume does nothing.
func (p *Process) Resume() {
	p.tb.Helper()
	p.act("resume", func() error {
		if err := resume(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		p.calm()
		return nil
	})
}

// Stall pauses the server, returns, and resumes the server after d.
func (p *Process) Stall(d time.Duration) {
	p.tb.Helper()
	p.Pause()
	time.AfterFunc(d, p.Resume)
}

// end ends the server with its test.
func (p *Process) end() {
	p.Kill()
	if p.program.forget != nil {
		p.program.forget()
	}
	if p.tb.Failed() {
		p.tb.Logf("%s in %s said last:\n%s", p.program.name, p.dir, tail(p.log()))
	}
}

func (p *Process) logFile() string { return filepath.Join(p.dir, "log") }

func (p *Process) log() string {
	text, _ := os.ReadFile(p.logFile()) // a server that never ran has no log
	return string(text)
}

// tail returns the last lines of a log, without the traces of Java and the ends of long
// lines, which would hide the output of the test. With HOLDFAST_TEST_LOGS, tail returns
// the whole log.
func tail(log string) string {
	const most, longest = 5, 200
	if os.Getenv("HOLDFAST_TEST_LOGS") != "" {
		return log
	}
	var lines []string
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "\tat ") {
			line = strings.TrimSuffix(line, "\n")
			lines = append(lines, strings.ToValidUTF8(line[:min(len(line), longest)], ""))
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
