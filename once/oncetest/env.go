package oncetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/rules"
	"github.com/holdfast-go/holdfast/once"
)

const (
	long     = time.Hour              // keep time of records that must stay
	short    = 300 * time.Millisecond // keep time of records that must expire
	patience = time.Minute            // bounds every wait
)

// An env is the environment of a rule: a key and two clients. Calls alternate between
// the clients, so every client must see the changes of the other.
type env struct {
	testing.TB
	clients []once.Records
	key     string
	calls   int
}

func (e *env) failf(format string, args ...any) { rules.Fail(fmt.Errorf(format, args...)) }

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

// begin calls Begin and expects the record to be begun with these arguments.
func (e *env) begin(token uint64, fingerprint string, keep time.Duration) {
	want := once.Record{State: once.Begun, Token: token, Fingerprint: fingerprint}
	e.begins(token, fingerprint, keep, want)
	e.stands(want)
}

// begins calls Begin and expects want.
func (e *env) begins(token uint64, fingerprint string, keep time.Duration, want once.Record) {
	r, err := e.client().Begin(e.Context(), e.key, token, fingerprint, keep)
	if err != nil || !same(r, want) {
		e.failf("Begin with token %d returns %s, %v; want %s", token, show(r), err, show(want))
	}
}

// finish calls Finish and expects the record to be done.
func (e *env) finish(token uint64, fingerprint, result string, keep time.Duration) {
	e.succeeds("Finish", e.client().Finish(e.Context(), e.key, token, []byte(result), keep))
	e.stands(once.Record{State: once.Done, Token: token, Fingerprint: fingerprint, Result: []byte(result)})
}

// forget calls Forget and expects the record to be free.
func (e *env) forget(token uint64) {
	e.succeeds("Forget", e.client().Forget(e.Context(), e.key, token))
	e.stands(once.Record{Token: token})
}

func (e *env) succeeds(what string, err error) {
	if err != nil {
		e.failf("%s fails: %w", what, err)
	}
}

// stands expects Load to return want.
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

// outdated expects a call with token to have been refused because of a larger token,
// without a change of the record.
func (e *env) outdated(what string, token uint64, before once.Record, err error) {
	var facts *fence.OutdatedError
	if !errors.Is(err, fence.ErrOutdated) || !errors.As(err, &facts) || *facts != (fence.OutdatedError{Key: e.key, Token: token, Highest: before.Token}) {
		e.failf("%s with token %d after %d says %v, want an OutdatedError of these", what, token, before.Token, err)
	}
	e.stands(before)
}

// unbegun expects Finish to be refused because nobody has begun with token, without a
// change of the record.
func (e *env) unbegun(token uint64, before once.Record) {
	err := e.client().Finish(e.Context(), e.key, token, []byte("late"), long)
	if !errors.Is(err, fence.ErrOutdated) {
		e.failf("Finish with token %d, which has not begun, says %v; want ErrOutdated", token, err)
	}
	e.stands(before)
}

// ends waits until the record has expired.
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

// awhile waits until a record kept for keep has expired.
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
