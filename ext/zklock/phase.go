package zklock

import (
	"context"
	"errors"
	"strconv"

	"github.com/holdfast-go/holdfast/ext/internal/zoo"
)

// Readers that hold at the same time share a token: that of the phase, a node
// beside theirs. The first of them makes it, with its own token, and each has a
// node below it while it holds. A claim that is no reader removes the phase before
// it holds. So the token is above those of all who held before, and below those of
// all who come later: they stood behind its maker in line, or have come since.
//
// Who makes or enters the phase proves, in the same transaction, that it still
// stands in line: one who is late would leave a phase for readers to come.
const phaseName = "phase"

// join lets a reader enter the phase, and returns its token.
func (s *Store) join(ctx context.Context, cl *claim, l line) (uint64, error) {
	phase := cl.dir + "/" + phaseName
	there := l.phase
	for {
		enter := []zoo.Request{zoo.Check(cl.path())}
		if !there {
			enter = append(enter, zoo.Create(phase, strconv.FormatUint(cl.token, 10), s.acl, zoo.Container))
		}
		enter = append(enter, zoo.Create(cl.member(), "", s.acl, zoo.Member))
		calls, err := cl.session.zoo.Send(ctx, zoo.Multi(enter...), zoo.Get(phase))
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
		text, _ := calls[1].Data()
		return strconv.ParseUint(text, 10, 64)
	}
}

// endPhase removes the phase. Readers may stay in it whom the claim tolerates; if
// it tolerates none, somebody has removed the place of a reader by hand, and its
// process has not noticed yet.
func (s *Store) endPhase(ctx context.Context, cl *claim) error {
	calls, err := cl.session.zoo.Send(ctx, zoo.Delete(cl.dir+"/"+phaseName))
	if err == nil {
		err = calls[0].Wait(ctx)
	}
	if errors.Is(err, zoo.NoNode) || errors.Is(err, zoo.NotEmpty) && !cl.Exclusive() {
		return nil
	}
	return err
}
