package oncetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/once"
)

const (
	long     = time.Hour              // for which what must stay is kept
	short    = 300 * time.Millisecond // for which what must go is kept
	patience = 30 * time.Second       // bounds every wait
)

// An env is what one rule works with: a key of its own and two clients, which
// take turns, so that what one does the other sees.
type env struct {
	testing.TB
	clients []once.Records
	key     string
	calls   int
}

// broken carries what a rule saw from deep inside a check.
type broken struct{ seen error }

func (e *env) failf(format string, args ...any) { panic(broken{fmt.Errorf(format, args...)}) }

// caught turns the failf of a function into an error.
func caught(f func()) (seen error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			seen = p.seen
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// on returns an env for another key.
func (e *env) on(key string) *env {
	other := *e
	other.key = key
	return &other
}

func (e *env) client() once.Records {
	e.calls++
	return e.clients[e.calls%len(e.clients)]
}

// begin begins and expects that this makes the record what it is to be.
func (e *env) begin(token uint64, fingerprint string, keep time.Duration) {
	want := once.Record{State: once.Begun, Token: token, Fingerprint: fingerprint}
	e.begins(token, fingerprint, keep, want)
	e.stands(want)
}

// begins expects that Begin returns this.
func (e *env) begins(token uint64, fingerprint string, keep time.Duration, want once.Record) {
	r, err := e.client().Begin(e.Context(), e.key, token, fingerprint, keep)
	if err != nil || !same(r, want) {
		e.failf("Begin with token %d returns %s, %v; want %s", token, show(r), err, show(want))
	}
}

// finish finishes and expects that the record is done then.
func (e *env) finish(token uint64, fingerprint, result string, keep time.Duration) {
	e.succeeds("Finish", e.client().Finish(e.Context(), e.key, token, []byte(result), keep))
	e.stands(once.Record{State: once.Done, Token: token, Fingerprint: fingerprint, Result: []byte(result)})
}

// forget forgets and expects that the record is free then.
func (e *env) forget(token uint64) {
	e.succeeds("Forget", e.client().Forget(e.Context(), e.key, token))
	e.stands(once.Record{Token: token})
}

func (e *env) succeeds(what string, err error) {
	if err != nil {
		e.failf("%s fails: %w", what, err)
	}
}

// stands expects that this is remembered.
func (e *env) stands(want once.Record) {
	if r := e.load(); !same(r, want) {
		e.failf("Load returns %s, want %s", show(r), show(want))
	}
}

func (e *env) load() once.Record {
	r, err := e.client().Load(e.Context(), e.key)
	e.succeeds("Load", err)
	return r
}

// outdated expects that a call of this token was refused because of a larger one,
// and has changed nothing.
func (e *env) outdated(what string, token uint64, before once.Record, err error) {
	var facts *fence.OutdatedError
	if !errors.Is(err, fence.ErrOutdated) || !errors.As(err, &facts) || *facts != (fence.OutdatedError{Key: e.key, Token: token, Highest: before.Token}) {
		e.failf("%s with token %d after %d says %v, want an OutdatedError of these", what, token, before.Token, err)
	}
	e.stands(before)
}

// unbegun expects that Finish is refused because nobody has begun with its token,
// and has changed nothing.
func (e *env) unbegun(token uint64, before once.Record) {
	err := e.client().Finish(e.Context(), e.key, token, []byte("late"), long)
	if !errors.Is(err, fence.ErrOutdated) {
		e.failf("Finish with token %d, which has not begun, says %v; want ErrOutdated", token, err)
	}
	e.stands(before)
}

// ends waits until nothing is remembered.
func (e *env) ends() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !same(e.load(), once.Record{}); {
		select {
		case <-tick.C:
		case <-late:
			e.failf("%v after its time was over the key still has %s", patience, show(e.load()))
		}
	}
}

// awhile passes as much time as it takes to forget what is kept for so long.
func (e *env) awhile(keep time.Duration) {
	other := e.on(e.key + "/awhile")
	other.begins(1, "", keep, once.Record{State: once.Begun, Token: 1})
	other.ends()
}

func same(a, b once.Record) bool {
	return a.State == b.State && a.Token == b.Token && a.Fingerprint == b.Fingerprint && bytes.Equal(a.Result, b.Result)
}

func show(r once.Record) string {
	return fmt.Sprintf("{state %d, token %d, fingerprint %.20q, %d bytes %.20q}", r.State, r.Token, r.Fingerprint, len(r.Result), r.Result)
}
