package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// defaultEngine needs nothing but a file system.
const defaultEngine = "file"

// Bounds keep a run within the limits of a single machine.
const (
	minTTL     = 500 * time.Millisecond // with less, a busy machine loses locks without a fault
	maxTTL     = time.Minute
	minLength  = time.Second
	maxLength  = 24 * time.Hour
	usual      = 20 * time.Second // length, unless the faults need a longer one
	maxWorkers = 32
	maxClients = 64
	maxKeys    = 64
)

// A Config describes a run. Start from [Default].
type Config struct {
	Store   string         // URL of the store; "" for a store that the run starts
	Start   string         // servers to start, a name of Engines; "" means files
	Seed    uint64         // of the operations and the faults
	Kinds   []plan.Kind    // of locks, nil for every kind that this store can keep
	Nemeses []plan.Nemesis // nil for every nemesis that the store promises to stand
	Length  time.Duration  // how long faults are done, 1s to 24h; 0 for until each has come, 20s at least
	TTL     time.Duration  // of the locks, 500ms to 1m
	Workers int            // processes, 2 to 32
	Clients int            // goroutines in each worker, 1 to 64
	Keys    int            // of each kind, 1 to 64

	// Fewest is the number of locks that a run must grant to prove something.
	Fewest int

	// Out is the folder for the history, and the folder stays. "" means a folder that stays
	// only if something was wrong.
	Out string

	// HTML is the file for a page that shows the run; "" means no page.
	HTML string

	// Command starts this program in a way that calls Work.
	Command []string

	// Beside is a holdfast-verify of another release: every second worker runs it, so that
	// two releases share the store. "" means none.
	Beside string

	// Progress is called now and then with the progress of the run; nil for no calls.
	Progress func(line string)

	// Stderr receives the workers' complaints; nil discards the complaints.
	Stderr io.Writer
}

// Default returns a run that needs nothing but this program.
func Default() Config {
	return Config{TTL: 2 * time.Second, Workers: 4, Clients: 4, Keys: 8, Fewest: 100}
}

// Validate reports errors in a Config before a process or server is started.
func (c Config) Validate() error {
	for _, n := range []struct {
		name         string
		value, least int
		most         int
	}{
		{"workers", c.Workers, 2, maxWorkers},
		{"clients", c.Clients, 1, maxClients},
		{"keys", c.Keys, 1, maxKeys},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("%s is %d; it must be from %d to %d", n.name, n.value, n.least, n.most)
		}
	}
	if c.TTL < minTTL || c.TTL > maxTTL {
		return fmt.Errorf("ttl is %v; it must be from %v to %v", c.TTL, minTTL, maxTTL)
	}
	if c.Length != 0 && (c.Length < minLength || c.Length > maxLength) {
		return fmt.Errorf("for is %v; it must be from %v to %v", c.Length, minLength, maxLength)
	}
	if c.Store != "" && c.Start != "" {
		return errors.New("a store is either there, or to be started: leave out one of store and start")
	}
	if _, err := starterOf(cmp.Or(c.Start, defaultEngine)); err != nil {
		return err
	}
	if c.Beside != "" {
		if _, err := exec.LookPath(c.Beside); err != nil {
			return fmt.Errorf("beside is %q; it must be the program holdfast-verify of another release: %w", c.Beside, err)
		}
	}
	for _, n := range c.Nemeses {
		if n == plan.Pause && !canPause {
			return errors.New("pause stops a worker with SIGSTOP, which this system does not have: leave it out")
		}
	}
	return nil
}

func (c Config) progress(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}
