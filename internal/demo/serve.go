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

// A job is the input of a server process, sent by the parent on standard input.
type job struct {
	Name      string        // of the server, for people
	Warehouse string        // the address of the shop
	Bank      string        // the address of the payment provider
	Item      string        // what to sell
	Guard     Guard         // the guard of each sale
	Fenced    bool          // the shop checks tokens
	Store     string        // URL of the lock store
	Key       string        // of the lock
	TTL       time.Duration // of the lock; 0 means the default
}

// Serve runs one server process. Serve reads a job from in, writes the address of the
// server to out, and sells until in or ctx ends. The input also ends when the parent dies.
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
