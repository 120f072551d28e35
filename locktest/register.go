package locktest

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast/fence"
)

// A Register is data under a lock: a stand-in for a row or a file that checks no fencing
// token, and so accepts every write. [NewRegister] makes a Register.
type Register[T any] struct {
	name string

	mu    sync.Mutex
	value T
}

// NewRegister returns a register with a first value. The name is for messages.
func NewRegister[T any](name string, value T) *Register[T] {
	return &Register[T]{name: name, value: value}
}

// Read takes a [Process.Step] of p and returns the value.
func (r *Register[T]) Read(p *Process) T {
	p.Step()
	r.mu.Lock()
	defer r.mu.Unlock()
	p.note("reads %v from %s", r.value, r.name)
	return r.value
}

// Write takes a [Process.Step] of p and sets the value.
func (r *Register[T]) Write(p *Process, value T) {
	p.Step()
	r.mu.Lock()
	defer r.mu.Unlock()
	p.note("writes %v to %s", value, r.name)
	r.value = value
}

// Value returns the value to the test, which is no process and takes no step.
func (r *Register[T]) Value() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// A FencedRegister is a [Register] that remembers the largest fencing token, and refuses
// smaller tokens, as package fence does in a database. [NewFencedRegister] makes a
// FencedRegister.
type FencedRegister[T any] struct {
	register Register[T]
	seen     fence.Memory
}

// NewFencedRegister returns a register with a first value and no token.
func NewFencedRegister[T any](name string, value T) *FencedRegister[T] {
	return &FencedRegister[T]{register: Register[T]{name: name, value: value}}
}

// Read is like [Register.Read]. The token is from [holdfast.Lock.Fence]. An outdated token
// gets an error that matches [fence.ErrOutdated]. Token 0, of a lock that has ended, gets
// another error. A read checks the token because otherwise an earlier holder could write
// after the read.
func (r *FencedRegister[T]) Read(p *Process, token uint64) (value T, err error) {
	p.Step()
	err = r.check(p, token, "read", func() {
		value = r.register.value
		p.note("reads %v from %s with token %d", value, r.register.name, token)
	})
	return value, err
}

// Write is like [Register.Write], with the token of Read. If the token is refused, nothing
// is written.
func (r *FencedRegister[T]) Write(p *Process, token uint64, value T) error {
	p.Step()
	return r.check(p, token, "write", func() {
		p.note("writes %v to %s with token %d", value, r.register.name, token)
		r.register.value = value
	})
}

// Value returns the value to the test, which is no process and takes no step.
func (r *FencedRegister[T]) Value() T { return r.register.Value() }

func (r *FencedRegister[T]) check(p *Process, token uint64, op string, access func()) error {
	err := r.seen.Check(context.Background(), r.register.name, token, func() error {
		r.register.mu.Lock()
		defer r.register.mu.Unlock()
		access()
		return nil
	})
	if err != nil {
		p.note("may not %s %s: %v", op, r.register.name, err)
		return fmt.Errorf("locktest: %s %s: %w", op, r.register.name, err)
	}
	return nil
}
