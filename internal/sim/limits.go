package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
)

// overtime is how much longer than its limit a call may take. The limits of the engine are
// exact, except that a call may find a result at the end of its limit.
const overtime = time.Second

// longestUnlock is about the three seconds that Unlock takes if the store does not answer.
const longestUnlock = 3*time.Second + 500*time.Millisecond

// limit returns when a call that begins now ends, with a lock or without: when Wait or the
// deadline of the context is over; 0: never. A try may first wait until a parked claim is
// released. LockAll tries one key after the other, also when Wait is over, and may have to release what it
// has.
func (j *Judge) limit(ctx context.Context, want Want, group *Group) (limit time.Duration) {
	now := j.w.Now()
	if deadline, ok := ctx.Deadline(); ok {
		limit = max(deadline.Sub(j.w.Trace.began), now)
	}
	if wait := now + want.Wait; (want.Wait > 0 || want.Try) && (limit == 0 || wait < limit) {
		limit = wait
	}
	if limit == 0 {
		return 0
	}
	steps := 0
	switch {
	case group != nil:
		steps = len(group.keys) + 1
	case want.Try:
		steps = 1
	}
	return limit + time.Duration(steps)*longestUnlock
}

// early reports whether a refused call should have gone on, since its context has not ended.
// Upgrade does not wait without a queue, or if its place in the queue was lost.
func (j *Judge) early(w *wait) bool {
	if w.want.Try || w.want.Kind == Upgrade && (j.calm < 0 || j.place == 0) {
		return false
	}
	return w.want.Wait == 0 || j.w.Now() < w.began+w.want.Wait
}

// late checks whether a call has kept its limit until now.
func (j *Judge) late(w *wait) {
	late := j.w.Now() - w.limit - overtime
	if w.limit > 0 && late > 0 && !w.r.P.stoppedSince(w.began) {
		j.violate(w.r, w.want, 0, "limit", fmt.Sprintf("%s goes on for %v after its limit", w.want.call(), late+overtime))
	}
}

// failed reports whether an error says that the store has failed w, or that key of a group.
func failed(w *wait, err error) bool {
	if errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrLost) {
		return false
	}
	var e *holdfast.Error
	return w.group == nil || errors.As(err, &e) && e.Key == w.want.Key
}

// outrun reports whether other calls may have changed the key before each write of a try. A store
// that reads and then writes on a condition loses such a race, and the time of a try with a short
// TTL may end before it wins one. One or two grants leave time for a write.
func outrun(k *guarded, w *wait, err error) bool {
	return w.want.Try && errors.Is(err, os.ErrDeadlineExceeded) && k.grants-w.had > 2
}

// unlocks checks how long an Unlock took, which ends now. The Unlock of a read lock may first
// unlock an upgrade.
func (j *Judge) unlocks(h *Held) {
	limit := longestUnlock
	if h.Want.Kind == Shared || h.Want.Kind == Upgrade {
		limit *= 2
	}
	if took := j.w.Now() - h.leaves; took > limit && !h.r.P.stoppedSince(h.leaves) {
		j.violation(h, "limit", fmt.Sprintf("takes %v to unlock", took))
	}
}
