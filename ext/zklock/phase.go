package zklock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-go/holdfast/ext/internal/zoo"
)

// Readers that hold at the same time share a token: that of the phase, a node
// beside theirs. The first of them makes it, with its own token, and each has a
// node below it while it holds. An exclusive claim removes the phase before it holds.
// So the token is above those of all who held before, and below those of all who come
// later: they stood behind its maker in line, or have come since.
//
// A slot may hold beside readers, who keep the phase. So it writes its token to the
// node of the key before it holds, if a reader stands before it in line or there is
// a phase. A phase whose token is not above that is over: the next reader behind the
// slot gives it its own token, which those after it share. The node of the key is
// there as long as anyone is in line: no phase is made from what was known before
// the slot came.
//
// Who makes or enters the phase proves, in the same transaction, that it still
// stands in line: one who is late would leave a phase for readers to come.
const phaseName = "phase"

// parseToken reads what the node of a phase or of a key says, 0 if nothing.
func parseToken(text string) (token uint64, err error) {
	if text == "" {
		return 0, nil
	}
	if token, err = strconv.ParseUint(text, 10, 64); err != nil {
		err = fmt.Errorf("a node that has a token says %q: %w", text, err)
	}
	return token, err
}

// join lets a reader enter the phase, and returns its token.
func (s *Store) join(ctx context.Context, cl *claim, l line) (uint64, error) {
	path, ours := cl.dir+"/"+phaseName, fmt.Sprint(cl.token)
	there := l.phase
	for {
		enter := []zoo.Request{zoo.Check(cl.path())}
		if !there {
			enter = append(enter, zoo.Create(path, ours, s.acl, zoo.Container))
		}
		enter = append(enter, zoo.Create(cl.member(), "", s.acl, zoo.Member))
		calls, err := cl.session.zoo.Send(ctx, zoo.Multi(enter...), zoo.Get(path), zoo.Get(cl.dir))
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
		token, err := cl.phaseToken(ctx, calls[1], calls[2])
		if errors.Is(err, zoo.BadVersion) {
			there = true
			continue
		}
		return token, err
	}
}

// phaseToken returns the token of a reader that has entered the phase, of which the
// node was read, and then that of the key. It begins the phase anew if that is over.
// The error is BadVersion if it has changed since.
func (cl *claim) phaseToken(ctx context.Context, phase, key *zoo.Call) (uint64, error) {
	token, version, err := tokenIn(ctx, phase)
	if err != nil {
		return 0, err
	}
	slot, _, err := tokenIn(ctx, key)
	switch {
	case err != nil:
		return 0, err
	case token > slot:
		return token, nil
	case cl.token <= slot: // it stood in line before the slot
		return cl.token, nil
	}
	_, err = cl.session.ask(ctx, zoo.Multi(zoo.Check(cl.path()), zoo.Set(cl.dir+"/"+phaseName, fmt.Sprint(cl.token), version)))
	return cl.token, err
}

// tokenIn returns what the node of a phase or of a key says.
func tokenIn(ctx context.Context, call *zoo.Call) (token uint64, version int32, err error) {
	if err := call.Wait(ctx); err != nil {
		return 0, 0, err
	}
	text, stat := call.Data()
	token, err = parseToken(text)
	return token, stat.Version, err
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
		key, err := cl.session.ask(ctx, zoo.Get(cl.dir))
		if err != nil {
			return err
		}
		token, version, err := tokenIn(ctx, key)
		if err != nil || token >= cl.token {
			return err
		}
		_, err = cl.session.ask(ctx, zoo.Set(cl.dir, fmt.Sprint(cl.token), version))
		if !errors.Is(err, zoo.BadVersion) {
			return err
		}
	}
}
