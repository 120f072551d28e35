package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

// A job is what the parent tells a server process on its standard input.
type job struct {
	Name   string        // of the server, for people
	Shop   string        // the database file
	Bank   string        // the address of the payment provider
	Item   string        // what to sell
	Guard  Guard         // what stands around each sale
	Fenced bool          // the database checks tokens
	Store  string        // URL of the lock store
	Key    string        // of the lock
	TTL    time.Duration // of the lock; 0 means the usual
}

// Serve is the life of one server process. It reads its job from in, writes
// the address where it listens to out, and sells until in ends, as it does when
// the parent dies, or until ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	signal.Ignore(os.Interrupt) // Ctrl-C goes to the whole process group; the parent decides
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("a server process reads its job from the sale that starts it: %w", err)
	}
	go func() {
		io.Copy(io.Discard, in)
		stop()
	}()
	s, err := newServer(ctx, j)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, s.close())
	}
	web := &http.Server{Handler: s}
	context.AfterFunc(ctx, func() { web.Close() })
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, s.close())
	}
	return s.close()
}
