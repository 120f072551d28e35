package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/ext/internal/zoo"
)

// Readers that hold at the same time share a token, that of their phase. The phase is
// a node beside theirs, below which each has one while it holds. The first of them
// makes it and writes its own token to the node of the key. An exclusive claim removes
// the phase before it holds. So the token is above those of all who held before, and
// below those of all who come later: they stood behind its maker in line, or have come
// since.
//
// The servers remove a phase that all readers have left. One that is late, behind
// readers that came after it and have left already, then makes another, with no
// smaller token than theirs: no writer can have held since.
//
// A slot may hold beside readers, who keep the phase. So it writes its token to the
// node of the key, too, before it holds, if a reader stands before it in line or there
// is a phase. A phase whose token is not above that is over: the next reader behind
// the slot gives it its own token, which those after it share.
//
// The node of the key is there as long as anyone is in line, and whoever changes what
// it says has seen what it said: no phase begins from what was known before a slot, or
// another phase, came.
//
// Who makes or enters the phase proves, in the same transaction, that it still
// stands in line: one who is late would leave a phase for readers to come.
const phaseName = "phase"

// marks are the largest tokens that a key has given to a phase of readers, and to a
// slot beside readers. Its node has them.
type marks struct {
	phase, slot uint64
	version     int32 // of the node
}

func (m marks) String() string { return fmt.Sprintf("%d %d", m.phase, m.slot) }

func parseMarks(text string) (m marks, err error) {
	if text == "" {
		return m, nil
	}
	if _, err := fmt.Sscanf(text, "%d %d", &m.phase, &m.slot); err != nil {
		return m, fmt.Errorf("the node of a key says %q instead of two tokens: %w", text, err)
	}
	return m, nil
}

// marksIn takes the marks from the answer to a Get of the node of a key.
func marksIn(ctx context.Context, call *zoo.Call) (marks, error) {
	if err := call.Wait(ctx); err != nil {
		return marks{}, err
	}
	text, stat := call.Data()
	m, err := parseMarks(text)
	m.version = stat.Version
	return m, err
}

// readMarks returns the marks of the claim's key.
func (cl *claim) readMarks(ctx context.Context) (marks, error) {
	call, err := cl.session.ask(ctx, zoo.Get(cl.dir))
	if err != nil {
		return marks{}, err
	}
	return marksIn(ctx, call)
}

// write puts marks in place of those that were read.
func (cl *claim) write(m marks) zoo.Request { return zoo.Set(cl.dir, m.String(), m.version) }

// errNoPhase says that the last reader has left, and the servers removed the phase.
var errNoPhase = errors.New("there is no phase")

// join lets a reader enter the phase, and returns its token.
func (s *Store) join(ctx context.Context, cl *claim, l line) (uint64, error) {
	there := l.phase
	for {
		enter := s.makePhase
		if there {
			enter = s.enterPhase
		}
		token, err := enter(ctx, cl)
		switch {
		case errors.Is(err, errNoPhase):
			there = false
		case errors.Is(err, zoo.NodeExists): // another made it, or we did, and the answer was lost
			there = true
		case !errors.Is(err, zoo.BadVersion): // with NoNode, our place in line has gone: the next look tells
			return token, err
		}
	}
}

// makePhase begins a phase where there is none, with the claim in it.
func (s *Store) makePhase(ctx context.Context, cl *claim) (uint64, error) {
	m, err := cl.readMarks(ctx)
	if err != nil {
		return 0, err
	}
	m.phase = max(m.phase, cl.token)
	cl.joined = true // as far as we know
	_, err = cl.session.ask(ctx, zoo.Multi(
		zoo.Check(cl.path()),
		cl.write(m),
		zoo.Create(cl.dir+"/"+phaseName, "", s.acl, zoo.Container),
		zoo.Create(cl.member(), "", s.acl, zoo.Member),
	))
	return m.phase, err
}

// enterPhase lets the claim into a phase, which begins anew if it is over.
func (s *Store) enterPhase(ctx context.Context, cl *claim) (uint64, error) {
	enter := zoo.Multi(zoo.Check(cl.path()), zoo.Create(cl.member(), "", s.acl, zoo.Member))
	calls, err := cl.session.zoo.Send(ctx, enter, zoo.Exists(cl.dir+"/"+phaseName), zoo.Get(cl.dir))
	if err != nil {
		return 0, err
	}
	cl.joined = true // as far as we know
	entered, there := calls[0].Wait(ctx), calls[1].Wait(ctx)
	switch {
	case errors.Is(there, zoo.NoNode):
		return 0, errNoPhase
	case there != nil:
		return 0, there
	case entered != nil && !errors.Is(entered, zoo.NodeExists): // it may have entered before
		return 0, entered
	}
	m, err := marksIn(ctx, calls[2])
	late := max(m.phase, cl.token)
	switch {
	case err != nil:
		return 0, err
	case m.phase > m.slot:
		return m.phase, nil
	case late <= m.slot: // it stood in line before the slot
		return late, nil
	}
	m.phase = cl.token
	_, err = cl.session.ask(ctx, zoo.Multi(zoo.Check(cl.path()), cl.write(m)))
	return m.phase, err
}

// leavePhase removes the node of a reader whose place in line somebody else has
// removed. It keeps writers out otherwise, for as long as the session lives.
func (s *Store) leavePhase(k *session, member string) {
	_ = insist(s.closing, func() error { // what fails for good ends with the session
		_, err := k.ask(s.closing, zoo.Delete(member))
		return err
	})
}

// endPhase removes the phase, for a claim that tolerates no readers. If there is one
// in it, somebody has removed its place by hand, and its process has not noticed yet.
func (cl *claim) endPhase(ctx context.Context) error {
	_, err := cl.session.ask(ctx, zoo.Delete(cl.dir+"/"+phaseName))
	if errors.Is(err, zoo.NoNode) {
		return nil
	}
	return err
}

// mark writes the token of a slot to the node of its key, unless there is a larger.
func (cl *claim) mark(ctx context.Context) error {
	for {
		m, err := cl.readMarks(ctx)
		if err != nil || m.slot >= cl.token {
			return err
		}
		m.slot = cl.token
		_, err = cl.session.ask(ctx, cl.write(m))
		if !errors.Is(err, zoo.BadVersion) {
			return err
		}
	}
}
