package zoo

import (
	"context"
	"errors"
	"time"
)

// Trust returns until when, by the session's clock, the ensemble keeps the session
// for certain. Nobody else sees its nodes gone before.
//
// That a server answers a ping does not tell this much. The leader ends sessions,
// and a follower tells it which of them it has heard of when the leader asks, every
// half tick. A follower that has lost the leader goes on answering for many ticks,
// while the leader has long ended the session.
//
// So the session sends syncs, which only the leader can answer. Messages between
// the two stay in order. When one sync was answered, and then another that was
// sent after that, the follower had been asked, half a tick before the first was
// sent or later, and its report had arrived before the second did. The report
// covered whatever the follower had answered by then. From when that was sent, the
// session is kept for its timeout.
//
// No session is shorter than two ticks, unless somebody has configured that, so
// half a tick is a quarter of the session at most. A leader that has lost the
// others, but not this client, may go on for up to one tick after they have given
// it up; the next one counts the silence of all sessions anew. What is held back
// makes up for that in sessions of four ticks and more.
func (s *Session) Trust() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven + s.greeting.timeout*15/16
}

// Parts of a timeout.
const (
	pauses   = 24      // between syncs
	patience = 6       // for an answer, before another server is tried
	half     = 5. / 16 // a tick at most, and some for a leader that is late
)

// brief bounds the pause of a call that waits for proof.
const brief = 50 * time.Millisecond

// errMute is why a connection ends whose server does not answer.
var errMute = errors.New("the server does not answer")

// keep sends syncs until the connection or the session has ended.
func (s *Session) keep(c *conn) {
	timeout := s.Timeout()
	tick := time.NewTicker(timeout / pauses)
	defer tick.Stop()
	for {
		s.prove(c)
		select {
		case <-tick.C:
		case <-c.ended:
			return
		case <-s.closed.Done():
			c.fail(context.Cause(s.closed))
			return
		}
		c.mu.Lock()
		silent := s.clock.Now() - c.heard
		c.mu.Unlock()
		if silent > timeout/patience {
			c.fail(errMute)
		}
	}
}

// A proof is a sync on its way, or one that was answered.
type proof struct {
	sent, answered time.Duration
	after          time.Duration // when the last one was sent that had been answered by then
}

// prove sends a sync over a connection, nil if that has ended.
func (s *Session) prove(c *conn) *Call {
	p := proof{sent: s.clock.Now()}
	c.mu.Lock()
	if n := len(c.syncs); n > 0 {
		p.after = c.syncs[n-1].sent
	}
	c.mu.Unlock()
	call := &Call{op: opSync, done: make(chan struct{}), then: func(call *Call) {
		if call.err == nil {
			s.learn(c, p)
		}
	}}
	if !c.queue([]*Call{call}, []Request{Sync("/")}) {
		return nil
	}
	return call
}

// learn takes note of a sync that was answered. Answers come in the order of what
// was sent.
func (s *Session) learn(c *conn, p proof) {
	p.answered = s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = p.answered
	c.syncs = append(c.syncs, p)
	reported := p.after - time.Duration(half*float64(s.greeting.timeout))
	for len(c.syncs) > 1 && c.syncs[1].answered <= reported {
		c.syncs = c.syncs[1:]
	}
	if c.syncs[0].answered <= reported {
		s.proven = max(s.proven, c.syncs[0].sent)
	}
}

// Prove waits until every change is told of that was made before this call, and
// until the session is trusted until then.
func (s *Session) Prove(ctx context.Context, until time.Duration) error {
	for {
		c, err := s.connection(ctx)
		if err != nil {
			return err
		}
		call := s.prove(c)
		if call == nil {
			continue
		}
		if err := call.Wait(ctx); err != nil {
			return err
		}
		if s.Trust() >= until {
			return nil
		}
		rest(ctx, min(s.Timeout()/pauses, brief))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
