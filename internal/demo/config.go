package demo

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds keep the sale within what one machine plays in a minute.
const (
	maxServers = 32
	maxStock   = 2000
	maxBuyers  = 2000
	minTTL     = 500 * time.Millisecond // less, and a busy machine loses locks by itself
	maxTTL     = 30 * time.Second
)

// A Config says what to play. Start from [Default].
type Config struct {
	Servers int           // server processes, 1 to 32
	Stock   int           // items on sale, 1 to 2000
	Buyers  int           // buyers of one item each, 1 to 2000
	Store   string        // URL of the lock store; "" means files in the folder of the sale
	TTL     time.Duration // of the locks in the scene with the pause, 500ms to 30s
	Pause   bool          // play the scene with the pause after the sale

	// Command starts this program so that it calls Serve.
	Command []string

	// Progress receives a line about the progress now and then; may be nil.
	Progress func(line string)

	// Stderr receives the complaints of the servers; nil discards them.
	Stderr io.Writer
}

// Default returns a sale that needs no other program and no lock server.
func Default() Config {
	return Config{Servers: 4, Stock: 200, Buyers: 500, TTL: time.Second}
}

// Validate returns an error if a Config cannot be played, before Run starts anything.
func (c Config) Validate() error {
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"servers", c.Servers, maxServers},
		{"stock", c.Stock, maxStock},
		{"buyers", c.Buyers, maxBuyers},
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("%s is %d; it must be from 1 to %d", n.name, n.value, n.most)
		}
	}
	if c.TTL < minTTL || c.TTL > maxTTL {
		return fmt.Errorf("ttl is %v; it must be from %v to %v", c.TTL, minTTL, maxTTL)
	}
	if c.Pause && !canFreeze {
		return errors.New("pause stops a server with SIGSTOP, which this system does not have: leave it out")
	}
	return nil
}

func (c Config) progress(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}
