package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/ext/internal/zoo"
)

// Readers that hold at the same time share a token: that of the phase, a node
// beside theirs. The first of them makes it, with its own token, and each has a
// node below it while it holds. A claim that is no reader removes the phase before
// it holds. So the token is above those of all who held before, and below those of
// all who come later: they stood behind its maker in line, or have come since.
//
// A slot may hold beside readers, who keep the phase. It closes that with its token:
// the next reader behind it in line gives the phase its own. A reader with slots
// behind it makes a phase that is closed already, since one of those may hold by then.
//
// Who makes or enters the phase proves, in the same transaction, that it still
// stands in line: one who is late would leave a phase for readers to come.
const phaseName = "phase"

// A phase is what its node says. It is closed unless its token is the larger one.
type phase struct{ token, closer uint64 }

func (p phase) String() string { return fmt.Sprint(p.token, " ", p.closer) }

func parsePhase(text string) (p phase, err error) {
	_, err = fmt.Sscan(text, &p.token, &p.closer)
	return p, err
}

// phaseOf is the phase that a reader makes.
func phaseOf(cl *claim, l line) phase {
	p := phase{token: cl.token}
	for _, behind := range l.places[max(l.index(cl.node), 0):] {
		if !behind.shared() && !behind.exclusive() {
			p.closer = cl.token
		}
	}
	return p
}

// join lets a reader enter the phase, and returns its token.
func (s *Store) join(ctx context.Context, cl *claim, l line) (uint64, error) {
	path, ours := cl.dir+"/"+phaseName, phaseOf(cl, l)
	there := l.phase
	for {
		enter := []zoo.Request{zoo.Check(cl.path())}
		if !there {
			enter = append(enter, zoo.Create(path, ours.String(), s.acl, zoo.Container))
		}
		enter = append(enter, zoo.Create(cl.member(), "", s.acl, zoo.Member))
		calls, err := cl.session.zoo.Send(ctx, zoo.Multi(enter...), zoo.Get(path))
		if err != nil {
			return 0, err
		}
		cl.joined = true // as far as we know
		err = calls[0].Wait(ctx)
		read := calls[1].Wait(ctx)
		switch {
		case err != nil && !errors.Is(err, zoo.NodeExists) && !errors.Is(err, zoo.NoNode):
			return 0, err
		case read != nil && !errors.Is(read, zoo.NoNode):
			return 0, read
		case read != nil: // the last reader has left, and the servers removed it
			there = false
			continue
		case errors.Is(err, zoo.NodeExists) && !there:
			there = true // another made it, or we did, and the answer was lost
			continue
		case errors.Is(err, zoo.NoNode):
			return 0, err // our place in line: the next look tells
		}
		token, err := cl.session.enterPhase(ctx, cl, calls[1], ours)
		if errors.Is(err, zoo.BadVersion) {
			there = true
			continue
		}
		return token, err
	}
}

// enterPhase returns the token of a reader in the phase that was read, and opens
// that anew if it was closed. The error is BadVersion if it has changed since.
func (k *session) enterPhase(ctx context.Context, cl *claim, read *zoo.Call, ours phase) (uint64, error) {
	text, stat := read.Data()
	p, err := parsePhase(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the phase of readers is %q: %w", text, err)
	case p.closer < p.token:
		return p.token, nil
	case cl.token <= p.closer: // it stood in line before who closed it
		return cl.token, nil
	}
	_, err = k.ask(ctx, zoo.Multi(zoo.Check(cl.path()), zoo.Set(cl.dir+"/"+phaseName, ours.String(), stat.Version)))
	return cl.token, err
}

// leavePhase removes the node of a reader whose place in line somebody else has
// removed. It keeps writers out otherwise, for as long as the session lives.
func (s *Store) leavePhase(k *session, member string) {
	_ = insist(s.closing, func() error { // what fails for good ends with the session
		_, err := k.ask(s.closing, zoo.Delete(member))
		return err
	})
}

// endPhase removes the phase, or closes it. Readers may stay in it whom the claim
// tolerates; if it tolerates none, somebody has removed the place of a reader by
// hand, and its process has not noticed yet.
func (s *Store) endPhase(ctx context.Context, cl *claim) error {
	path := cl.dir + "/" + phaseName
	for {
		calls, err := cl.session.zoo.Send(ctx, zoo.Delete(path), zoo.Get(path))
		if err == nil {
			err = calls[0].Wait(ctx)
		}
		if errors.Is(err, zoo.NotEmpty) && !cl.Exclusive() {
			if err = calls[1].Wait(ctx); err == nil {
				err = cl.session.closePhase(ctx, cl, calls[1])
			}
		}
		switch {
		case errors.Is(err, zoo.BadVersion):
			continue
		case errors.Is(err, zoo.NoNode):
			return nil
		}
		return err
	}
}

// closePhase closes the phase that was read, unless its token is above the claim's
// anyway. The error is BadVersion if it has changed since.
func (k *session) closePhase(ctx context.Context, cl *claim, read *zoo.Call) error {
	text, stat := read.Data()
	p, err := parsePhase(text)
	if err != nil {
		return fmt.Errorf("the phase of readers is %q: %w", text, err)
	}
	if max(p.token, p.closer) >= cl.token {
		return nil
	}
	p.closer = cl.token
	_, err = k.ask(ctx, zoo.Set(cl.dir+"/"+phaseName, p.String(), stat.Version))
	return err
}
