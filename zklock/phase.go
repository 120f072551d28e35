package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/newer"
	"github.com/holdfast-go/holdfast/internal/zoo"
)

// Readers that hold at the same time share the token of their phase. The phase is a
// node beside the nodes of the readers. Every reader has a node below the phase while
// it holds. The first reader creates the phase and writes its own token to the node of
// the key. An exclusive claim removes the phase before it holds. The token is therefore
// larger than the tokens of all earlier holders. It is also smaller than the tokens of
// later holders, which queued behind the first reader or arrived later.
//
// The servers remove a phase after all readers have left. A late reader may stand
// behind readers that arrived after it and have already left. The late reader then
// creates a new phase, with a token not smaller than theirs: no writer can have held
// since.
//
// A slot may hold beside readers, who keep the phase. If a reader is ahead in the
// queue, or a phase exists, the slot writes its token to the node of the key, too. The
// slot does so before it holds. A phase is over if its token is not larger than the
// slot's token. The next reader gives the phase a new token, which later readers share.
// A late reader may stand ahead of the slot. Its own token is then too small, and the
// phase gets the token after the slot's: slots have one token each.
//
// The node of the key exists while the queue has claims, and every writer of the node
// has read its current content. No phase can therefore begin from a state before a
// slot, or before another phase.
//
// A reader that creates or enters the phase proves, in the same transaction, that it is
// still in the queue. A late reader would otherwise leave a phase for later readers.
const phaseName = "phase"

// marks are the largest tokens given by a key to a phase of readers, and to a slot
// beside readers. The node of the key contains them.
type marks struct {
	phase, slot uint64
	version     int32 // of the node
}

func (m marks) String() string { return fmt.Sprintf("%d %d %d", format, m.phase, m.slot) }

func parseMarks(key, text string) (m marks, err error) {
	if text == "" {
		return m, nil
	}
	var found int64
	_, err = fmt.Sscanf(text, "%d %d %d", &found, &m.phase, &m.slot)
	if found > format {
		return m, newer.Check(key, found, format, newer.Passes)
	}
	if err != nil {
		return m, fmt.Errorf("the node of a key says %q instead of a format and two tokens: %w", text, err)
	}
	return m, nil
}

// marksIn returns the marks from the answer to a Get of the node of a key.
func marksIn(ctx context.Context, key string, call *zoo.Call) (marks, error) {
	if err := call.Wait(ctx); err != nil {
		return marks{}, err
	}
	text, stat := call.Data()
	m, err := parseMarks(key, text)
	m.version = stat.Version
	return m, err
}

// readMarks returns the marks of the claim's key.
func (cl *claim) readMarks(ctx context.Context) (marks, error) {
	call, err := cl.session.ask(ctx, zoo.Get(cl.dir))
	if err != nil {
		return marks{}, err
	}
	return marksIn(ctx, cl.Key, call)
}

// write returns the request that replaces the marks, unless the node has changed since.
func (cl *claim) write(m marks) zoo.Request { return zoo.Set(cl.dir, m.String(), m.version) }

// errNoPhase means the last reader has left, and the servers have removed the phase.
var errNoPhase = errors.New("there is no phase")

// join lets a reader enter the phase, and returns the token of the phase.
func (s *Store) join(ctx context.Context, cl *claim, q queue) (uint64, error) {
	there := q.phase
	for {
		enter := s.makePhase
		if there {
			enter = s.enterPhase
		}
		token, err := enter(ctx, cl)
		switch {
		case errors.Is(err, errNoPhase):
			there = false
		case errors.Is(err, zoo.NodeExists): // created by another client, or by an unanswered try
			there = true
		case !errors.Is(err, zoo.BadVersion): // with NoNode, the claim has lost its place: the next look reports the loss
			return token, err
		}
	}
}

// makePhase creates a missing phase, with the claim as a member.
func (s *Store) makePhase(ctx context.Context, cl *claim) (uint64, error) {
	m, err := cl.readMarks(ctx)
	if err != nil {
		return 0, err
	}
	m.phase = max(m.phase, m.slot+1, cl.token)
	cl.joined = true // as far as known
	_, err = cl.session.ask(ctx, zoo.Multi(
		zoo.Check(cl.path()),
		cl.write(m),
		zoo.Create(cl.dir+"/"+phaseName, "", s.acl, zoo.Container),
		zoo.Create(cl.member(), "", s.acl, zoo.Member),
	))
	return m.phase, err
}

// enterPhase lets the claim enter a phase. If the phase is over, it begins anew.
func (s *Store) enterPhase(ctx context.Context, cl *claim) (uint64, error) {
	enter := zoo.Multi(zoo.Check(cl.path()), zoo.Create(cl.member(), "", s.acl, zoo.Member))
	calls, err := cl.session.zoo.Send(ctx, enter, zoo.Exists(cl.dir+"/"+phaseName), zoo.Get(cl.dir))
	if err != nil {
		return 0, err
	}
	cl.joined = true // as far as known
	entered, there := calls[0].Wait(ctx), calls[1].Wait(ctx)
	switch {
	case errors.Is(there, zoo.NoNode):
		return 0, errNoPhase
	case there != nil:
		return 0, there
	case entered != nil && !errors.Is(entered, zoo.NodeExists): // a previous try may have entered the phase
		return 0, entered
	}
	m, err := marksIn(ctx, cl.Key, calls[2])
	if err != nil || m.phase > m.slot {
		return m.phase, err
	}
	m.phase = max(m.slot+1, cl.token)
	_, err = cl.session.ask(ctx, zoo.Multi(zoo.Check(cl.path()), cl.write(m)))
	return m.phase, err
}

// leavePhase removes the member node of a reader whose place in the queue somebody else
// has removed. Otherwise the node would keep writers out until the session ends.
func (s *Store) leavePhase(k *session, member string) {
	_ = retry(s.closing, func() error { // a final failure ends with the session
		_, err := k.ask(s.closing, zoo.Delete(member))
		return err
	})
}

// endPhase removes the phase for a claim that tolerates no readers. If the phase still
// has a member, somebody has removed the reader's place by hand, and the reader's
// process has not noticed yet.
func (cl *claim) endPhase(ctx context.Context) error {
	_, err := cl.session.ask(ctx, zoo.Delete(cl.dir+"/"+phaseName))
	if errors.Is(err, zoo.NoNode) {
		return nil
	}
	return err
}

// mark writes the token of a slot to the node of its key, unless the node has a larger
// token.
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
