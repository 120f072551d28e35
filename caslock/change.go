package caslock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rest"
)

// keep is how long a record stays after its last claim and its highest token, so that tokens
// grow although the clocks of two processes differ.
const keep = time.Hour

// change lets apply change the record of a key. apply may be called several times; the last
// call counts. An error says that the outcome is unknown, or matches [driver.ErrUnwritten].
func (s *Store) change(ctx context.Context, key string, apply func(*view)) error {
	d, err := s.enter(key)
	if err != nil {
		return unwritten(err)
	}
	defer s.leave(d)
	if err := d.lock(ctx); err != nil {
		return unwritten(err)
	}
	defer d.unlock()
	v := d.guess(s.now())
	var tried *view          // of the last swap, which was refused
	var next *page           // by that swap
	var shown *ConflictError // has the record that the key had instead, if the register has told
	for conflicts := 0; ; {
		if v == nil {
			if shown != nil {
				v, err = d.learn(shown.Record, s.now())
			} else {
				v, err = s.read(ctx, d)
			}
			if err != nil {
				return unwritten(err)
			}
			shown = nil
			if tried != nil && v.page.Nonce == next.Nonce {
				// The register repeated the swap, against its contract, and refused the second.
				d.swapped(next, v.version, tried.at)
				return nil
			}
		}
		// Each request between the read and the swap leaves time for another conflict. Tokens
		// depend on the time only where there is no record.
		if tried == nil || v.version == "" {
			v.at, err = s.moment(ctx)
		} else {
			v.at = s.later(tried.at)
		}
		if err != nil {
			return unwritten(err)
		}
		v.open(v.at)
		if s.watcher == nil {
			v.look = s.look
		}
		apply(v)
		next = v.next(d.after(v.page, v.at))
		if next.equal(&v.page.claims) {
			if v.current && v.proved {
				return nil
			}
			if !v.current {
				v = nil // A remembered page is no answer.
				continue
			}
			// The register may have a later page, or carry out an earlier swap. Nobody knows
			// before this page is replaced.
		}
		began := time.Now()
		version, err := s.swap(ctx, v, next)
		switch {
		case err == nil:
			d.swapped(next, version, v.at)
			s.observe(d)
			return nil
		case !errors.Is(err, ErrConflict):
			if !certain(err) {
				d.doubts(v.page.Seq)
				return err
			}
			return unwritten(err)
		}
		d.conflicts()
		errors.As(err, &shown)
		if conflicts++; conflicts > 1 {
			shown = nil // The record may change during the pause.
			_ = rest.For(ctx, rand.N(longestRest(ctx, conflicts, time.Since(began))+1))
		}
		if err := ctx.Err(); err != nil {
			return unwritten(fmt.Errorf("the record had changed before each of %d swaps: %w", conflicts, err))
		}
		v, tried = nil, v
	}
}

// longestPause is the longest pause after a conflict.
const longestPause = 250 * time.Millisecond

// longestRest returns how long a call may pause after so many conflicts in a row, the last of which took
// so long. A key that many processes want needs longer pauses. But a call with little time would spend
// all of it in pauses, and fail beside one busy process. So an eighth of the time left is the most.
func longestRest(ctx context.Context, conflicts int, took time.Duration) time.Duration {
	longest := min(took<<min(conflicts, 4), longestPause)
	if end, ok := ctx.Deadline(); ok {
		longest = min(longest, time.Until(end)/8)
	}
	return max(longest, 0)
}

// certain reports whether a failed swap will not be carried out.
func certain(err error) bool {
	return errors.Is(err, driver.ErrUnwritten) || errors.Is(err, driver.ErrInvalid)
}

func (s *Store) read(ctx context.Context, d *desk) (*view, error) {
	r, err := s.register.Read(ctx, d.key)
	if err != nil {
		return nil, err
	}
	return d.learn(r, s.now())
}

func (s *Store) swap(ctx context.Context, v *view, next *page) (version string, err error) {
	data, err := next.encode()
	if err != nil {
		return "", unwritten(err)
	}
	longest := next.last()
	ahead := time.Duration(max(int64(next.Floor)-v.at.Wall, 0)) * time.Microsecond
	return s.register.Swap(ctx, next.Key, v.version, data, max(longest+drift(longest), ahead)+keep)
}
