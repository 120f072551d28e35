package zoo

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/rest"
)

// Trust returns until when, by the session's clock, the ensemble certainly keeps the
// session. Until then no other client sees the session's nodes gone.
//
// The answer to a ping proves less. The leader ends sessions. Every half tick, the leader
// asks each follower which sessions the follower has heard of. A follower that has lost the
// leader goes on answering for many ticks, while the leader has long ended the session.
//
// So the session sends syncs, which only the leader can answer. Messages between leader and
// follower stay in order. Suppose that a first sync was answered, and then a second sync
// that was sent after the first answer. Then the leader had asked the follower, half a tick
// before the first sync was sent or later, and the follower's report had arrived before the
// second sync. The report covered every request that the follower had answered by then.
// From the sending of such a request on, the session is kept for its timeout.
//
// No session is shorter than two ticks, unless configured so. So half a tick is a quarter
// of the session at most. A leader that has lost the other servers, but not this client,
// may go on for up to a tick after the other servers have given up that leader. The next
// leader counts the silence of all sessions anew. The time held back makes up for that
// tick in sessions of four ticks and more.
func (s *Session) Trust() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven + s.greeting.timeout*15/16
}

// Parts of a timeout.
const (
	pauses   = 24      // between syncs
	patience = 6       // for an answer, before the next server is tried
	half     = 5. / 16 // a tick at most, and some time for a late leader
)

// brief limits the pause of a call that waits for proof.
const brief = 50 * time.Millisecond

// errMute is the reason for the end of a connection whose server does not answer.
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

// A proof is a sync, under way or answered.
type proof struct {
	sent, answered time.Duration
	after          time.Duration // when the last sync was sent that had been answered by then
}

// prove sends a sync over a connection; nil if the connection has ended.
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

// learn records an answered sync. Answers come in the order of the requests.
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

// Prove waits until every change made before this call is reported, and until the session
// is trusted at least until the given time.
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
		rest.For(ctx, min(s.Timeout()/pauses, brief))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
